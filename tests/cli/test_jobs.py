"""Commands for pictures and tables that need no model: what they write and what they refuse."""

import os

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from support import read_csv

RNG = np.random.default_rng(0)
CLEAN = np.add.outer(np.arange(24) * 6, (np.arange(32) // 8) * 20).astype(np.uint8)
NOISY = np.clip(CLEAN + 15 * RNG.standard_normal(CLEAN.shape), 0, 255).astype(np.uint8)


def saved(pixels, path, mode=None):
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path)
    return path


def error(path, clean=CLEAN):
    return np.abs(np.asarray(Image.open(path)).astype(float) - clean).mean()


def test_denoise_a_gray_picture(run, tmp_path):
    saved(NOISY, "photo.png")
    done = run("denoise", "photo.png", "-o", "out.png")
    assert done.exit_code == 0, done.output
    assert "levels removed: out.png" in done.output
    assert error("out.png") < 0.7 * error("photo.png")
    done = run("denoise", "photo.png", "--sigma", 15, "--preset", "best", "-q")
    assert (done.exit_code, done.output) == (0, "")
    assert error("photo-denoised.png") < 0.7 * error("photo.png")


def test_kinds_of_pictures(run, tmp_path):
    colour = np.dstack([NOISY, NOISY[::-1], NOISY])
    alpha = RNG.integers(0, 255, CLEAN.shape).astype(np.uint8)
    saved(np.dstack([colour, alpha]), "rgba.png")
    assert run("denoise", "rgba.png", "-o", "a.png").exit_code == 0
    after = np.asarray(Image.open("a.png"))
    assert np.array_equal(after[..., 3], alpha)
    assert not np.array_equal(after[..., :3], colour)
    saved(NOISY.astype(np.uint16) * 257, "deep.png")
    assert run("denoise", "deep.png", "-o", "b.png").exit_code == 0
    deep = np.asarray(Image.open("b.png"))
    assert deep.max() > 255
    assert np.abs(deep / 257.0 - CLEAN).mean() < 0.7 * error("rgba.png", np.dstack([CLEAN] * 4))
    saved(colour, "palette.png", "P")
    done = run("denoise", "palette.png", "-o", "c.png")
    assert done.exit_code == 0
    assert "has a palette" in done.output
    assert Image.open("c.png").mode == "RGB"
    Image.fromarray(np.dstack([NOISY, alpha])).save("la.png")
    assert run("denoise", "la.png", "-o", "d.png").exit_code == 0
    assert Image.open("d.png").mode == "LA"


def test_inpaint(run, tmp_path):
    mask = RNG.random(CLEAN.shape) < 0.3
    saved(np.where(mask, 0, CLEAN).astype(np.uint8), "photo.png")
    saved((mask * 255).astype(np.uint8), "mask.png")
    done = run("inpaint", "photo.png", "--mask", "mask.png")
    assert done.exit_code == 0, done.output
    assert f"{mask.sum()} of {mask.size} pixels filled" in done.output
    after = np.asarray(Image.open("photo-inpainted.png"))
    assert np.array_equal(after[~mask], CLEAN[~mask])
    assert error("photo-inpainted.png") < 2


def test_inpaint_with_a_mask_per_channel(run, tmp_path):
    clean = np.dstack([CLEAN, CLEAN[::-1], CLEAN])
    mask = RNG.random(clean.shape) < 0.2
    saved(np.where(mask, 0, clean).astype(np.uint8), "photo.png")
    saved((mask * 255).astype(np.uint8), "mask.png")
    done = run("inpaint", "photo.png", "--mask", "mask.png", "--per-channel", "--jobs", 1)
    assert done.exit_code == 0, done.output
    assert f"{mask.sum()} of {mask.size} values filled" in done.output
    after = np.asarray(Image.open("photo-inpainted.png"))
    np.testing.assert_array_equal(after[~mask], clean[~mask])
    assert error("photo-inpainted.png", clean) < 2
    # Without the option a mark in any colour is for all of them.
    whole = mask.any(axis=2)
    done = run("inpaint", "photo.png", "--mask", "mask.png", "--force", "--preset", "fast")
    assert f"{whole.sum()} of {whole.size} pixels filled" in done.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("inpaint", "photo.png", "--mask", "white.png", "--per-channel"), 1, "with colours"),
        (("denoise", "none.png"), 3, "does not exist"),
        (("denoise", "text.png"), 3, "is not a picture, or has a format that"),
        (("denoise", "cut.png", "-o", "o.png"), 3, "cut.png"),
        (("denoise", "small.png"), 1, "need at least 16 of both"),
        (("denoise", "photo.png", "--preset", "nice"), 2, "one of 'fast', 'balanced', 'best'"),
        (("denoise", "photo.png", "-o", "o.gif"), 1, "must end in .png"),
        (("denoise", "photo.png", "-o", "photo.png"), 1, "the picture itself"),
        (("denoise", "photo.png", "-o", "text.png"), 4, "--force replaces it"),
        (("denoise", "deep.png", "-o", "o.jpg"), 1, "16 bits, which needs a name in .png"),
        (("inpaint", "photo.png"), 1, "has no NaN: say by --mask which pixels"),
        (("inpaint", "photo.png", "--mask", "small.png"), 1, "one entry per pixel"),
        (("inpaint", "photo.png", "--mask", "white.png"), 1, "every pixel of the image is masked"),
    ],
)
def test_pictures_that_do_not_fit(run, tmp_path, words, code, message):
    saved(NOISY, "photo.png")
    saved(NOISY[:5], "small.png")
    saved(np.full(CLEAN.shape, 255, dtype=np.uint8), "white.png")
    saved(NOISY.astype(np.uint16) * 257, "deep.png")
    (tmp_path / "text.png").write_text("no picture", encoding="utf-8")
    (tmp_path / "cut.png").write_bytes((tmp_path / "photo.png").read_bytes()[:300])
    before = sorted(os.listdir(tmp_path))
    done = run(*words)
    assert done.exit_code == code, done.output
    assert message in " ".join(done.output.replace("│", " ").split())
    assert sorted(os.listdir(tmp_path)) == before


