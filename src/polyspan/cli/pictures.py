"""Picture files: gray or colour, 8 or 16 bits or floats, with or without transparency."""

from __future__ import annotations

import logging
import struct
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from polyspan.base.optional import import_optional
from polyspan.cli import tiff
from polyspan.cli.errors import CommandError, say, unreadable
from polyspan.cli.files import STANDARD, Job, Writer, reading
from polyspan.cli.jpeg import Compression
from polyspan.cli.options import JPEG, PICTURES, TIFF

#: Modes of Pillow that are converted to gray or colours; a palette and others are refused.
_CONVERTED = ("1", "P", "PA", "La", "RGBa", "RGBX", "YCbCr", "HSV")
_PLAIN = ("L", "LA", "RGB", "RGBA")
BITS = 258  # the tag of a TIFF


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

    def encoder(self, path: Path) -> str:
        """Return which package writes a result like this picture; Pillow writes 8 bits."""
        if path.suffix.lower() in TIFF and (self.depth or self.stacked):
            return "tifffile"
        several = self.channel_axis is not None or self.alpha is not None
        return "imagecodecs" if self.depth and several else "Pillow"


def target_of(job: Job, photo: Path, output: Path | None, suffix: str) -> Path:
    """Return the file to write, after a check that it can be written.

    Parameters
    ----------
    job : Job
    photo : Path
        The picture.
    output : Path or None
        A file or a folder; None: beside the picture.
    suffix : str
        What the name gets after that of the picture.
    """
    if STANDARD in (photo, output):
        raise CommandError("pictures are read from files and written to files: - is for tables")
    # Formats that polyspan reads but does not write, GIF for one, give a PNG.
    ending = photo.suffix if photo.suffix.lower() in PICTURES else ".png"
    name = f"{photo.stem}-{suffix}{ending}"
    target = photo.with_name(name) if output is None else output
    if target.is_dir() and output is not None:
        target = target / name
    job.check(f"{suffix} picture", target, PICTURES)
    return target


