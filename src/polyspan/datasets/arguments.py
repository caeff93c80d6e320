"""Arguments that several functions of this folder take."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np


def whole_numbers(given: Any) -> tuple[int, ...]:
    """Return a whole number, or a sequence of them, as a tuple; anything else as an empty one.

    Examples
    --------
    >>> from polyspan.datasets.arguments import whole_numbers
    >>> whole_numbers(3), whole_numbers([1, 2]), whole_numbers(0.5)
    ((3,), (1, 2), ())
    """
    listed = (given,) if np.ndim(given) == 0 else tuple(given)
    if not all(isinstance(number, Integral) for number in listed):
        return ()
    return tuple(int(number) for number in listed)
