"""Kinds of picture files: what is kept, what is converted, and what is refused with a reason."""

import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tifffile
from imagecodecs import png_decode
from PIL import Image, ImageOps

from polyspan.cli.errors import CommandError
from polyspan.cli.pictures import read_mask, read_picture, upright

RNG = np.random.default_rng(0)
CLEAN = np.add.outer(np.arange(24) * 6, (np.arange(32) // 8) * 20).astype(np.uint8)
NOISY = np.clip(CLEAN + 15 * RNG.standard_normal(CLEAN.shape), 0, 255).astype(np.uint8)
COLOUR = np.dstack([NOISY, NOISY[::-1], NOISY])
MASK = RNG.random(CLEAN.shape) < 0.3
DEEP = RNG.integers(0, 65536, (24, 33, 4)).astype(np.uint16)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def filtered(rows, step):
    """Write rows of bytes with the five filters of PNG in turn."""
    before = np.zeros(rows.shape[1], dtype=int)
    for k, row in enumerate(rows.astype(int)):
        left, corner = (np.r_[np.zeros(step, dtype=int), line[:-step]] for line in (row, before))
        a, b, c = (abs(left + before - corner - x) for x in (left, before, corner))
        nearest = np.where((a <= b) & (a <= c), left, np.where(b <= c, before, corner))
        guess = (0, left, before, (left + before) // 2, nearest)[k % 5]
        yield bytes([k % 5]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        before = row


def png16(path, pixels, *, interlaced=False):
    """Write a PNG of 16 bits with all filters; Pillow reads the upper bytes of such files."""
    parts = [pixels]
    if interlaced:
        corners = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4))
        corners += ((1, 0, 2, 2), (0, 1, 1, 2))
        parts = [pixels[y::dy, x::dx] for x, y, dx, dy in corners]
    n = pixels.shape[2]
    lines = [
        line
        for part in parts
        for line in filtered(
            np.ascontiguousarray(part.astype(">u2")).view(np.uint8).reshape(len(part), -1), 2 * n
        )
    ]
    height, width = pixels.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, 16, {2: 4, 3: 2, 4: 6}[n], 0, 0, interlaced)
    content = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(lines)))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + content + chunk(b"IEND", b""))


def imread_png(path):
    return png_decode(path.read_bytes())


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_sixteen_bits_of_png_are_read(tmp_path, n, interlaced):
    path = tmp_path / "deep.png"
    png16(path, DEEP[..., :n], interlaced=interlaced)
    found = read_picture(path)
    colours = found.pixels if found.pixels.ndim == 3 else found.pixels[..., None]
    pixels = colours if found.alpha is None else np.dstack([colours, found.alpha])
    np.testing.assert_array_equal(pixels, DEEP[..., :n])


def test_damaged_png(tmp_path):
    path = tmp_path / "deep.png"
    png16(path, DEEP[..., :3])
    whole = path.read_bytes()
    for content in (whole[:-20], whole[:200] + b"xxxx" + whole[204:], whole[:60]):
        path.write_bytes(content)
        with pytest.raises(CommandError, match=r"deep\.png"):
            read_picture(path)
    forged = chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 16, 6, 0, 0, 0))
    end = chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    path.write_bytes(whole[:8] + forged + end)
    with pytest.raises(CommandError, match=r"deep\.png is too large"):
        read_picture(path)


def test_an_interlaced_png_raises_no_remark(tmp_path, caplog):
    png16(tmp_path / "deep.png", DEEP[..., :3], interlaced=True)
    np.testing.assert_array_equal(read_picture(tmp_path / "deep.png").pixels, DEEP[..., :3])
    assert not caplog.records


