"""Hiding entries, to test what is made of data with holes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def mask_entries(
    X: Any, share: float, *, pattern: str = "sample", random_state: Any = None
) -> np.ndarray:
    """Return a copy of X with a share of its entries replaced by NaN.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    share : float
        Between 0 and 1 (excluded).
    pattern : {"sample", "overall", "block", "side"}, default="sample"
        "sample": the same number of entries, round(share · n_features), in every sample, as in the
        paper; "overall": that share of all entries, wherever they fall; "block": one run of
        neighbouring features per sample; "side": the last features of one half of the samples,
        drawn at random; the other half stays complete, so that every feature is seen.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    X_masked : ndarray of shape (n_samples, n_features)
        Of floating type.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.datasets import mask_entries
    >>> masked = mask_entries(np.ones((3, 10)), 0.3, random_state=0)
    >>> np.isnan(masked).sum(axis=1).tolist()
    [3, 3, 3]
    """
    given = np.asarray(X)
    masked: np.ndarray = given.astype(np.result_type(given.dtype, np.float32), copy=True)
    if masked.ndim != 2:
        raise ValueError(f"X must have two dimensions, found {masked.ndim}")
    if not 0 <= share < 1:
        raise ValueError(f"share={share} must be at least 0 and below 1")
    rng = check_random_state(random_state)
    n, m = masked.shape
    hidden = round(share * m)
    if pattern == "sample":
        # The smallest of m random numbers in each row: a draw without replacement per sample.
        order = np.argsort(rng.uniform(size=(n, m)), axis=1)
        np.put_along_axis(masked, order[:, :hidden], np.nan, axis=1)
    elif pattern == "overall":
        masked.flat[rng.permutation(n * m)[: round(share * n * m)]] = np.nan
    elif pattern == "block":
        starts = rng.randint(0, m - hidden + 1, size=n)
        position = np.arange(m)
        masked[(position >= starts[:, None]) & (position < starts[:, None] + hidden)] = np.nan
    elif pattern == "side":
        masked[rng.permutation(n)[n // 2 :], m - hidden :] = np.nan
    else:
        raise ValueError(
            f'pattern={pattern!r} must be one of "sample", "overall", "block" and "side"'
        )
    return masked