def read_picture(path: Path, *, notes: bool = True) -> Picture:
    """Read a picture; a palette is converted to colours.

    Parameters
    ----------
    path : Path
    notes : bool, default=True
        Whether to print how the format of the result will differ from the file.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    with reading(path):
        try:
            with Image.open(path) as image:
                n_frames = getattr(image, "n_frames", 1)
                # MPO: phones store a depth map or a second view after the photograph.
                if n_frames > 1 and image.format != "MPO":
                    raise tiff.several_pictures(path, n_frames)
                if _is_deep_png(image):
                    return _from_deep_png(path, image)
                if np.max(getattr(image, "tag_v2", {}).get(BITS, 1)) > 8:
                    return _from_tiff(path, _metadata(image, image))
                image.load()
                found = _from_pillow(path, ImageOps.exif_transpose(image), image, notes)
                return replace(found, compression=Compression.of(image))
        except UnidentifiedImageError as error:
            if tiff.is_tiff(path):
                return _from_tiff(path, {})
            raise unreadable(
                f"{path} is not a picture, or has a format that Pillow cannot read"
            ) from error
        except Image.DecompressionBombError as error:
            raise unreadable(f"{path} is too large: {error}; cut it into parts") from error


def read_stack(path: Path) -> Picture:
    """Read all pages of a TIFF, which have one size and type."""
    with reading(path):
        if not tiff.is_tiff(path):
            raise unreadable(f"{path} is no TIFF: --stack reads the pages of {' and '.join(TIFF)}")
        pixels, n_colours, _ = tiff.read_tiff(path, stack=True)
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
    allowed: tuple[str, ...] = PICTURES
    if picture.printed:
        what, allowed = "the colours of print (CMYK)", (*TIFF, *JPEG)
    elif picture.depth:
        what = picture.depth
        allowed = TIFF if picture.depth == "floats" else (".png", *TIFF)
    if path.suffix.lower() not in allowed:
        raise CommandError(
            f"{path}: {picture.path} has {what}, which needs a name in {' or '.join(allowed)}"
        )
    if picture.encoder(path) == "tifffile":
        tiff.find_tifffile(path)
    if picture.encoder(path) == "imagecodecs":
        _imagecodecs(path)


def picture_writer(picture: Picture, values: np.ndarray, path: Path) -> Writer:
    """Return what writes values between 0 and 1 with the depth and metadata of a picture."""
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
    encoder = picture.encoder(path)
    if encoder == "imagecodecs" and "icc_profile" in picture.metadata:
        say("note", f"{path} gets no colour profile: of 16 bits in colour only a .tif keeps it")

    def write(file: IO[bytes]) -> None:
        if encoder == "tifffile":
            tiff.write_tiff(file, pixels, n_colours, picture.metadata)
        elif encoder == "imagecodecs":
            file.write(_imagecodecs(path).png_encode(np.ascontiguousarray(pixels)))
        else:
            _save(file, pixels, path.suffix.lower(), picture)

    return write


def _save(file: IO[bytes], pixels: np.ndarray, ending: str, picture: Picture) -> None:
    """Write pixels with Pillow: 8 bits, or gray with 16 bits."""
    from PIL import Image

    if picture.printed:
        height, width = pixels.shape[:2]
        image = Image.frombytes("CMYK", (width, height), pixels.tobytes())
    else:
        image = Image.fromarray(pixels)
    how = dict(picture.metadata)
    if ending in TIFF:
        how.pop("exif", None)
    if ending in JPEG:
        how["quality"] = 95
    if ending == ".webp":
        how["lossless"] = True
    image.save(file, format=Image.registered_extensions()[ending], **how)


def _from_pillow(path: Path, image: Any, opened: Any, notes: bool) -> Picture:
    """Return the picture of a file that Pillow has read."""
    metadata, lossy = _metadata(image, opened), opened.format in ("JPEG", "MPO", "WEBP")
    if opened.format == "PNG" and image.mode.startswith("I"):
        return Picture(path, np.asarray(image).astype(np.uint16), None, metadata)
    if image.mode == "CMYK":
        return Picture(path, np.array(image), None, metadata, lossy)
    if notes and image.mode in ("P", "PA"):
        say("note", f"{path} has a palette: the result has colours")
    if notes and image.mode == "1":
        say("note", f"{path} is black and white: the result has shades of gray")
    if image.mode in _CONVERTED or (image.mode in _PLAIN and "transparency" in image.info):
        clear = "A" if image.has_transparency_data else ""
        image = image.convert(("L" if image.mode in ("1", "L", "La") else "RGB") + clear)
    if image.mode not in _PLAIN:
        raise unreadable(
            f"{path} has the mode {image.mode!r}: save it as gray or RGB, with 8 or 16 bits"
        )
    n_colours = 1 if image.mode in ("L", "LA") else 3
    return Picture.of(path, np.array(image), n_colours, metadata=metadata, lossy=lossy)


def _is_deep_png(image: Any) -> bool:
    """Tell whether Pillow would reduce an open PNG to 8 bits: 16 bits of colours or with alpha."""
    if image.format != "PNG" or image.mode not in ("LA", "RGB", "RGBA"):
        return False
    return any(str(tile[3]).endswith(";16B") for tile in image.tile)


def _from_deep_png(path: Path, image: Any) -> Picture:
    """Read by imagecodecs; a transparent colour becomes an alpha channel."""
    image.load()  # the orientation may be stored after the pixels
    pixels = np.asarray(_imagecodecs(path).png_decode(path.read_bytes()))
    turned = upright(pixels, image.getexif().get(tiff.ORIENTATION, 1))
    n_colours = 1 if pixels.shape[2] == 2 else 3
    return Picture.of(path, turned, n_colours, metadata=_metadata(image, image))


def _from_tiff(path: Path, metadata: dict[str, Any]) -> Picture:
    pixels, n_colours, orientation = tiff.read_tiff(path)
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
        exif.pop(tiff.ORIENTATION, None)
        # Some cameras write values that Pillow cannot save.
        with suppress(ValueError, TypeError, KeyError, struct.error):
            found |= {"exif": exif.tobytes()} if len(exif) else {}
    return found


def _imagecodecs(path: Path) -> Any:
    # It logs a message of libpng about every interlaced file, although it reads it correctly.
    logging.getLogger("imagecodecs").setLevel(logging.ERROR)
    return import_optional("imagecodecs", f"{path}: a PNG with colours of 16 bits", "or use .tif")
