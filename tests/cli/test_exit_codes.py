"""Which exit code a failure has: 70 is for errors of polyspan itself."""

import builtins
import io
import os
import struct
from functools import partial

import numpy as np
import pytest
import tifffile
from PIL import Image

import polyspan
from polyspan.cli.errors import Code, CommandError
from polyspan.cli.options import Reading
from polyspan.cli.pictures import read_picture
from polyspan.cli.tables import read_table
from support import link_to

RNG = np.random.default_rng(0)
DEEP = RNG.integers(0, 65536, (24, 33, 3)).astype(np.uint16)
WIDTH, HEIGHT, TILE_WIDTH = 256, 257, 322


def damage_tag(content, tag, *, kind=None, value=None):
    """Change the type or the value of a tag in the first directory of a TIFF."""
    content = bytearray(content)
    (start,) = struct.unpack_from("<I", content, 4)
    (n,) = struct.unpack_from("<H", content, start)
    places = [start + 2 + 12 * k for k in range(n)]
    (place,) = [k for k in places if struct.unpack_from("<H", content, k)[0] == tag]
    if kind is not None:
        struct.pack_into("<H", content, place + 2, kind)
    if value is not None:
        struct.pack_into("<I", content, place + 8, value)
    return bytes(content)


@pytest.mark.parametrize("tag", [WIDTH, HEIGHT])
@pytest.mark.parametrize("eight_bits", [False, True])
def test_a_tiff_with_a_damaged_size(run, tmp_path, tag, eight_bits):
    pixels = (DEEP >> 8).astype(np.uint8) if eight_bits else DEEP
    tifffile.imwrite("whole.tif", pixels, photometric="rgb")
    whole = (tmp_path / "whole.tif").read_bytes()
    for change in ({"kind": 149}, {"value": 0}):
        (tmp_path / "bad.tif").write_bytes(damage_tag(whole, tag, **change))
        done = run("denoise", "bad.tif", "-o", "o.tif")
        assert done.exit_code == 3, done.output
        assert "cannot read bad.tif: " in done.output
        assert not (tmp_path / "o.tif").exists()


def test_a_tiff_with_tiles_of_no_width(run, tmp_path):
    tifffile.imwrite("tiles.tif", DEEP, photometric="rgb", tile=(16, 16))
    whole = (tmp_path / "tiles.tif").read_bytes()
    (tmp_path / "bad.tif").write_bytes(damage_tag(whole, TILE_WIDTH, value=0))
    done = run("denoise", "bad.tif", "-o", "o.tif")
    assert (done.exit_code, "cannot read bad.tif" in done.output) == (3, True), done.output


def damaged(content, rng):
    """Cut a file off, or change some of its bytes."""
    if rng.random() < 0.2:
        return content[: rng.integers(len(content))]
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        # Most of what steers a decoder is near the ends.
        near = int(rng.integers(min(len(content), 300)))
        content[near if rng.random() < 0.5 else -1 - near] = rng.integers(256)
    return bytes(content)


@pytest.mark.filterwarnings("ignore")
def test_whatever_is_damaged_is_read_or_refused(tmp_path):
    eight = (DEEP >> 8).astype(np.uint8)
    tifffile.imwrite(tmp_path / "deep.tif", DEEP, photometric="rgb")
    tifffile.imwrite(tmp_path / "lzw.tif", DEEP, photometric="rgb", compression="lzw")
    tifffile.imwrite(tmp_path / "tiles.tif", eight[..., 0], tile=(16, 16))
    Image.fromarray(eight).save(tmp_path / "plain.tif")
    Image.fromarray(eight).save(tmp_path / "photo.jpg")
    Image.fromarray(eight).save(tmp_path / "photo.png")
    np.savez_compressed(tmp_path / "table.npz", X=DEEP[..., 0])
    np.save(tmp_path / "table.npy", DEEP[..., 0])
    rng = np.random.default_rng(0)
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        is_table = path.stem == "table"
        read = partial(read_table, how=Reading()) if is_table else read_picture
        refused = []
        for _ in range(60):
            path.write_bytes(damaged(content, rng))
            try:
                read(path)
            except CommandError as error:
                refused.append(error)
        assert refused
        assert all(path.name in str(error) for error in refused)
        assert {error.code for error in refused} <= {Code.UNREADABLE, Code.DATA}


READ = [
    ("impute", "secret.csv", "-o", "o.csv"),
    ("cluster", "secret.npy", "-o", "o.csv"),
    ("outliers", "secret.parquet", "-o", "o.csv"),
    ("cluster", "free.csv", "--model", "secret.skops", "-o", "o.csv"),
    ("impute", "free.csv", "--model", "secret.skops", "-o", "o.csv"),
    ("denoise", "secret.png"),
    ("denoise", "secret.tif"),
    ("inpaint", "free.png", "--mask", "secret.png"),
]


@pytest.mark.parametrize("words", READ, ids=lambda words: " ".join(map(str, words[:2])))
def test_a_file_that_may_not_be_read(run, shelf, tmp_path, monkeypatch, words):
    for name in ("x.csv", "x.npy", "x.parquet", "x.skops"):
        content = (shelf / name.replace("skops", "npz")).read_bytes()
        (tmp_path / f"secret.{name.split('.')[1]}").write_bytes(content)
    (tmp_path / "free.csv").write_bytes((shelf / "holes.csv").read_bytes())
    for name in ("secret.png", "secret.tif", "free.png"):
        Image.fromarray(DEEP[..., 0]).save(name)
    before = sorted(os.listdir(tmp_path))
    refuse_secrets(monkeypatch)
    done = run(*words)
    assert done.exit_code == 3, done.output
    assert "cannot read secret" in done.output
    assert "Permission denied" in done.output
    assert sorted(os.listdir(tmp_path)) == before


