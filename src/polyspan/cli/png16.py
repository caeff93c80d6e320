"""PNG files with 16 bits per channel and several channels, which Pillow would cut to 8 bits."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numba
import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Number of channels by the colour type of the header, for those that Pillow does not keep.
CHANNELS = {2: 3, 4: 2, 6: 4}
#: The seven parts of an interlaced picture: first column and row, steps.
_PASSES = (
    (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)
)  # fmt: skip


def is_png16(path: Path) -> bool:
    """Tell whether a file is a PNG of 16 bits with colours or transparency."""
    with path.open("rb") as file:
        head = file.read(26)
    return head[:8] == SIGNATURE and len(head) == 26 and head[24] == 16 and head[25] in CHANNELS


def read_png16(path: Path) -> np.ndarray:
    """Return the pixels, (height, width, channels); ValueError where the file is damaged."""
    chunks = _chunks(path.read_bytes())
    width, height, _, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    n = CHANNELS[colour]
    pixels = np.empty((height, width, n), dtype=np.uint16)
    # Interlaced pictures have about twice the rows, each with one byte more. What a forged file
    # holds beyond is not unpacked.
    most = 2 * (pixels.nbytes + height)
    packed = b"".join(data for kind, data in chunks if kind == b"IDAT")
    try:
        data = np.frombuffer(zlib.decompressobj().decompress(packed, most), dtype=np.uint8)
    except zlib.error as error:
        raise ValueError(f"its pixels are damaged: {error}") from error
    for left, top, across, down in _PASSES if interlaced else ((0, 0, 1, 1),):
        part = pixels[top::down, left::across]
        if not part.size:
            continue
        rows, length = part.shape[0], part.shape[1] * n * 2
        if len(data) < rows * (length + 1):
            raise ValueError("some of its pixels are missing")
        lines = data[: rows * (length + 1)].reshape(rows, length + 1)
        part[:] = _unfilter(lines, 2 * n).view(">u2").reshape(part.shape)
        data = data[rows * (length + 1) :]
    return pixels


def write_png16(pixels: np.ndarray, path: Path, icc_profile: bytes | None = None) -> None:
    """Write uint16 pixels of two, three or four channels."""
    height, width, n = pixels.shape
    colour = {channels: kind for kind, channels in CHANNELS.items()}[n]
    line = np.ascontiguousarray(pixels.astype(">u2")).view(np.uint8).reshape(height, -1)
    # Every row as differences to the pixel before: what filter 1 of the format means.
    lines = np.empty((height, 1 + line.shape[1]), dtype=np.uint8)
    lines[:, 0] = 1
    lines[:, 1 : 1 + 2 * n] = line[:, : 2 * n]
    lines[:, 1 + 2 * n :] = line[:, 2 * n :] - line[:, : -2 * n]
    with path.open("wb") as file:
        file.write(SIGNATURE)
        file.write(_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0)))
        if icc_profile:
            file.write(_chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(icc_profile)))
        file.write(_chunk(b"IDAT", zlib.compress(lines.tobytes(), 5)))
        file.write(_chunk(b"IEND", b""))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    """Return the parts of a file, checked."""
    found, at = [], len(SIGNATURE)
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        if content[at + 8 + length : at + 12 + length] != _chunk(kind, data)[-4:]:
            raise ValueError(f"its part {kind.decode('latin-1')!r} is damaged or cut off")
        found.append((kind, data))
        at += 12 + length
        if kind == b"IEND":
            return found
    raise ValueError("its end is missing")


@numba.njit(cache=True)
def _unfilter(lines: np.ndarray, step: int) -> np.ndarray:
    """Undo the differences of every row; the first byte of a row says to what they were taken."""
    rows, length = lines.shape[0], lines.shape[1] - 1
    out = np.zeros((rows, length), dtype=np.uint8)
    for i in range(rows):
        kind = lines[i, 0]
        for j in range(length):
            left = int(out[i, j - step]) if j >= step else 0
            up = int(out[i - 1, j]) if i > 0 else 0
            corner = int(out[i - 1, j - step]) if i > 0 and j >= step else 0
            if kind == 0:
                guess = 0
            elif kind == 1:
                guess = left
            elif kind == 2:
                guess = up
            elif kind == 3:
                guess = (left + up) // 2
            else:  # of the three neighbours the one nearest to left + up - corner
                a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                guess = left if a <= b and a <= c else (up if b <= c else corner)
            out[i, j] = (lines[i, j + 1] + guess) & 255
    return out
