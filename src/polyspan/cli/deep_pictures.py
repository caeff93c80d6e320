"""Pictures that Pillow cannot hold: PNG and TIFF with colours of 16 bits, TIFF with floats.

Pillow would reduce them to 8 bits. imagecodecs reads and writes PNG here, and tifffile TIFF.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from polyspan._optional import import_optional
from polyspan.cli.errors import CommandError, unreadable

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Colour types of a PNG header that Pillow reduces to 8 bits: RGB, gray with alpha, RGBA.
_COLOUR_TYPES = (2, 4, 6)
_HEADER_END = 33  # bytes of the signature and of the first chunk, whose length is fixed
# Values of a TIFF's photometric tag: gray with 0 as black, and RGB.
_GRAY, _COLOUR = 1, 2


def is_deep_png(path: Path) -> bool:
    """Tell whether a file is a PNG of 16 bits with colours or transparency."""
    with path.open("rb") as file:
        head = file.read(26)
    depth_and_type = head[24:]
    return head.startswith(_SIGNATURE) and depth_and_type in {bytes((16, k)) for k in _COLOUR_TYPES}


def read_deep_png(path: Path) -> np.ndarray:
    """Return the pixels, (height, width, channels); raise ValueError if the file is damaged.

    A transparent colour becomes an alpha channel. The size in the header is not checked here: the
    caller has compared it with Pillow's limit.
    """
    codec = find_imagecodecs(path)
    try:
        return np.asarray(codec.png_decode(path.read_bytes()))
    except codec.PngError as error:
        raise ValueError(f"its pixels are damaged or cut off: {error}") from error


def write_deep_png(pixels: np.ndarray, path: Path, icc_profile: bytes | None = None) -> None:
    """Write uint16 pixels of two, three or four channels."""
    content = find_imagecodecs(path).png_encode(np.ascontiguousarray(pixels))
    profile = b""
    if icc_profile:
        # imagecodecs writes no profile: insert it after the header.
        named = b"iCCP" + b"ICC profile\0\0" + zlib.compress(icc_profile)
        profile = struct.pack(">I", len(named) - 4) + named + struct.pack(">I", zlib.crc32(named))
    path.write_bytes(content[:_HEADER_END] + profile + content[_HEADER_END:])


def find_imagecodecs(path: Path) -> Any:
    """Import imagecodecs, which reads and writes deep PNG files."""
    # It logs a message of libpng about every interlaced file, although it reads it correctly.
    logging.getLogger("imagecodecs").setLevel(logging.ERROR)
    return import_optional("imagecodecs", f"{path}: a PNG with colours of 16 bits", "or use .tif")


def is_tiff(path: Path) -> bool:
    """Tell whether a file begins like a TIFF."""
    with path.open("rb") as file:
        return file.read(4) in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read_tiff(path: Path) -> tuple[np.ndarray, int, int]:
    """Return pixels (channels last), the number of colour channels, and the orientation."""
    with _opened(path) as file:
        if len(file.pages) != 1:
            raise several_pictures(path, len(file.pages))
        page = file.pages[0]
        _check_size(path, page.size)
        return _read_page(path, page)


def read_tiff_stack(path: Path) -> tuple[np.ndarray, int]:
    """Return the pixels of all pages (pages first, channels last), and the number of colours."""
    with _opened(path) as file:
        pages = list(file.pages)
        if len(pages) == 1:
            raise CommandError(f"{path} holds one picture, not a stack: leave --stack out")
        kinds = {(page.shape, str(page.dtype), page.photometric) for page in pages}
        if len(kinds) > 1:
            sizes = " and ".join(sorted({"×".join(map(str, page.shape)) for page in pages}))
            raise unreadable(
                f"{path} holds {len(pages)} pictures of {len(kinds)} kinds ({sizes}): the pages of "
                "a stack have the same size, colours and type"
            )
        _check_size(path, sum(page.size for page in pages))
        found = [_read_page(path, page) for page in pages]
    return np.stack([pixels for pixels, _, _ in found]), found[0][1]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a TIFF; say what is needed where its compression needs more."""
    try:
        with find_tifffile(path).TiffFile(path) as file:
            yield file
    except ValueError as error:
        if "imagecodecs" in str(error):  # tifffile leaves LZW and JPEG inside TIFF to it
            raise CommandError(
                f"{path}: the compression of this TIFF needs imagecodecs: "
                'pip install "polyspan[cli]", or save it without compression, or with zip'
            ) from error
        raise


def _read_page(path: Path, page: Any) -> tuple[np.ndarray, int, int]:
    pixels = page.asarray()
    if not pixels.size or pixels.ndim != len(page.axes):
        raise unreadable(f"cannot read {path}: it says that it has no pixels; it may be damaged")
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, -1)
    if page.photometric not in (_GRAY, _COLOUR) or page.axes not in ("YX", "YXS", "SYX"):
        kind = getattr(page.photometric, "name", page.photometric)
        raise unreadable(
            f"{path} has the axes {page.axes} and the colours {kind}: save it as gray or RGB"
        )
    orientation = page.tags.get(274)
    colours = 3 if page.photometric == _COLOUR else 1
    return pixels, colours, 1 if orientation is None else int(orientation.value)


def several_pictures(path: Path, n: int) -> CommandError:
    """Return the error for a file with more than one picture."""
    advice = ", or give all as a stack to polyspan denoise --stack" if is_tiff(path) else ""
    return unreadable(f"{path} holds {n} pictures: save one of them in a file{advice}")


def _check_size(path: Path, n_values: int) -> None:
    """Refuse a file whose header gives too many values: Pillow's limit, for four channels.

    Pillow does not check files that it cannot open.
    """
    from PIL import Image

    most = Image.MAX_IMAGE_PIXELS
    # Pillow warns at its limit and refuses at twice that.
    if most is not None and n_values > 8 * most:
        raise unreadable(
            f"{path} is too large: {n_values} values, and at most {8 * most} are read; cut it "
            "into parts"
        )


def write_tiff(
    pixels: np.ndarray,
    n_colours: int,
    path: Path,
    icc_profile: bytes | None = None,
    *,
    pages: bool = False,
) -> None:
    """Write pixels with the channels last; channels after the colours are transparency.

    With `pages` the first axis counts the pages of a stack.
    """
    with_channels = pixels.ndim == 3 + pages
    extra = pixels.shape[-1] - n_colours if with_channels else 0
    find_tifffile(path).imwrite(
        path,
        pixels,
        photometric="rgb" if n_colours == 3 else "minisblack",
        planarconfig="contig" if with_channels else None,
        extrasamples=["unassalpha"] * extra,
        iccprofile=icc_profile,
        metadata=None,
    )


def find_tifffile(path: Path) -> Any:
    """Import what reads and writes deep TIFF files."""
    # It logs what it finds odd in a damaged file, where one error will do.
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    return import_optional(
        "tifffile",
        f"{path}: a TIFF with colours of 16 bits, or with floats,",
        "or save the picture as .png",
    )