def refuse_secrets(monkeypatch):
    """Refuse files called secret, as the system does; to root it would not."""
    plain, access = builtins.open, os.access

    def guarded(file, *args, **options):
        if "secret" in str(file):
            raise PermissionError(13, "Permission denied", str(file))
        return plain(file, *args, **options)

    monkeypatch.setattr(builtins, "open", guarded)
    monkeypatch.setattr(io, "open", guarded)
    monkeypatch.setattr(
        os, "access", lambda path, mode, **k: "secret" not in str(path) and access(path, mode, **k)
    )


def test_a_folder_that_may_not_be_written(run, shelf, tmp_path, monkeypatch):
    (tmp_path / "secret").mkdir()
    Image.fromarray(DEEP[..., 0]).save("free.png")
    refuse_secrets(monkeypatch)
    for words in (
        ("cluster", shelf / "x.csv", "-o", "secret/l.csv"),
        ("outliers", shelf / "x.csv", "-o", "o.csv", "--save-model", "secret/m.skops"),
        ("impute", shelf / "holes.csv", "-o", "secret/o.csv"),
        ("denoise", "free.png", "-o", "secret/o.png"),
    ):
        done = run(*words)
        assert done.exit_code == 5, done.output
        assert "the folder secret does not let you write" in done.output
    assert os.listdir("secret") == []


def test_a_path_below_a_file(run, shelf, tmp_path):
    (tmp_path / "plain").write_text("no folder", encoding="utf-8")
    done = run("impute", "plain/t.csv", "-o", "o.csv")
    # Windows only says that there is no such file.
    said = "plain" in done.output if os.name == "nt" else "plain/t.csv: Not a dir" in done.output
    assert (done.exit_code, said) == (3, True)
    done = run("impute", shelf / "holes.csv", "-o", "plain/o.csv")
    assert (done.exit_code, "plain does not exist" in done.output) == (5, True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device", "/tmp/x"), "No space left on device: '/tmp/x'"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (RuntimeError("cannot cache function 'sweep': no locator"), "set NUMBA_CACHE_DIR to"),
    ],
)
def test_what_else_the_system_refuses(run, shelf, tmp_path, monkeypatch, error, message):
    def refused(*_, **__):
        raise error

    monkeypatch.setattr(polyspan.SubspaceClustering, "fit", refused)
    done = run("cluster", shelf / "x.csv", "-o", "l.csv")
    assert done.exit_code == 6
    assert message in done.output
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "words",
    [
        ("cluster", "none.csv", "-o", "old.csv"),
        ("outliers", "old.csv", "-o", "old.npy", "--model", "none.skops"),
        ("impute", "none.csv", "-o", "old.csv"),
        ("impute", "old.csv", "-o", "old.npy", "--model", "none.skops"),
        ("denoise", "none.png", "-o", "old.png"),
        ("inpaint", "old.png", "--mask", "none.png", "-o", "new.png"),
        ("inpaint", "none.png", "--mask", "old.png", "-o", "new.png"),
    ],
)
def test_a_missing_input_is_named_before_an_existing_output(run, tmp_path, words):
    for name in ("old.npy", "old.csv", "old.png", "new.png"):
        (tmp_path / name).write_text("old", encoding="utf-8")
    done = run(*words)
    assert done.exit_code == 3
    assert f"{next(w for w in words if 'none' in str(w))} does not exist" in done.output


def test_force_writes_through_a_link(run, shelf, tmp_path):
    (tmp_path / "real.csv").write_text("old", encoding="utf-8")
    link_to("real.csv", tmp_path / "link.csv")
    words = ("outliers", shelf / "x.csv", "-o", "link.csv")
    assert run(*words).exit_code == 4
    assert (tmp_path / "real.csv").read_text(encoding="utf-8") == "old"
    assert run(*words, "--force").exit_code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text(encoding="utf-8").startswith("score,rank,")
    link_to("b.csv", tmp_path / "a.csv")
    link_to("a.csv", tmp_path / "b.csv")
    done = run(*words[:-1], "a.csv", "--force")
    assert (done.exit_code, "symbolic links" in done.output) == (5, True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("command", ["cluster", "impute", "outliers"])
def test_pipes_with_names_are_neither_read_nor_replaced(run, shelf, tmp_path, command):
    os.mkfifo("pipe.csv")
    done = run(command, "pipe.csv", "-o", "o.csv")
    assert (done.exit_code, "pipe.csv is a pipe or a device" in done.output) == (3, True)
    for words in (("-o", "pipe.csv"), ("-o", "o.csv", "--save-model", "pipe.csv")):
        done = run(command, shelf / "x.csv", *words, "--force")
        assert (done.exit_code, "pipe.csv is a pipe or a device" in done.output) == (5, True)
    assert (tmp_path / "pipe.csv").is_fifo()
    assert os.listdir(tmp_path) == ["pipe.csv"]


def test_equal_names_of_columns_are_named(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,a\n1,2,3\n4,5,6\n", encoding="utf-8")
    for command in ("cluster", "impute", "outliers"):
        done = run(command, "t.csv", "-o", "o.csv")
        assert (done.exit_code, "several columns called a" in done.output) == (1, True)


def test_pictures_are_no_streams(run, tmp_path):
    for words in (("denoise", "-"), ("inpaint", "-", "-o", "o.png")):
        done = run(*words)
        assert (done.exit_code, "- is for tables" in done.output) == (1, True)


def test_options_for_reading_are_named(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    done = run("outliers", "t.csv", "-o", "o.csv", "--parse-dates", "day")
    assert done.exit_code == 3
    assert "'--parse-dates': 'day'" in done.output
