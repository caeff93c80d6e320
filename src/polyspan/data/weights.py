"""Weights of samples: a weight of 2 is the sample twice, 0 is no sample."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, float64_sum, item_bytes, moved_to, namespace, to_numpy
from polyspan.base.checks import first_ten
from polyspan.data.rows import PerRow, Source


def check_weights(sample_weight: Any, X: Array, *, allow_zero: bool = False) -> Array | None:
    """Return the weights of samples as an array like X, or None where every sample counts once.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), number or None
        From anywhere: a list, a column of a frame, an array on another device.
    X : array of shape (n_samples, n_features)
        Gives namespace, device and type of the weights.
    allow_zero : bool, default=False
        Whether all weights may be 0, as in a batch of a stream.

    Raises
    ------
    ValueError
        If a weight is negative, not finite or no number, if all are 0, if their number is not that
        of the samples, or if they are too large or too small to compute with in the type of X.
    """
    if sample_weight is None:
        return None
    n = X.shape[0]
    found = weights_as_numpy(sample_weight)
    found = np.full(n, found) if found.ndim == 0 else found
    if found.shape != (n,):
        raise ValueError(
            f"sample_weight has the shape {found.shape}, expected ({n},): one weight for every "
            "sample of X"
        )
    check_values(found, allow_zero=allow_zero)
    if bool(np.all(found == 1)):
        return None
    _check_size(found, X)
    return moved_to(found, X, X.dtype)


def weights_as_numpy(sample_weight: Any) -> np.ndarray:
    """Return weights as numbers of double precision; raise an error for anything else."""
    given = sample_weight
    try:
        sample_weight = lazy_computed(sample_weight)
        if hasattr(sample_weight, "requires_grad"):  # a tensor of PyTorch
            sample_weight = sample_weight.detach()
        masked = isinstance(sample_weight, np.ma.MaskedArray)
        hidden = np.flatnonzero(sample_weight.mask if masked else False)
        found = to_numpy(sample_weight)
        numbers = found.dtype.kind in "biuf"
        if found.dtype.kind == "O":  # a column of a frame, or Python's own numbers
            numbers = all(isinstance(value, Real | Decimal) for value in found.flat)
        if not numbers:
            raise TypeError(f"entries of the type {found.dtype}")
        found = found.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight must hold numbers, one for every sample; found {given!r:.80}"
        ) from error
    if len(hidden):
        raise ValueError(
            f"sample_weight is masked at samples {first_ten(hidden)}: give finite weights, 0 for "
            "samples that are not to count"
        )
    return found


def _check_size(weights: np.ndarray, X: Array) -> None:
    """Raise an error for weights too large or too small for the type of X.

    Squares of working values reach 2^±510 in double and 2^±62 in single precision (see
    `power_of_two_scale`). Their products with the weights must stay in the range of the type.
    """
    single = item_bytes(X) == 4
    room = 2.0**56 if single else 2.0**440
    most, used = float(weights.max(initial=0.0)), weights[weights > 0]
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    wrong = None
    if total > room:
        wrong = f"goes up to {most:.3g} and adds up to {total:.3g}, too large for"
    elif 0 < most < 1 / room:
        wrong = f"goes up to {most:.3g}, too small for"
    elif single and not used.astype(np.float32).all():
        wrong = f"has values from {used.min():.3g} to {most:.3g}, of which some are 0 in"
    if wrong:
        instead = ", or convert X to float64" if single else ""
        raise ValueError(
            f"sample_weight {wrong} the type {X.dtype} of X: divide all weights by their mean (and "
            f"multiply a finite lam by it){instead}"
        )


def check_values(weights: np.ndarray, *, allow_zero: bool = False) -> None:
    """Raise an error where weights are negative, not finite, or all zero."""
    bad = np.flatnonzero(~np.isfinite(weights))
    if len(bad):
        raise ValueError(
            f"sample_weight is NaN or infinite at samples {first_ten(bad)}: give finite weights, "
            "0 for samples that are not to count"
        )
    bad = np.flatnonzero(weights < 0)
    if len(bad):
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: at samples {first_ten(bad)}; "
            "weights must not be below 0"
        )
    if not (allow_zero or weights.any()):
        raise ValueError("Sample weights must contain at least one non-zero number.")


def keep_without_weight(model: Any, sample_weight: Any) -> None:
    """Store which training samples have the weight 0: summaries do not count them."""
    vars(model).pop("_without_weight", None)
    if sample_weight is not None:
        without = weights_as_numpy(sample_weight) == 0
        if without.any():
            model._without_weight = without


def lazy_computed(sample_weight: Any) -> Any:
    """Return weights as they are, those of a dask array computed."""
    return sample_weight.compute() if hasattr(sample_weight, "__dask_graph__") else sample_weight


def source_weights(sample_weight: Any, source: Source) -> PerRow | None:
    """Return the weights of rows that are not all in memory, cut into blocks as the rows are.

    The weights themselves, one number for each row, are gathered in memory.
    """
    like = np.empty((sum(source.row_counts()), 0), dtype=source.working_type)
    weights = check_weights(sample_weight, like)
    return None if weights is None else source.cut(weights)


def weighted_mean(scores: Any, sample_weight: Any) -> float:
    """Return the weighted mean of scores, one for each sample, that are not NaN.

    NaN where no sample with a weight has a score. Scores and weights may be dask arrays.
    """
    scores = lazy_computed(scores)
    weights = check_weights(sample_weight, scores)
    xp = namespace(scores)
    weights = xp.ones_like(scores) if weights is None else weights
    known = ~xp.isnan(scores) & (weights > 0)
    # Shares, not weights: no product with them leaves the range of the scores.
    shares = xp.astype(xp.where(known, weights, xp.zeros_like(weights)), xp.float64)
    total = float(xp.sum(shares))
    if not total:
        return float("nan")
    scores = xp.where(known, scores, xp.zeros_like(scores))
    return float(float64_sum(shares / total * xp.astype(scores, xp.float64)))
