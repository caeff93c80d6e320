"""Labels that the user gives as the start of a mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.arrays import Array, moved_to, namespace, to_numpy
from polyspan.checks import first_ten


def check_start_labels(init: Any, n_subspaces: int, kept: np.ndarray, like: Array) -> Array | None:
    """Return the labels of the samples that count, as an array like X; None without labels.

    Parameters
    ----------
    init : "anneal" or array-like of shape (n_samples,)
    kept : array of bool of shape (n_samples,)
        Samples whose weight is not 0.
    """
    if isinstance(init, str):
        return None
    labels = np.asarray(to_numpy(init))
    if labels.shape != kept.shape:
        raise ValueError(
            f"init has the shape {labels.shape}, expected {kept.shape}: one label for every sample "
            "of X"
        )
    if labels.dtype.kind not in "iu" and not (
        labels.dtype.kind == "f" and np.array_equal(labels, np.round(labels))
    ):
        raise ValueError(f"init must hold whole numbers as labels; found {labels[:10]!r:.80}")
    bad = np.flatnonzero((labels < 0) | (labels >= n_subspaces))
    if len(bad):
        raise ValueError(
            f"init has labels outside 0, …, n_subspaces - 1 = {n_subspaces - 1} at samples "
            f"{first_ten(bad)}"
        )
    counted = labels[kept].astype(np.int64)
    empty = np.setdiff1d(np.arange(n_subspaces), counted)
    if len(empty):
        raise ValueError(
            f"init gives no sample that counts to the subspaces {first_ten(empty)}: every one of "
            f"n_subspaces={n_subspaces} needs a sample"
        )
    return moved_to(counted, like, namespace(like).int64)