def table(n=60):
    x = RNG.standard_normal(n)
    frame = pd.DataFrame(
        {
            "name": [f"n{k}" for k in range(n)],
            "a": x,
            "b": 2 * x + 0.1 * RNG.standard_normal(n),
            "count": np.rint(10 + 3 * x).astype(int),
            "empty": np.nan,
        }
    )
    holes = frame.copy()
    holes["count"] = holes["count"].astype("Int64")
    for k, name in enumerate(("a", "b", "count")):
        holes.loc[k::7, name] = None
    return frame, holes


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_impute_finds_its_own_way(run, tmp_path, ending):
    frame, holes = table()
    path = tmp_path / f"t{ending}"
    holes.to_csv(path, index=False) if ending == ".csv" else holes.to_parquet(path)
    done = run("impute", path.name, "-o", f"f{ending}")
    assert done.exit_code == 0, done.output
    assert "stay empty: empty" in done.output
    filled = read_csv("f.csv") if ending == ".csv" else pd.read_parquet("f.parquet")
    assert list(filled.columns) == list(frame.columns)
    assert list(filled["name"]) == list(frame["name"])
    assert filled["empty"].isna().all()
    assert pd.api.types.is_integer_dtype(filled["count"].dtype)
    for name in ("a", "b", "count"):
        seen = holes[name].notna()
        assert (filled[name][seen] == holes[name][seen]).all()
        off = filled[name].astype(float) - frame[name]
        assert off.abs().mean() < 0.3 * frame[name].std()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("a,b\n1,\n2,inf\n", 1, "1 infinite entries (the first in row 1 of column b)"),
        ("a,b\n,\n,\n", 1, "no entry at all"),
        ("", 3, "is empty"),
    ],
)
def test_tables_that_cannot_be_filled(run, tmp_path, text, code, message):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    done = run("impute", "t.csv", "-o", "f.csv")
    assert done.exit_code == code, done.output
    assert message in done.output
    assert os.listdir(tmp_path) == ["t.csv"]


