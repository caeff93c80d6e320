"""Pictures in files: gray or colour, 8 or 16 bits, with or without transparency."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.failures import Code, CommandError, reading, say, writing
from polyspan.files import whole_file

ENDINGS = (".png", ".tif", ".tiff", ".bmp", ".jpg", ".jpeg", ".webp")
_SIXTEEN = ("I;16", "I;16B", "I;16L", "I;16N")


@dataclass(frozen=True)
class Picture:
    """The pixels of a file."""

    path: Path
    pixels: np.ndarray
    """uint8 or uint16, (height, width) or (height, width, 3)."""
    alpha: np.ndarray | None
    """Transparency, (height, width), which nothing is done to."""

    @property
    def channel_axis(self) -> int | None:
        """The axis of the colours."""
        return None if self.pixels.ndim == 2 else -1


def read_picture(path: Path) -> Picture:
    """Read a picture; one with a palette becomes one with colours."""
    pillow = _pillow()
    with reading(path):
        try:
            with pillow.open(path) as image:
                image.load()
                return _take_apart(path, image)
        except (pillow.UnidentifiedImageError, pillow.DecompressionBombError) as error:
            raise CommandError(f"{path} is not a picture: {error}", Code.UNREADABLE) from error
        except (SyntaxError, ValueError, EOFError) as error:
            raise CommandError(f"cannot read {path}: {error}", Code.UNREADABLE) from error


def write_picture(picture: Picture, values: np.ndarray, path: Path, *, force: bool) -> None:
    """Write values between 0 and 1 with the depth and transparency of a picture."""
    kind = picture.pixels.dtype
    if kind == np.uint16 and path.suffix.lower() not in (".png", ".tif", ".tiff"):
        raise CommandError(f"{path}: a picture of 16 bits needs a name in .png or .tif")
    most = np.iinfo(kind).max
    pixels = np.rint(np.clip(values, 0, 1) * most).astype(kind)
    if picture.alpha is not None and path.suffix.lower() not in (".jpg", ".jpeg", ".bmp"):
        pixels = np.dstack([pixels, picture.alpha])
    with writing(path), whole_file(path, overwrite=force) as part:
        _pillow().fromarray(pixels).save(part)


def _take_apart(path: Path, image: Any) -> Picture:
    if image.mode in _SIXTEEN or (image.mode == "I" and image.format == "PNG"):
        return Picture(path, np.asarray(image).astype(np.uint16), None)
    if image.mode in ("P", "PA"):
        say("note", f"{path} has a palette: the result has colours")
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        raise CommandError(
            f"{path} has the mode {image.mode!r}: save it as gray or RGB, with 8 or 16 bits",
            Code.UNREADABLE,
        )
    pixels = np.array(image)
    if image.mode in ("LA", "RGBA"):
        alpha, pixels = pixels[..., -1], pixels[..., :-1]
        return Picture(path, pixels[..., 0] if image.mode == "LA" else pixels, alpha)
    return Picture(path, pixels, None)


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError as error:
        raise CommandError('pictures need pillow: pip install "polyspan[data]"') from error
    return _Pillow(PIL)


class _Pillow:
    """The few names of Pillow that are used, from the two modules that they are in."""

    def __init__(self, pil: Any) -> None:
        self.open, self.fromarray = pil.Image.open, pil.Image.fromarray
        self.UnidentifiedImageError = pil.UnidentifiedImageError
        self.DecompressionBombError = pil.Image.DecompressionBombError
