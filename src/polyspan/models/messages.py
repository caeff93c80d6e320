"""Warnings that point at the user's own line."""

from __future__ import annotations

import sys
import warnings

_OURS = ("polyspan.", "sklearn.base")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside this package and scikit-learn's wrapper around `fit`."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
