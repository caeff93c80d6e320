"""TIFF files that Pillow cannot keep: colours of 16 bits, colours and doubles in floats."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.failures import Code, CommandError

# How a TIFF says which colours it has: gray with 0 as black, and red, green and blue.
_GRAY, _COLOUR = 1, 2


def is_tiff(path: Path) -> bool:
    """Tell whether a file begins as a TIFF does."""
    with path.open("rb") as file:
        return file.read(4) in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read_tiff(path: Path) -> tuple[np.ndarray, int, int]:
    """Return pixels (channels last), the number of colours among the channels, orientation."""
    tifffile = find_tifffile(path)
    try:
        with tifffile.TiffFile(path) as file:
            if len(file.pages) != 1:
                raise CommandError(
                    f"{path} holds {len(file.pages)} pictures: save one of them in a file",
                    Code.UNREADABLE,
                )
            page = file.pages[0]
            _check_size(path, page.size)
            pixels = page.asarray()
    except (ValueError, RuntimeError, zlib.error) as error:  # the codecs raise the last two
        if "imagecodecs" in str(error):  # tifffile leaves LZW and JPEG inside TIFF to it
            raise CommandError(
                f"{path}: the compression of this TIFF needs imagecodecs: pip install imagecodecs, "
                "or save it without any, or with zip's"
            ) from error
        raise CommandError(f"cannot read {path}: {error}", Code.UNREADABLE) from error
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, -1)
    if page.photometric not in (_GRAY, _COLOUR) or page.axes not in ("YX", "YXS", "SYX"):
        kind = getattr(page.photometric, "name", page.photometric)
        raise CommandError(
            f"{path} has the axes {page.axes} and the colours {kind}: save it as gray or RGB",
            Code.UNREADABLE,
        )
    orientation = page.tags.get(274)
    colours = 3 if page.photometric == _COLOUR else 1
    return pixels, colours, 1 if orientation is None else int(orientation.value)


def _check_size(path: Path, n_values: int) -> None:
    """Refuse what the header says is too large, by Pillow's limit and for four channels.

    Pillow has not looked at the files that it does not know.
    """
    from PIL import Image

    most = Image.MAX_IMAGE_PIXELS
    if most is not None and n_values > 8 * most:  # Pillow warns at its limit, refuses at twice it
        raise CommandError(
            f"{path} is too large: {n_values} values, and at most {8 * most} are read; cut it "
            "into parts",
            Code.UNREADABLE,
        )


def write_tiff(
    pixels: np.ndarray, n_colours: int, path: Path, icc_profile: bytes | None = None
) -> None:
    """Write pixels with the channels last; those after the colours are transparency."""
    extra = 0 if pixels.ndim == 2 else pixels.shape[2] - n_colours
    find_tifffile(path).imwrite(
        path,
        pixels,
        photometric="rgb" if n_colours == 3 else "minisblack",
        planarconfig="contig" if pixels.ndim == 3 else None,
        extrasamples=["unassalpha"] * extra,
        iccprofile=icc_profile,
        metadata=None,
    )


def find_tifffile(path: Path) -> Any:
    """Import what reads and writes such files."""
    try:
        import tifffile
    except ImportError as error:
        raise CommandError(
            f"{path}: colours of 16 bits or floats in TIFF need tifffile: "
            "pip install tifffile, or save the picture as .png"
        ) from error
    return tifffile