@pytest.mark.parametrize("ending", [".png", ".tif"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_deep_colours_stay_deep(run, tmp_path, n, ending):
    levels = np.dstack([COLOUR, NOISY])[..., -n:].astype(np.uint16) * 257
    source = tmp_path / f"deep{ending}"
    if ending == ".png":
        png16(source, levels)
    else:
        kind = "rgb" if n > 2 else "minisblack"
        extra = ["unassalpha"] * (n in (2, 4))
        tifffile.imwrite(source, levels, photometric=kind, extrasamples=extra)
    done = run("denoise", source, "-o", f"out{ending}")
    assert done.exit_code == 0, done.output
    read = imread_png if ending == ".png" else tifffile.imread
    after = read(tmp_path / f"out{ending}")
    assert (after.shape, after.dtype) == (levels.shape, np.uint16)
    assert len(np.unique(after)) > 300
    if n != 3:
        np.testing.assert_array_equal(after[..., -1], levels[..., -1])


def test_other_tiffs(run, tmp_path):
    floats = {
        "gray.tif": NOISY.astype(np.float32),
        "double.tif": NOISY.astype(np.float64),
        "half.tif": NOISY.astype(np.float16),
        "colour.tif": COLOUR.astype(np.float32) / 255,
    }
    for name, values in floats.items():
        tifffile.imwrite(name, values, photometric="rgb" if values.ndim == 3 else "minisblack")
        done = run("denoise", name, "-o", "out.tif", "--force")
        assert done.exit_code == 0, done.output
        after = tifffile.imread("out.tif")
        assert after.dtype == (np.float32 if name == "half.tif" else values.dtype)
        assert 0 < np.abs(after - values).mean() < 0.1 * np.ptp(values)
    planar = np.moveaxis(DEEP[..., :3], -1, 0)
    tifffile.imwrite("planar.tif", planar, photometric="rgb", planarconfig="separate")
    np.testing.assert_array_equal(read_picture(tmp_path / "planar.tif").pixels, DEEP[..., :3])
    for packed in ("lzw", "zlib"):
        name = f"{packed}.tif"
        tifffile.imwrite(name, DEEP[..., :3], photometric="rgb", compression=packed)
        np.testing.assert_array_equal(read_picture(tmp_path / name).pixels, DEEP[..., :3])
    turned = ("turned.tif", DEEP[..., :3])
    tifffile.imwrite(*turned, photometric="rgb", extratags=[(274, "H", 1, 6, True)])
    np.testing.assert_array_equal(
        read_picture(tmp_path / "turned.tif").pixels, np.rot90(DEEP[..., :3], -1)
    )


def test_a_phone_photograph_is_not_turned(run, tmp_path):
    exif = Image.Exif()
    exif[274], exif[271] = 6, "maker"
    save = {"exif": exif, "icc_profile": b"a profile", "dpi": (300, 300)}
    Image.fromarray(COLOUR).save("photo.jpg", quality=95, **save)
    assert run("denoise", "photo.jpg").exit_code == 0
    with Image.open("photo-denoised.jpg") as after:
        shown = ImageOps.exif_transpose(Image.open("photo.jpg"))
        assert after.size == shown.size == (24, 32)
        # The noise is gone, 12 levels on average; a turned picture differs by more.
        assert np.abs(np.asarray(after).astype(int) - np.asarray(shown)).mean() < 12
        assert np.abs(np.asarray(after)[::-1].astype(int) - np.asarray(shown)).mean() > 24
        assert dict(after.getexif()) == {271: "maker"}
        assert after.info["icc_profile"] == b"a profile"
        assert after.info["dpi"] == (300, 300)
    for orientation in range(1, 9):
        exif[274] = orientation
        image = Image.fromarray(COLOUR)
        image.getexif()[274] = orientation
        expected = np.asarray(ImageOps.exif_transpose(image))
        np.testing.assert_array_equal(upright(COLOUR, orientation), expected)


def test_transparency_in_its_forms(run, tmp_path):
    Image.fromarray(COLOUR).save("key.png", transparency=tuple(COLOUR[0, 0].tolist()))
    assert run("denoise", "key.png").exit_code == 0
    assert Image.open("key-denoised.png").mode == "RGBA"
    alpha = np.zeros_like(NOISY)
    Image.fromarray(np.dstack([COLOUR, alpha])).save("unseen.png")
    done = run("denoise", "unseen.png", "-o", "o.jpg")
    assert "cannot be transparent" in done.output
    assert np.asarray(Image.open("o.jpg")).min() == 255
    png16(tmp_path / "deep.png", DEEP[..., :3])
    content = (tmp_path / "deep.png").read_bytes()
    key = chunk(b"tRNS", struct.pack(">HHH", *DEEP[0, 0, :3].tolist()))
    (tmp_path / "deepkey.png").write_bytes(content[:33] + key + content[33:])
    assert run("denoise", "deepkey.png", "-o", "p.png").exit_code == 0
    shown = np.full(DEEP.shape[:2], 65535)
    shown[0, 0] = 0
    np.testing.assert_array_equal(imread_png(tmp_path / "p.png")[..., 3], shown)


def test_converted_kinds(run, tmp_path):
    Image.fromarray(NOISY > 100).save("bits.png")
    done = run("denoise", "bits.png")
    assert "shades of gray" in done.output
    assert Image.open("bits-denoised.png").mode == "L"
    Image.fromarray(COLOUR).quantize(16).save("still.gif")
    assert run("denoise", "still.gif", "-q").exit_code == 0
    assert Image.open("still-denoised.png").mode == "RGB"
    for ending in ("jpg", "tif"):
        Image.fromarray(COLOUR).convert("CMYK").save(f"print.{ending}")
        assert run("denoise", f"print.{ending}").exit_code == 0
        assert Image.open(f"print-denoised.{ending}").mode == "CMYK"
    frames = {"save_all": True, "append_images": [Image.fromarray(COLOUR)]}
    Image.fromarray(COLOUR).save("phone.jpg", format="MPO", **frames)
    assert run("denoise", "phone.jpg").exit_code == 0
    Image.fromarray(COLOUR).save("photo.webp", lossless=True)
    Image.fromarray(MASK).save("mask.png")
    assert run("inpaint", "photo.webp", "--mask", "mask.png").exit_code == 0
    after = np.asarray(Image.open("photo-inpainted.webp"))
    np.testing.assert_array_equal(after[~MASK], COLOUR[~MASK])


def test_masks_in_their_forms(tmp_path):
    eight = (MASK * 255).astype(np.uint8)
    white = np.full(MASK.shape, 255, dtype=np.uint8)
    forms = {
        "bits.png": Image.fromarray(MASK),
        "gray.png": Image.fromarray(eight),
        "faint.png": Image.fromarray(MASK.astype(np.uint8)),
        "colour.png": Image.fromarray(np.dstack([eight, 0 * eight, 0 * eight])),
        "palette.png": Image.fromarray(eight).convert("P"),
        "deep.png": Image.fromarray(MASK.astype(np.uint16)),
        "clear.png": Image.fromarray(np.dstack([white, white, white, eight])),
        "float.tif": Image.fromarray(MASK.astype(np.float32)),
        "smeared.jpg": Image.fromarray(eight),
    }
    for name, image in forms.items():
        image.save(tmp_path / name, **({"quality": 90} if name.endswith("jpg") else {}))
        np.testing.assert_array_equal(read_mask(tmp_path / name), MASK, err_msg=name)


def make_files(folder):
    Image.fromarray(COLOUR).save(folder / "photo.png")
    Image.fromarray(MASK).save(folder / "mask.png")
    hole = NOISY.astype(np.float32)
    hole[3, 4] = np.nan
    Image.fromarray(hole).save(folder / "nan.tif")
    tifffile.imwrite(folder / "inf.tif", np.where(np.isnan(hole), np.inf, hole))
    tifffile.imwrite(folder / "int32.tif", NOISY.astype(np.uint32))
    tifffile.imwrite(folder / "pages.tif", DEEP[None, :, :, :3].repeat(2, 0), photometric="rgb")
    tifffile.imwrite(folder / "odd.tif", DEEP[..., :3], photometric="cielab")
    Image.fromarray(COLOUR).convert("LAB").save(folder / "lab.tif")
    Image.fromarray(COLOUR).convert("CMYK").save(folder / "cmyk.tif")
    frames = {"save_all": True, "append_images": [Image.fromarray(COLOUR[::-1]).quantize(8)]}
    Image.fromarray(COLOUR).quantize(8).save(folder / "moving.gif", **frames)
    png16(folder / "deep.png", DEEP[..., :3])
    (folder / "cut.tif").write_bytes((folder / "int32.tif").read_bytes()[:60])
    for packed in ("lzw", "zlib"):
        path = folder / f"{packed}.tif"
        tifffile.imwrite(path, DEEP[..., :3], photometric="rgb", compression=packed)
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2] ^= 0xFF
        damaged[len(damaged) // 2 + 1] ^= 0xFF
        path.write_bytes(damaged)
    (folder / "folder.png").mkdir()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("denoise", "nan.tif", "-o", "o.tif"),
            1,
            "1 of 768 values of the image are NaN",
        ),
        (("denoise", "inf.tif", "-o", "o.tif"), 1, "are NaN or infinite"),
        (("inpaint", "nan.tif", "--mask", "mask.png", "-o", "o.tif"), 1, "outside the mask"),
        (("denoise", "nan.tif", "-o", "o.png"), 1, "floats, which needs a name in .tif"),
        (("denoise", "deep.png", "-o", "o.webp"), 1, "16 bits, which needs a name in .png"),
        (("denoise", "cmyk.tif", "-o", "o.png"), 1, "CMYK"),
        (("denoise", "int32.tif", "-o", "o.tif"), 3, "type uint32: save it with 8 or 16 bits"),
        (
            ("denoise", "pages.tif", "-o", "o.tif"),
            3,
            "or give all as a stack to polyspan denoise --stack",
        ),
        (("denoise", "moving.gif", "-o", "o.png"), 3, "holds 2 pictures: save one of them"),
        (("denoise", "odd.tif", "-o", "o.tif"), 3, "CIELAB"),
        (("denoise", "lab.tif", "-o", "o.tif"), 3, "mode 'LAB'"),
        (("denoise", "cut.tif", "-o", "o.tif"), 3, "cut.tif"),
        (("denoise", "lzw.tif", "-o", "o.tif"), 3, "cannot read lzw.tif"),
        (("denoise", "zlib.tif", "-o", "o.tif"), 3, "cannot read zlib.tif"),
        (("denoise", "folder.png", "-o", "o.png"), 3, "is a folder"),
        (("denoise", "photo.png", "-o", "o"), 1, "must end in .png"),
        (("denoise", "photo.png", "-o", "none/o.png"), 5, "none does not exist"),
        (("denoise", "photo.png", "-o", "photo.png", "--force"), 1, "the picture itself"),
        (
            ("inpaint", "photo.png", "--mask", "mask.png", "-o", "mask.png", "--force"),
            1,
            "the mask itself",
        ),
        (("inpaint", "photo.png", "--mask", "deep.png", "-o", "o.png"), 1, "the shape (24, 33)"),
        (("inpaint", "photo.png", "--mask", "none.png", "-o", "o.png"), 3, "does not exist"),
    ],
)
def test_refused_pictures(run, tmp_path, words, code, message):
    make_files(tmp_path)
    before = sorted(os.listdir(tmp_path))
    mask = (tmp_path / "mask.png").read_bytes()
    done = run(*words)
    assert done.exit_code == code, done.output
    assert message in done.output
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "mask.png").read_bytes() == mask


