"""Pictures that are made to do harm: giant headers, packed text and profiles, cut-off files."""

import io
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
from imagecodecs import png_encode
from PIL import Image

from polyspan.cli.errors import Code, CommandError
from polyspan.cli.pictures import read_picture

SIDE = 60_000  # pixels: ten gigabytes in colour
MOST = 400 << 20  # bytes that reading such a file may take, with all that is imported for it
PACKED = zlib.compress(bytes(256 << 20), 1)
RNG = np.random.default_rng(0)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*chunks, depth=8, kind=2, size=(SIDE, SIDE), rows=b"\0" * 100):
    """Return a PNG with a header of so many pixels and hardly any of them."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, kind, 0, 0, 0))
    body = b"".join([head, *chunks, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")])
    return b"\x89PNG\r\n\x1a\n" + body


def tiff(bits):
    """Return a TIFF whose header promises SIDE × SIDE pixels."""
    tags = [
        (256, 4, 1, SIDE), (257, 4, 1, SIDE), (258, 3, 1, bits), (259, 3, 1, 1), (262, 3, 1, 1),
        (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, SIDE), (279, 4, 1, 100),
    ]  # fmt: skip
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    start = struct.pack("<2sHI", b"II", 42, 8)
    return start + struct.pack("<H", len(tags)) + entries + bytes(104)


def bmp():
    head = struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 24, 0, 0, 2835, 2835, 0, 0)
    return struct.pack("<2sIHHI", b"BM", 154, 0, 0, 54) + head + bytes(100)


def jpeg():
    """Return a small JPEG whose frame header says 65 500 × 65 500."""
    buffer = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(buffer, "jpeg")
    content = bytearray(buffer.getvalue())
    at = content.index(b"\xff\xc0") + 5
    content[at : at + 4] = struct.pack(">HH", 65_500, 65_500)
    return bytes(content)


HEADERS = {
    "eight.png": png(), "sixteen.png": png(depth=16), "gray.png": png(depth=16, kind=0),
    "eight.tif": tiff(8), "double.tif": tiff(64), "a.bmp": bmp(), "a.jpg": jpeg(),
}  # fmt: skip
SMALL = {"size": (20, 20), "rows": bytes(61 * 20)}
CHUNKS = {
    "text.png": png(chunk(b"zTXt", b"Comment\0\0" + PACKED), **SMALL),
    "unicode.png": png(chunk(b"iTXt", b"Comment\0\1\0\0\0" + PACKED), **SMALL),
    "profile.png": png(chunk(b"iCCP", b"sRGB\0\0" + PACKED), **SMALL),
    "many.png": png(*[chunk(b"zTXt", b"Comment\0\0" + PACKED[:65_000])] * 40, **SMALL),
}


READER = """
import json, sys
from pathlib import Path
import imagecodecs, tifffile
from polyspan.cli.errors import CommandError
from polyspan.cli.pictures import read_picture

for path in map(Path, sys.argv[1:]):
    try:
        read_picture(path)
        code, said = 0, ""
    except CommandError as error:
        code, said = int(error.code), str(error)
    # Of this program alone: `ru_maxrss` begins with that of the process which started it.
    status = Path("/proc/self/status").read_text()
    most = 1024 * int(status.split("VmHWM:")[1].split()[0])
    print(json.dumps([path.name, code, said, most]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Read all bombs in one process: exit code, message and peak memory after each."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of memory of a process is in /proc, which only Linux has")
    folder = tmp_path_factory.mktemp("bombs")
    paths = []
    for name, content in {**HEADERS, **CHUNKS}.items():
        paths.append(folder / name)
        paths[-1].write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READER, *map(str, paths)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(rows) == len(paths)
    return {name: others for name, *others in rows}


@pytest.mark.parametrize("name", HEADERS)
def test_a_giant_header_is_refused_before_memory_is_taken(name, outcomes):
    code, said, most = outcomes[name]
    assert code == Code.UNREADABLE
    assert name in said
    assert most < MOST


@pytest.mark.parametrize("name", CHUNKS)
def test_packed_text_and_profiles_are_not_unpacked(name, outcomes):
    """Pixels are there, or an error names the file; nothing of 256 MiB is ever made."""
    code, said, most = outcomes[name]
    assert code == 0 or (code == Code.UNREADABLE and name in said)
    assert most < MOST


def pictures(folder):
    """Write one picture of every kind."""
    colour = RNG.integers(0, 256, (24, 30, 3), dtype=np.uint8)
    for ending in ("png", "bmp", "jpg", "webp", "tif"):
        Image.fromarray(colour).save(folder / f"a.{ending}")
    deep = RNG.integers(0, 65536, (24, 30, 3)).astype(np.uint16)
    (folder / "deep.png").write_bytes(png_encode(deep))
    tifffile.imwrite(folder / "deep.tif", RNG.random((24, 30, 3)))
    return sorted(folder.iterdir())


@pytest.mark.filterwarnings("ignore")
def test_cut_off_and_changed_files_are_read_or_named(tmp_path):
    outcomes = set()
    for path in pictures(tmp_path):
        content = path.read_bytes()
        cut = [content[:n] for n in range(0, len(content), max(1, len(content) // 25))]
        for damaged in cut + [changed(content, seed) for seed in range(25)]:
            path.write_bytes(damaged)
            try:
                outcomes.add(read_picture(path).pixels.ndim)
            except CommandError as error:
                named = path.name in str(error)
                outcomes.add(("refused", error.code, named))
    assert outcomes == {3, ("refused", Code.UNREADABLE, True)}


def changed(content, seed):
    """Return content with three bytes changed, most often in the header."""
    rng, changed = np.random.default_rng(seed), bytearray(content)
    for at in (rng.random(3) ** 3 * len(content)).astype(int):
        changed[at] = rng.integers(256)
    return bytes(changed)
