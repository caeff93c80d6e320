"""Picture files: gray or colour, 8 or 16 bits or floats, with or without transparency."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.base.files import atomic_write
from polyspan.base.optional import import_optional
from polyspan.cli import deep_pictures as deep
from polyspan.cli.errors import CommandError, decoding, reading, say, unreadable, writing
from polyspan.cli.jpeg import Compression

TIFF, JPEG = (".tif", ".tiff"), (".jpg", ".jpeg")
ENDINGS = (".png", *TIFF, ".bmp", *JPEG, ".webp")
_SIXTEEN = ("I;16", "I;16B", "I;16L", "I;16N")
#: Modes of Pillow that are converted, and the modes that they are converted to.
_CONVERTED = {
    "1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA", "RGBX": "RGB", "YCbCr": "RGB", "HSV": "RGB"
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """The pixels of a file, rotated upright; of a stack the pixels of all its pages."""

    path: Path
    pixels: np.ndarray
    """uint8, uint16 or float, (height, width) or (height, width, 3); 4 channels for CMYK. Pages of
    a stack come before the height."""
    alpha: np.ndarray | None = None
    """Transparency, without channels, of the same type; it is copied to the result."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Copied to the result: colour profile, resolution, and EXIF data such as date and camera."""
    lossy: bool = False
    """Whether the format changes pixels near edges, as JPEG does."""
    compression: Compression | None = None
    """Of a JPEG."""
    stacked: bool = False
    """Whether the first axis counts the pages of a stack."""

    @classmethod
    def of(cls, path: Path, pixels: np.ndarray, n_colours: int, **more: Any) -> Picture:
        """Return the picture with colours and transparency separated."""
        if pixels.ndim == 2 + more.get("stacked", False):
            return cls(path, pixels, None, **more)
        colours = pixels[..., 0] if n_colours == 1 else pixels[..., :n_colours]
        alpha = pixels[..., n_colours] if pixels.shape[-1] > n_colours else None
        return cls(path, colours, alpha, **more)

    @property
    def channel_axis(self) -> int | None:
        """The axis of the colour channels; None for gray."""
        return None if self.pixels.ndim == 2 + self.stacked else -1

    @property
    def stack_axis(self) -> int | None:
        """The axis of the pages; None for one picture."""
        return 0 if self.stacked else None

    @property
    def printed(self) -> bool:
        """Whether it has the four colours of print."""
        return self.channel_axis is not None and self.pixels.shape[-1] == 4

    @property
    def max_level(self) -> float:
        """The value of a pixel in the file that corresponds to 1."""
        kind = self.pixels.dtype
        return float(np.iinfo(kind).max) if kind.kind == "u" else 1.0

    @property
    def depth(self) -> str:
        """Depth that not every format can hold: "16 bits" or "floats"; empty for 8 bits."""
        if self.pixels.dtype.kind == "f":
            return "floats"
        return "16 bits" if self.pixels.dtype == np.uint16 else ""

    @property
    def unit(self) -> str:
        """What a difference of pixels is counted in, with a blank before it; nothing for floats."""
        return "" if self.depth == "floats" else " levels"

    def as_pixels(self, values: np.ndarray) -> np.ndarray:
        """Return values between 0 and 1 with the type of the pixels."""
        kind = self.pixels.dtype
        if kind.kind == "f":
            return values.astype(kind)
        return np.asarray(np.rint(np.clip(values, 0, 1) * self.max_level).astype(kind))

    def writer(self, path: Path) -> str:
        """Return which package writes a result like this picture to a file."""
        ending = path.suffix.lower()
        several = self.channel_axis is not None or self.alpha is not None
        if ending == ".png" and self.depth == "16 bits" and several:
            return "imagecodecs"
        deep_gray = self.pixels.dtype == np.float64
        if ending in TIFF and (self.stacked or (self.depth and (several or deep_gray))):
            return "tifffile"
        return "Pillow"


