"""What `impute` says: how many cells it filled, what it passed over, which cells stay empty."""

import numpy as np
import pandas as pd
import pytest

RNG = np.random.default_rng(0)


def european(n=60):
    """A table as spreadsheets of half of Europe save it, and the numbers in it."""
    x = RNG.standard_normal((n, 2)) @ RNG.standard_normal((2, 13)) * 3
    numbers = pd.DataFrame(x, columns=[f"c{k}" for k in range(13)]).round(2)
    texts = numbers.map(lambda value: f"{value:.2f}".replace(".", ","))
    for k in range(13):
        texts.iloc[k::15, k] = ""
    texts.insert(0, "day", [f"{k % 28 + 1:02d}.03.2004" for k in range(n)])
    texts["remark"] = ["", "ok"] * (n // 2)
    return texts, numbers


def test_decimal_commas_of_a_whole_file_are_filled(run, tmp_path):
    texts, numbers = european()
    texts.to_csv("t.csv", sep=";", index=False)
    done = run("impute", "t.csv", "-o", "f.csv")
    assert done.exit_code == 0, done.output
    holes = int((texts.iloc[:, 1:14] == "").to_numpy().sum())
    assert holes == 52
    assert "52 of 82 missing cells filled in 13 columns\n" in done.output
    assert "note: read with decimal commas or thousands separators: c0, c1, " in done.output
    # Dates that are not in ISO form are text; a blank beside a single word may mean its opposite.
    assert "note: 30 cells of f.csv stay empty: remark 30 (only one value)\n" in done.output
    filled = pd.read_csv("f.csv", sep=";", dtype=str, keep_default_na=False)
    assert filled["remark"].tolist() == texts["remark"].tolist()
    assert filled["day"].tolist() == texts["day"].tolist()
    for name in numbers:
        seen = texts[name] != ""
        assert filled[name][seen].tolist() == texts[name][seen].tolist()
        assert "." not in "".join(filled[name])
        values = filled[name].str.replace(",", ".").astype(float)
        assert np.abs(values - numbers[name]).mean() < 0.1 * numbers[name].std()


def test_columns_that_are_nearly_numbers_are_passed_over_with_a_reason(run, tmp_path):
    rows = [f"{k};{k},5;{2 * k},5" for k in range(20)]
    rows[4], rows[7] = "4;-;8,5", "7;;"
    (tmp_path / "t.csv").write_text("\n".join(["k;a;b", *rows]) + "\n", encoding="utf-8")
    done = run("impute", "t.csv", "-o", "f.csv")
    assert done.exit_code == 0, done.output
    assert "taken for text, though other cells are numbers: a (row 4: '-')" in done.output
    assert "1 of 2 missing cells filled in 1 column\n" in done.output
    assert "1 cell of f.csv stays empty: a 1 (numbers, but row 4: '-')" in done.output


def test_columns_that_cannot_be_read_are_errors(run, tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1;1,234\n2;\n3;5,678\n", encoding="utf-8")
    done = run("impute", "t.csv", "-o", "f.csv")
    assert done.exit_code == 1
    for word in ("column b of t.csv", "--decimal", "--thousands"):
        assert word in done.output
    assert not (tmp_path / "f.csv").exists()
    assert run("impute", "t.csv", "-o", "f.csv", "--thousands", ",").exit_code == 0
    assert (tmp_path / "f.csv").read_text(encoding="utf-8").splitlines()[2].count(",") == 1
    assert run("impute", "t.csv", "-o", "g.csv", "--decimal", ",").exit_code == 0
    line = (tmp_path / "g.csv").read_text(encoding="utf-8").split()[2]
    assert 1 < float(line.split(";")[1].replace(",", ".")) < 6
    assert run("impute", "t.csv", "-o", "h.csv", "--decimal", ";").exit_code == 2
    done = run("impute", "t.csv", "-o", "h.csv", "--decimal", ",", "--thousands", ",")
    assert done.exit_code == 2
    assert "--decimal and --thousands are both" in done.output


@pytest.mark.parametrize("ending", [".csv", ".npy"])
def test_every_cell_that_stays_empty_is_counted(run, tmp_path, ending):
    x = RNG.standard_normal((30, 1)) * np.array([1.0, 2.0, -1.0])
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["never"] = np.nan
    frame["id"] = np.arange(30.0)
    frame.iloc[3:6, 1] = np.nan
    frame.iloc[:2, 4] = np.nan
    if ending == ".csv":
        frame.to_csv("t.csv", index=False)
    else:
        np.save("t.npy", frame.to_numpy())
    done = run("impute", f"t{ending}", "-o", f"f{ending}", "--drop", "4")
    assert done.exit_code == 0, done.output
    b, never = ("b", "never") if ending == ".csv" else ("1", "3")
    assert "3 of 33 missing cells filled in 1 column\n" in done.output
    (line,) = [line for line in done.output.splitlines() if line.startswith(f"{b} ")]
    assert "3 of 3 filled" in line
    left = f"stay empty: {never} 30 (without any entry)"
    # An array has only the columns that were used.
    more = ", id 2 (left out)" if ending == ".csv" else ""
    assert f"{32 if more else 30} cells of f{ending} {left}{more}\n" in done.output
    quiet = run("impute", f"t{ending}", "-o", f"q{ending}", "--drop", "4", "-q").output
    assert "filled" not in quiet
    assert "stay empty" in quiet
    saved = pd.read_csv("f.csv").to_numpy() if ending == ".csv" else np.load("f.npy")
    assert np.isnan(saved).sum() == (32 if more else 30)


def test_a_model_tells_the_same(run, shelf):
    done = run("impute", shelf / "holes.csv", "-o", "f.csv", "--model", shelf / "robust.skops")
    missing = int(np.isnan(np.load(shelf / "holes.npy")).sum())
    assert f"{missing} of {missing} missing cells filled in 6 columns: f0 " in done.output
    assert "stay empty" not in done.output
