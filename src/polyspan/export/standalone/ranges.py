"""Powers of two that keep squares in the range of their type."""

from __future__ import annotations

import math

import numpy as np


def _power_of_two(largest: float, dtype: np.dtype) -> float:
    """Return the power of two that brings `largest` near 1; 1 where squares stay in the range."""
    safe, most = (255, 1020) if dtype == np.float64 else (31, 120)
    exponent = math.frexp(largest)[1]
    if largest == 0.0 or abs(exponent) < safe:
        return 1.0
    return float(2.0 ** max(-most, min(most, -exponent)))