def read_picture(path: Path, *, notes: bool = True) -> Picture:
    """Read a picture; a palette is converted to colours.

    Parameters
    ----------
    path : Path
    notes : bool, default=True
        Whether to print how the format of the result will differ from the file.
    """
    pillow = _pillow()
    with reading(path), decoding(path):
        try:
            with pillow.Image.open(path) as image:
                n_frames = getattr(image, "n_frames", 1)
                # MPO: phones store a depth map or a second view after the photograph.
                if n_frames > 1 and image.format != "MPO":
                    raise deep.several_pictures(path, n_frames)
                if deep.is_deep_png(image):
                    return _from_deep_png(path, image)
                if _needs_tifffile(image):
                    return _from_tiff(path, _metadata(image, image))
                image.load()
                found = _from_pillow(path, pillow.ImageOps.exif_transpose(image), image, notes)
                return replace(found, compression=Compression.of(image))
        except pillow.UnidentifiedImageError as error:
            if deep.is_tiff(path):
                return _from_tiff(path, {})
            raise unreadable(
                f"{path} is not a picture, or has a format that Pillow cannot read"
            ) from error
        except pillow.Image.DecompressionBombError as error:
            raise unreadable(f"{path} is too large: {error}; cut it into parts") from error


def read_stack(path: Path) -> Picture:
    """Read all pages of a TIFF, which have one size and type."""
    with reading(path), decoding(path):
        if not deep.is_tiff(path):
            raise unreadable(f"{path} is no TIFF: --stack reads the pages of {' and '.join(TIFF)}")
        pixels, n_colours, _ = deep.read_tiff(path, stack=True)
        return Picture.of(path, pixels, n_colours, stacked=True)


def read_mask(path: Path, *, per_channel: bool = False) -> np.ndarray:
    """Return which pixels are missing: those that are neither black nor transparent.

    With `per_channel` the result has the channels of the mask, each with pixels of its own.
    """
    picture = read_picture(path, notes=False)
    if per_channel and picture.channel_axis is None:
        raise CommandError(f"{path} is gray: --per-channel needs a mask with colours")
    # Near edges a JPEG has shades of gray instead of black.
    least = picture.max_level / 2 if picture.lossy else 0
    marked = picture.pixels > least
    if picture.alpha is not None:
        seen = picture.alpha > 0
        marked &= seen if marked.ndim == 2 else seen[..., None]
    if per_channel or marked.ndim == 2:
        return marked
    return np.asarray(marked.any(axis=2))


def check_ending(picture: Picture, path: Path) -> None:
    """Raise an error, before the work begins, if the format cannot hold the result."""
    allowed: tuple[str, ...] = ENDINGS
    if picture.printed:
        what, allowed = "the colours of print (CMYK)", (*TIFF, *JPEG)
    elif picture.depth:
        what = picture.depth
        allowed = TIFF if picture.depth == "floats" else (".png", *TIFF)
    if path.suffix.lower() not in allowed:
        raise CommandError(
            f"{path}: {picture.path} has {what}, which needs a name in {' or '.join(allowed)}"
        )
    if picture.writer(path) == "tifffile":
        deep.find_tifffile(path)
    if picture.writer(path) == "imagecodecs":
        deep.find_imagecodecs(path)


def write_picture(picture: Picture, values: np.ndarray, path: Path, *, force: bool) -> None:
    """Write values between 0 and 1 with the depth, transparency and metadata of a picture."""
    alpha, several = picture.alpha, picture.channel_axis is not None
    if alpha is not None and path.suffix.lower() in (".bmp", *JPEG):
        say("note", f"{path} cannot be transparent: transparent parts become white")
        opacity = (alpha / picture.max_level)[(..., None) if several else ...]
        values, alpha = values * opacity + (1 - opacity), None
    pixels = picture.as_pixels(values)
    n_colours = pixels.shape[-1] if several else int(alpha is not None)
    if alpha is not None:
        colours = pixels if several else pixels[..., None]
        pixels = np.concatenate([colours, alpha[..., None]], axis=-1)
    profile, writer = picture.metadata.get("icc_profile"), picture.writer(path)
    if writer == "imagecodecs" and profile:
        say("note", f"{path} gets no colour profile: of 16 bits in colour only a .tif keeps it")
    with writing(path), atomic_write(path, overwrite=force) as temporary:
        if writer == "imagecodecs":
            deep.write_deep_png(pixels, temporary)
        elif writer == "tifffile":
            deep.write_tiff(pixels, n_colours, temporary, profile)
        else:
            _save(pixels, temporary, picture)