def test_tables_with_little_to_do(run, tmp_path):
    (tmp_path / "one.csv").write_text("a,b\n1,\n", encoding="utf-8")
    assert run("impute", "one.csv", "-o", "f.csv").exit_code == 0
    assert (tmp_path / "f.csv").read_text(encoding="utf-8") == "a,b\n1,\n"
    (tmp_path / "same.csv").write_text("a,b\n" + "5,1\n" * 5 + ",2\n", encoding="utf-8")
    assert run("impute", "same.csv", "-o", "g.csv").exit_code == 0
    assert (tmp_path / "g.csv").read_text(encoding="utf-8").splitlines()[-1] == "5,2"
    (tmp_path / "full.csv").write_text("a,b\n1,2.50\n3,4\n", encoding="utf-8")
    done = run("impute", "full.csv", "-o", "h.csv")
    assert "has nothing to fill: h.csv is a copy" in done.output
    assert (tmp_path / "h.csv").read_text(encoding="utf-8") == (tmp_path / "full.csv").read_text(
        encoding="utf-8"
    )


def test_empty_columns_of_arrays_stay_empty(run, tmp_path):
    X = table(30)[1][["a", "b"]].to_numpy(dtype=float)
    np.save("t.npy", np.column_stack([X, np.full(len(X), np.nan)]))
    done = run("impute", "t.npy", "-o", "f.npy")
    assert done.exit_code == 0, done.output
    assert "stay empty: 2" in done.output
    filled = np.load("f.npy")
    assert np.isfinite(filled[:, :2]).all()
    assert np.isnan(filled[:, 2]).all()
    np.save("none.npy", np.full((3, 2), np.nan))
    assert "no number at all" in run("impute", "none.npy", "-o", "g.npy").output
    assert not (tmp_path / "g.npy").exists()


def test_an_imputer_in_a_file(run, tmp_path):
    frame, holes = table(80)
    holes.iloc[:60].to_csv("old.csv", index=False)
    new, truth = holes.iloc[60:].copy(), frame.iloc[60:]
    new["b"] = np.nan  # nothing of it in the new table, but known from the old one
    new.insert(0, "more", 1.5)
    new.to_csv("new.csv", index=False)
    done = run("fit", "old.csv", "-o", "m.skops", "-m", "imputer")
    assert done.exit_code == 0, done.output
    for word in ("SubspaceImputer", "held-out error", "of dimension"):
        assert word in done.output
    assert "held-out error" in run("info", "m.skops").output
    done = run("impute", "new.csv", "-o", "f.csv", "--model", "m.skops")
    assert done.exit_code == 0, done.output
    assert "stay empty: empty" in done.output
    filled = read_csv("f.csv")
    assert list(filled.columns) == list(new.columns)
    assert filled["empty"].isna().all()
    assert np.corrcoef(filled["b"], truth["b"])[0, 1] > 0.9
    assert (filled["b"] != filled["b"].round()).any()
    assert pd.api.types.is_integer_dtype(filled["count"].dtype)
    seen = new["a"].notna().to_numpy()
    assert (filled["a"][seen].to_numpy() == new["a"][seen].to_numpy()).all()


def test_what_an_imputer_in_a_file_cannot_do(run, tmp_path):
    X = table(30)[1][["a", "b"]].to_numpy(dtype=float)
    np.save("t.npy", X)
    words = ("-o", "m.skops", "-m", "imputer")
    assert run("fit", "t.npy", *words, "-L", 1, "-s", 1, "-q").exit_code == 0
    before = sorted(os.listdir(tmp_path))
    for command, message in (
        (("fit", "t.npy", *words, "--force", "--labels-out", "l.npy"), "gives no labels"),
        (("predict", "m.skops", "t.npy", "-o", "o.npy"), "cannot predict"),
        (("predict", "m.skops", "t.npy", "-o", "o.npy", "--distances"), "cannot predict"),
        (("reconstruct", "m.skops", "t.npy", "-o", "o.npy"), "cannot reconstruct"),
    ):
        done = run(*command)
        assert (done.exit_code, message in done.output) == (1, True), done.output
        assert sorted(os.listdir(tmp_path)) == before
    assert run("impute", "t.npy", "-o", "o.npy", "--model", "m.skops").exit_code == 0
    filled = np.load("o.npy")
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