def test_a_picture_too_large(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    Image.fromarray(COLOUR).save("photo.png")
    done = run("denoise", "photo.png")
    assert done.exit_code == 3
    assert "photo.png is too large" in done.output
    # One that Pillow does not know, and so has not measured.
    tifffile.imwrite("wide.tif", DEEP[..., :3].astype(np.float64), photometric="rgb")
    done = run("denoise", "wide.tif")
    assert done.exit_code == 3
    assert "wide.tif is too large: 2376 values, and at most 800 are read" in done.output


def test_without_tifffile_it_says_what_to_install(run, tmp_path, monkeypatch):
    tifffile.imwrite("deep.tif", DEEP[..., :3], photometric="rgb")
    png16(tmp_path / "deep.png", DEEP[..., :3])
    monkeypatch.setitem(sys.modules, "tifffile", None)
    for words in (("deep.tif", "-o", "o.tif"), ("deep.png", "-o", "o.tif")):
        done = run("denoise", *words)
        assert done.exit_code == 1
        assert "polyspan[data]" in done.output
        assert not (tmp_path / "o.tif").exists()
    assert run("denoise", "deep.png", "-o", "o.png").exit_code == 0


def test_without_imagecodecs_it_says_what_to_install(tmp_path):
    png16(tmp_path / "deep.png", DEEP[..., :3])
    tifffile.imwrite(tmp_path / "deep.tif", DEEP[..., :3], photometric="rgb")
    tifffile.imwrite(tmp_path / "lzw.tif", DEEP[..., :3], photometric="rgb", compression="lzw")
    before = sorted(os.listdir(tmp_path))
    # In another process, since tifffile looks for it only once.
    code = (
        "import sys; sys.modules['imagecodecs'] = None; from polyspan.cli import main;"
        "sys.argv = ['polyspan', 'denoise', *sys.argv[1:]]; main()"
    )
    for words in (("deep.png", "-o", "o.tif"), ("deep.tif", "-o", "o.png"), ("lzw.tif",)):
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1
        assert 'imagecodecs: pip install "polyspan[cli]"' in done.stderr
        assert "Traceback" not in done.stderr
        assert sorted(os.listdir(tmp_path)) == before


def test_a_shell_sees_no_traceback(tmp_path):
    make_files(tmp_path)
    before = sorted(os.listdir(tmp_path))
    command = [sys.executable, "-m", "polyspan.cli", "denoise", "cut.tif", "-o", "o.tif"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert "error: cannot read cut.tif: " in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == before