def _save(pixels: np.ndarray, temporary: Path, picture: Picture) -> None:
    """Write pixels with Pillow: 8 bits, gray with 16 bits, or gray floats."""
    pillow, ending = _pillow(), temporary.suffix.lower()
    if picture.printed:
        height, width = pixels.shape[:2]
        image = pillow.Image.frombytes("CMYK", (width, height), pixels.tobytes())
    else:
        image = pillow.Image.fromarray(pixels)
    how = dict(picture.metadata)
    if ending in TIFF:
        how.pop("exif", None)
    if ending in JPEG:
        how["quality"] = 95
    if ending == ".webp":
        how["lossless"] = True
    image.save(temporary, **how)


def _needs_tifffile(image: Any) -> bool:
    """Tell whether Pillow would reduce the pixels of a TIFF to 8 bits, or guess their sign."""
    if image.format != "TIFF" or image.mode in (*_SIXTEEN, "F"):
        return False
    return bool(np.max(image.tag_v2.get(258, 1)) > 8)


def _from_pillow(path: Path, image: Any, opened: Any, notes: bool) -> Picture:
    """Return the picture of a file that Pillow has read."""
    metadata, lossy = _metadata(image, opened), opened.format in ("JPEG", "MPO", "WEBP")
    if image.mode in _SIXTEEN or (image.mode == "I" and opened.format == "PNG"):
        return Picture(path, np.asarray(image).astype(np.uint16), None, metadata)
    if image.mode in ("F", "CMYK"):
        return Picture(path, np.array(image), None, metadata, lossy)
    if notes and image.mode in ("P", "PA"):
        say("note", f"{path} has a palette: the result has colours")
    if notes and image.mode == "1":
        say("note", f"{path} is black and white: the result has shades of gray")
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode in ("L", "RGB") and "transparency" in image.info:
        image = image.convert(f"{image.mode}A")
    elif image.mode in _CONVERTED:
        image = image.convert(_CONVERTED[image.mode])
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        raise unreadable(
            f"{path} has the mode {image.mode!r}: save it as gray or RGB, with 8 or 16 bits"
        )
    n_colours = 1 if image.mode in ("L", "LA") else 3
    return Picture.of(path, np.array(image), n_colours, metadata=metadata, lossy=lossy)


def _from_deep_png(path: Path, image: Any) -> Picture:
    image.load()  # the orientation may be stored after the pixels
    pixels = deep.read_deep_png(path)
    turned = upright(pixels, image.getexif().get(deep.ORIENTATION, 1))
    n_colours = 1 if pixels.shape[2] == 2 else 3
    return Picture.of(path, turned, n_colours, metadata=_metadata(image, image))


def _from_tiff(path: Path, metadata: dict[str, Any]) -> Picture:
    pixels, n_colours, orientation = deep.read_tiff(path)
    return Picture.of(path, upright(pixels, orientation), n_colours, metadata=metadata)


def upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Rotate and mirror a picture by its EXIF orientation, from 1 to 8."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def _metadata(image: Any, opened: Any) -> dict[str, Any]:
    """Return the colour profile, resolution and EXIF data, which are copied to the result."""
    found = {}
    if opened.info.get("icc_profile"):
        found["icc_profile"] = opened.info["icc_profile"]
    # A file without a resolution has 1 for both axes.
    if min(opened.info.get("dpi", (0,))) > 1:
        found["dpi"] = opened.info["dpi"]
    if opened.format in ("JPEG", "MPO", "PNG", "WEBP"):
        exif = image.getexif()
        # The result is upright and needs no orientation.
        exif.pop(deep.ORIENTATION, None)
        # Some cameras write values that Pillow cannot save.
        with suppress(ValueError, TypeError, KeyError, struct.error):
            found |= {"exif": exif.tobytes()} if len(exif) else {}
    return found


def _pillow() -> Any:
    # PIL.ImageOps imports PIL.Image.
    import_optional("PIL.ImageOps", "reading a picture")
    import PIL

    return PIL
