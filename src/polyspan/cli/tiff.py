"""TIFF files of 16 bits and floats, and stacks of pages, which Pillow would reduce to 8 bits."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import IO, Any

import numpy as np

from polyspan.base.optional import import_optional
from polyspan.cli.errors import CommandError, unreadable

# Values of a TIFF's photometric tag: gray with 0 as black, and RGB.
_GRAY, _COLOUR = 1, 2
ORIENTATION = 274  # the tag of EXIF and TIFF
_KINDS = (np.uint8, np.uint16, np.float32, np.float64)


def is_tiff(path: Path) -> bool:
    """Tell whether a file begins like a TIFF."""
    with path.open("rb") as file:
        return file.read(4) in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def read_tiff(path: Path, *, stack: bool = False) -> tuple[np.ndarray, int, int]:
    """Return pixels (channels last), the number of colour channels, and the orientation.

    The first axis counts the pages of a stack, which must have the same size and type.
    """
    with find_tifffile(path).TiffFile(path) as file:
        pages = list(file.pages)
        if stack and len(pages) == 1:
            raise CommandError(f"{path} holds one picture, not a stack: leave --stack out")
        if len(pages) != 1 and not stack:
            raise several_pictures(path, len(pages))
        kinds = {(page.shape, str(page.dtype), page.photometric) for page in pages}
        if len(kinds) > 1:
            sizes = " and ".join(sorted({"×".join(map(str, page.shape)) for page in pages}))
            raise unreadable(
                f"{path} holds {len(pages)} pictures of {len(kinds)} kinds ({sizes}): the pages of "
                "a stack have the same size, colours and type"
            )
        _check_size(path, sum(page.size for page in pages))
        found = [_read_page(path, page) for page in pages]
        turned = pages[0].tags.get(ORIENTATION)
    colours = 3 if pages[0].photometric == _COLOUR else 1
    return np.stack(found) if stack else found[0], colours, int(turned.value) if turned else 1


def _read_page(path: Path, page: Any) -> np.ndarray:
    """Return the pixels of a page, with a type that can be written again."""
    try:
        pixels: np.ndarray = page.asarray()
    except ValueError as error:
        if "imagecodecs" not in str(error):  # tifffile leaves LZW and JPEG inside TIFF to it
            raise
        raise CommandError(
            f"{path}: the compression of this TIFF needs imagecodecs: "
            'pip install "polyspan[cli]", or save it without compression, or with zip'
        ) from error
    if not pixels.size or pixels.ndim != len(page.axes):
        raise unreadable(f"cannot read {path}: it says that it has no pixels; it may be damaged")
    if page.photometric not in (_GRAY, _COLOUR) or page.axes not in ("YX", "YXS", "SYX"):
        kind = getattr(page.photometric, "name", page.photometric)
        raise unreadable(
            f"{path} has the axes {page.axes} and the colours {kind}: save it as gray or RGB"
        )
    if pixels.dtype == np.float16:
        pixels = pixels.astype(np.float32)
    if pixels.dtype not in _KINDS:
        raise unreadable(
            f"{path} has values of the type {pixels.dtype}: save it with 8 or 16 bits or as floats"
        )
    return np.moveaxis(pixels, 0, -1) if page.axes == "SYX" else pixels


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
    file: IO[bytes], pixels: np.ndarray, n_colours: int, metadata: dict[str, Any]
) -> None:
    """Write pixels, of colours with the channels last; channels after these are transparency.

    Axes before the height and the width count the pages of a stack.
    """
    n_clear = (pixels.shape[-1] - n_colours) if n_colours else 0
    dpi = metadata.get("dpi")
    find_tifffile(Path("the output")).imwrite(
        file,
        pixels,
        photometric="rgb" if n_colours == 3 else "minisblack",
        planarconfig="contig" if n_colours else None,
        extrasamples=["unassalpha"] * n_clear,
        iccprofile=metadata.get("icc_profile"),
        resolution=None if dpi is None else tuple(map(float, dpi)),
        resolutionunit=None if dpi is None else "INCH",
        metadata=None,
    )


def find_tifffile(path: Path) -> Any:
    """Import what reads and writes deep TIFF files."""
    # It logs what it finds odd in a damaged file, where one error will do.
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    return import_optional(
        "tifffile",
        f"{path}: a TIFF with 16 bits, or with floats,",
        "or save the picture as .png",
    )
