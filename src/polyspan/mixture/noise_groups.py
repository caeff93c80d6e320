"""Groups of samples with different noise, as the user gives them, and what is learned of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.arrays import to_numpy


def check_noise_groups(
    noise_groups: Any, n_samples: int, noise: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the labels of all groups, sorted, and the number of every sample's group.

    Parameters
    ----------
    noise_groups : array-like of shape (n_samples,) or None
        Labels of any kind that can be sorted, such as numbers or names.
    noise : "subspace", "shared" or float
        The parameter of the mixture.
    """
    if noise_groups is None:
        return None
    given = np.asarray(to_numpy(noise_groups))
    if given.shape != (n_samples,):
        raise ValueError(
            f"noise_groups has the shape {given.shape}, expected ({n_samples},): one label for "
            "every sample of X"
        )
    if not isinstance(noise, str):
        raise ValueError(
            f"noise={noise} is known for all samples, and noise_groups learns one level for every "
            "group: set noise='subspace' or 'shared'"
        )
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError("noise_groups holds NaN or infinity: every sample needs a group")
    if given.dtype.kind == "O":
        given = _names(given)
    labels, numbers = np.unique(given, return_inverse=True)
    return labels, numbers.reshape(-1)


def _names(given: np.ndarray) -> np.ndarray:
    """Return labels that are Python objects as an array of strings, of numbers or of bools."""
    kinds = {type(label) for label in given}
    if any(label is None or label != label for label in given):
        raise ValueError("noise_groups holds None or NaN: every sample needs a group")
    try:
        found = np.array(list(given))
    except (TypeError, ValueError):
        found = given
    if len(kinds) > 1 and found.dtype.kind in "US":
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"noise_groups has labels of several types ({names}), which cannot be sorted: give "
            "numbers or strings"
        )
    if found.ndim != 1 or found.dtype.kind == "O":
        raise ValueError(
            "noise_groups must hold numbers or strings, one for every sample; found "
            f"{given[0]!r:.80}"
        )
    return found
