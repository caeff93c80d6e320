"""Units of pictures: what would come out black or gray is refused, with the way to convert it.

Integers become fractions of the largest value of their type, as in scikit-image, and the noise is
counted in the same units. Two mistakes show: a wide type that holds levels of 8 bits, as arithmetic
makes it, and a noise that is counted in levels where the picture lies between 0 and 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, is_numpy, namespace, to_numpy
from polyspan.images.planes import as_pixels

#: Largest values of the types that pictures are stored in: these are fractions of them, however
#: dark they are.
STORED = (127, 255, 65535)
#: Numbers of channels of gray and of colours with an alpha channel.
WITH_ALPHA = (2, 4)
#: A picture in another type is black where no value reaches this part of the largest: 8-bit levels
#: in int16 reach .008.
BLACK = 1 / 64
#: What holds such values too, and their largest.
SMALLER = (("uint8", 255), ("uint16", 65535))
#: Range of a picture of fractions without noise: [0, 1], or [-1, 1]. Noise widens it by about ten
#: of its standard deviations.
FRACTIONS, WIDENED = 2.0, 10.0
#: Levels of an 8-bit picture.
LEVELS = 255


def check_integers(pixels: Array, holes: np.ndarray | None = None) -> None:
    """Refuse integers that would come out black as fractions of the largest value of their type.

    Pixels in the holes are not looked at.
    """
    xp = namespace(pixels)
    if not xp.isdtype(pixels.dtype, "integral") or not math.prod(pixels.shape):
        return
    limit = int(xp.iinfo(pixels.dtype).max)
    if limit in STORED:
        return
    seen = pixels if holes is None else pixels[~holes]
    low, high = int(xp.min(seen)), int(xp.max(seen))
    if not 0 < max(-low, high) < BLACK * limit:
        return
    ways = [
        f"{_converted(pixels, kind)} if {most} is white, or "
        for kind, most in SMALLER
        if 0 <= low <= high <= most
    ]
    first = "".join(ways[:1])
    kept = "float32" if max(-low, high) < 2**24 else "float64"
    raise ValueError(
        f"the image has the type {_name(pixels)} and values from {low} to {high}: integers are "
        f"divided by the largest value of their type, here {limit}, and all of it would come out "
        f"black; give {first}{_converted(pixels, kept)} to keep the values as they are"
    )


def check_alpha(pixels: Array, channel_axis: int | None, holes: np.ndarray | None = None) -> None:
    """Refuse a picture whose last channel is opaque everywhere: it is no colour.

    Denoised as one, it would tell that there is less noise than there is, and mix with the others.
    A channel that is not the same everywhere may be a colour, as in prints (CMYK).
    """
    xp = namespace(pixels)
    if channel_axis is None or pixels.shape[channel_axis] not in WITH_ALPHA:
        return
    place: list[Any] = [slice(None)] * pixels.ndim
    place[channel_axis] = -1
    last = pixels[tuple(place)]
    if holes is not None:
        last = last[~holes[tuple(place)]]
    if not math.prod(last.shape) or xp.isdtype(pixels.dtype, "bool"):
        return
    whole = xp.isdtype(pixels.dtype, "integral")
    opaque = (int(xp.iinfo(pixels.dtype).max),) if whole else (1, *STORED)
    level = float(xp.max(last))
    if level not in opaque or level != float(xp.min(last)):
        return
    n = pixels.shape[channel_axis]
    raise ValueError(
        f"the last of {n} channels is {level:g} everywhere, as an alpha channel is: leave "
        "it out, as by image[..., :-1], and put it back afterwards"
    )


def check_units(pixels: Array, sigma: Any) -> None:
    """Refuse a picture that would come out black, and a noise in levels for one of fractions."""
    check_integers(pixels)
    levels = None if sigma is None else to_numpy(as_pixels(sigma))
    if levels is None or levels.dtype.kind not in "fiu":
        return
    shown = "sigma=" if not levels.ndim else "sigma of about "
    levels = levels[levels > 0]
    # The middle of a map: single pixels may be worthless, and say so by a huge noise.
    usual = float(np.median(levels)) if levels.size else 0.0
    if not 1 <= usual < math.inf:
        return
    shown += f"{usual:g}"
    xp = namespace(pixels)
    if xp.isdtype(pixels.dtype, "integral"):
        limit = int(xp.iinfo(pixels.dtype).max)
        raise ValueError(
            f"{shown} with an image of the type {_name(pixels)}: its values are divided by "
            f"{limit}, and so is the noise in them, which cannot be larger than their range; where "
            f"sigma counts levels, give sigma / {limit}, here {usual / limit:.3g}"
        )
    found = _fractions(pixels, usual)
    if found is not None:
        raise ValueError(
            f"{shown} with an image whose values lie between {found[0]:.3g} and {found[1]:.3g}: "
            "sigma is counted in the units of the image; where it counts levels from 0 to 255, "
            f"give sigma / 255, here {usual / LEVELS:.3g}"
        )


def check_counts(pixels: np.ndarray, **given: float | None) -> None:
    """Refuse gains, offsets and noise of counts in levels, where the picture is one of fractions.

    Whole numbers are counts themselves, also where there is one of them at most.
    """
    if pixels.dtype.kind != "f" or (pixels == np.rint(pixels)).all():
        return
    for name, value in given.items():
        if value is None or not 1 <= value < math.inf:
            continue
        # Of a gain in levels this is the noise at white.
        found = _fractions(pixels, math.sqrt(value * LEVELS) if name == "gain" else value)
        if found is not None:
            raise ValueError(
                f"{name}={value:g} with an image whose values lie between {found[0]:.3g} and "
                f"{found[1]:.3g}: {name} is counted in the units of the image; where it counts "
                f"levels from 0 to 255, give {name} / 255, here {value / LEVELS:.3g}"
            )


def _fractions(pixels: Array, levels: float) -> tuple[float, float] | None:
    """Return the range of a picture that may be one of fractions with noise of so many levels."""
    xp = namespace(pixels)
    if not xp.isdtype(pixels.dtype, "real floating"):
        return 0.0, 1.0  # booleans
    low, high = float(xp.min(pixels)), float(xp.max(pixels))
    most = FRACTIONS + WIDENED * min(levels, LEVELS) / LEVELS
    # Of a constant picture nobody knows the units, and nothing is done to it.
    return (low, high) if 0 < high - low <= most else None


def _converted(pixels: Array, kind: str) -> str:
    return f"image.astype(np.{kind})" if is_numpy(pixels) else f"it as {kind}"


def _name(pixels: Array) -> str:
    return str(pixels.dtype).rpartition(".")[2]
