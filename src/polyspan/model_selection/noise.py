"""Parameters for denoising, chosen by noise that is added to held-out samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyspan.models.held_out_noise import NoiseChoice, search_by_noise

__all__ = ["NoiseChoice", "choose_by_noise"]


def choose_by_noise(
    estimator: Any,
    X: Any,
    noise: float | Sequence[float],
    param_grid: Mapping[str, Sequence[Any]],
    *,
    n_splits: int = 3,
    random_state: Any = None,
) -> NoiseChoice:
    """Choose the parameters that best denoise held-out samples with added noise.

    The samples themselves are taken to be clean. White noise of the level that new samples are
    expected to have is added to the held-out part, and what `reconstruct` makes of it is compared
    with the samples before. Every setting sees the same folds and the same noise.

    Parameters
    ----------
    estimator : estimator with `reconstruct`
        `MCKUSaL` (with `n_subspaces=1` it is kernel PCA), `MiCUSaL`, …
    X : array-like of shape (n_samples, n_features)
        Complete.
    noise : float or sequence of float
        σ²: expected squared norm of the noise of a sample; several levels are averaged.
    param_grid : dict of lists
        As for `GridSearchCV`.
    n_splits : int, default=3
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    choice : NoiseChoice

    Examples
    --------
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.model_selection import choose_by_noise
    >>> X = make_union_of_subspaces((60, 60), n_features=20, subspace_dim=3, spread=0.5,
    ...                             noise=0.0, random_state=0).X
    >>> choice = choose_by_noise(MiCUSaL(2, random_state=0), X, 0.3,
    ...                          {"subspace_dim": [1, 3, 8]}, random_state=0)
    >>> choice.best_params
    {'subspace_dim': 3}
    """
    return search_by_noise(estimator, X, noise, param_grid, n_splits, random_state)
