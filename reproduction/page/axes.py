"""Axes of a drawing: limits around the data, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

MARGIN = 0.05
"""Free space beyond the outermost points, as a part of the axis."""
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Axis:
    """Limits (of the logarithm, where it is one) and ticks with their labels."""

    low: float
    high: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the low end of the axis, 1 at the high end."""
        if self.log:
            # An error bar may reach below zero; it then ends at the edge.
            value = math.log10(value) if value > 0 else -math.inf
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


def drawable(value: float, log: bool) -> bool:
    """Return whether a value has a place on the axis."""
    return math.isfinite(value) and (value > 0 or not log)


def make_axis(values: Sequence[float], log: bool, at_values: bool = False) -> Axis:
    """Put an axis around values.

    Parameters
    ----------
    values : sequence of float
        What must fit; values that have no place on the axis are ignored.
    log : bool
        Whether the axis is logarithmic.
    at_values : bool, default=False
        Put the ticks at the values themselves where they are few and far enough apart, as the
        paper does for its noise levels.
    """
    kept = sorted({float(v) for v in values if drawable(v, log)}) or [1.0]
    low, high = (math.log10(kept[0]), math.log10(kept[-1])) if log else (kept[0], kept[-1])
    spread = high - low
    if spread <= 1e-12 * max(abs(low), abs(high)):
        spread = (abs(high) if not log else 0) or 1.0
    low, high = low - MARGIN * spread, high + MARGIN * spread
    bare = Axis(low, high, log, ())
    texts = [f"{v:.4g}" for v in kept[:9]]
    if at_values and len(kept) <= 8 and _apart([bare.place(float(text)) for text in texts]):
        return Axis(low, high, log, tuple(zip(kept, texts, strict=True)))
    return Axis(low, high, log, tuple(_log_ticks(low, high) if log else _ticks(low, high)))


def _apart(places: Sequence[float], gap: float = 0.12) -> bool:
    return all(b - a >= gap for a, b in pairwise(places))


def _ticks(low: float, high: float, about: int = 5) -> list[tuple[float, str]]:
    """Return about as many round numbers as asked for, between the limits."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - 1e-9))
    numbers = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    # The fewest digits that still tell each tick as it is.
    forms = [f".{k}f" for k in range(5)] if max(abs(low), abs(high)) < 1e5 else []
    for form in [*forms, *(f".{k}g" for k in range(3, 17))]:
        texts = [format(n, form) for n in numbers]
        if all(abs(float(t) - n) <= 1e-3 * step for t, n in zip(texts, numbers, strict=True)):
            break
    return list(zip(numbers, texts, strict=True))


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return powers of ten, with 2 and 5 times them or all digits where the axis is short.

    Limits are logarithms.
    """
    decades = range(math.floor(low), math.ceil(high) + 1)
    for digits in ((1,), (1, 2, 5), range(1, 10)):
        exponents = [(d, k) for k in decades for d in digits if low <= math.log10(d) + k <= high]
        if len(exponents) >= 3:
            every = math.ceil(len(exponents) / 8)
            return [(d * 10.0**k, _power_text(d, k)) for d, k in exponents[::every]]
    return _ticks(10**low, 10**high)


def _power_text(digit: int, exponent: int) -> str:
    if -3 <= exponent <= 3:
        return f"{digit * 10.0**exponent:g}"
    factor = "" if digit == 1 else f"{digit}·"
    return f"{factor}10{str(exponent).translate(_RAISED)}"


def spans(values: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Return both ends of every error bar, and the value itself where there is none."""
    y, e = np.asarray(values, dtype=float), np.nan_to_num(np.asarray(errors, dtype=float))
    return [*(y - e).tolist(), *(y + e).tolist(), *y.tolist()]
