"""The parameter `subspace_dim` of mixtures: given, or chosen by hidden entries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy
from polyspan.base.checks import check_subspace_dim
from polyspan.data.weights import check_weights
from polyspan.mixture.fitted import by_noise_group

# Fraction of the observed entries that is hidden to compare dimensions.
HIDDEN_FRACTION = 0.1
# Most times that every subspace gets its own dimension and the mixture is fitted again.
MOST_ROUNDS = 3
# Most iterations of EM in a fit that is only compared, and its tolerance.
TRIAL_ITERATIONS, TRIAL_TOL = 30, 1e-4
# A subspace with fewer samples keeps the common dimension.
FEWEST_SAMPLES = 10


def check_dims(subspace_dim: Any, n_subspaces: int, n_features: int) -> int | tuple[int, ...]:
    """Return the common dimension, or the dimensions of all subspaces where they differ."""
    if isinstance(subspace_dim, Integral):
        check_subspace_dim(int(subspace_dim), n_features)
        return int(subspace_dim)
    given: Sequence[Any] = list(to_numpy(subspace_dim).reshape(-1))
    if len(given) != n_subspaces or np.ndim(subspace_dim) != 1:
        raise ValueError(
            f"subspace_dim={subspace_dim} must be one dimension, or one for each of the "
            f"n_subspaces={n_subspaces} subspaces"
        )
    if any(dim != int(dim) or dim < 0 for dim in given):
        raise ValueError(f"subspace_dim={subspace_dim} must hold whole numbers from 0")
    dims = tuple(int(dim) for dim in given)
    check_subspace_dim(max(dims), n_features, dims)
    return dims[0] if len(set(dims)) == 1 else dims


def choose_dims(
    model: Any,
    X: Array,
    sample_weight: Any,
    noise_groups: Any,
    rng: np.random.RandomState,
) -> int | tuple[int, ...]:
    """Choose the dimensions whose subspaces predict hidden entries best.

    A fraction of the observed entries is hidden, and mixtures are fitted to the others. The score
    of a fit is the log-density of the hidden entries given the visible ones. First all subspaces
    have the same dimension. Of dimensions that differ by less than the standard error of the score,
    the smallest is taken. Then every one of them gets the dimension that predicts the hidden
    entries of its own samples best, and the mixture is fitted again from the same labels; this is
    repeated while the score rises, or falls by less than its standard error for fewer directions.

    Parameters
    ----------
    model : SubspaceMixture
        Gives all other parameters.
    X : array of shape (n_samples, n_features)
        NaN where missing.
    sample_weight, noise_groups : as in `fit`, or None
    """
    search = _Search(model, X, sample_weight, noise_groups, rng)
    best = search.common_fit()
    for _ in range(MOST_ROUNDS):
        dims = search.own_dims(best)
        if dims == best.dims:
            break
        found = search.fit(dims, init=to_numpy(best.model.labels_))
        worse = (
            is_better(best.gains, found.gains)
            if sum(dims) < sum(best.dims)
            else (float(np.sum(found.gains)) <= float(np.sum(best.gains)))
        )
        if worse:
            break
        best = found
    return best.dims[0] if len(set(best.dims)) == 1 else best.dims


@dataclass(frozen=True)
class _Trial:
    """A mixture that was fitted to the visible entries, and how well it predicts the others."""

    dims: tuple[int, ...]
    model: Any
    gains: np.ndarray
    """Log-density of the hidden entries of every sample given its visible ones, weighted."""


class _Search:
    """Data with hidden entries, on which dimensions are compared."""

    def __init__(
        self,
        model: Any,
        X: Array,
        sample_weight: Any,
        noise_groups: Any,
        rng: np.random.RandomState,
    ) -> None:
        xp = namespace(X)
        observed = ~to_numpy(xp.isnan(X))
        hidden = observed & (rng.uniform(size=observed.shape) < HIDDEN_FRACTION)
        hidden[:, (observed & ~hidden).sum(axis=0) < 2] = False
        self.full = X
        self.visible = xp.where(moved_to(hidden, X), xp.full_like(X, float("nan")), X)
        weights = check_weights(sample_weight, X)
        self.weights = np.ones(X.shape[0]) if weights is None else to_numpy(weights)
        self.given = {"sample_weight": sample_weight, "noise_groups": noise_groups}
        self.seed = rng.randint(2**31 - 1)
        self.model = model

    def common_fit(self) -> _Trial:
        """Return the best fit of equal dimensions: doubled while that helps, then bisected."""
        most = self._most(int((self.weights > 0).sum()) // self.model.n_subspaces)
        trials: dict[int, _Trial] = {}

        def gains(dim: int) -> np.ndarray:
            if dim not in trials:
                trials[dim] = self.fit((dim,) * self.model.n_subspaces)
            return trials[dim].gains

        return trials[_best_whole_number(gains, most)]

    def own_dims(self, best: _Trial) -> tuple[int, ...]:
        """Return the dimension of every subspace that predicts its own samples best."""
        labels, dims = to_numpy(best.model.labels_), []
        for p, dim in enumerate(best.dims):
            rows = np.flatnonzero((labels == p) & (self.weights > 0))
            if len(rows) < FEWEST_SAMPLES:
                dims.append(dim)
                continue
            dims.append(_best_whole_number(partial(self._own_gains, rows), self._most(len(rows))))
        return tuple(dims)

    def _own_gains(self, rows: np.ndarray, dim: int) -> np.ndarray:
        """Return the gains of one subspace of this dimension that has only these samples."""
        return self.fit((dim,), rows=rows).gains

    def _most(self, n_samples: int) -> int:
        """Return the largest dimension to try: n samples determine fewer than n directions."""
        return max(0, min(int(self.full.shape[1]) - 1, n_samples // 2))

    def fit(
        self, dims: tuple[int, ...], init: Any = "anneal", rows: np.ndarray | None = None
    ) -> _Trial:
        """Fit subspaces of these dimensions to the visible entries of all samples, or of some."""
        xp = namespace(self.full)
        full, visible, weights, given = self.full, self.visible, self.weights, self.given
        if rows is not None:
            index = moved_to(rows, full, xp.int64)
            full, visible = xp.take(full, index, axis=0), xp.take(visible, index, axis=0)
            weights = weights[rows]
            given = {
                name: None if value is None else np.asarray(to_numpy(value))[rows]
                for name, value in given.items()
            }
        trial = clone(self.model).set_params(
            n_subspaces=len(dims), subspace_dim=dims, init=init, random_state=self.seed,
            n_init=self.model.n_init if isinstance(init, str) else 1, warm_start=False,
            max_iter=min(TRIAL_ITERATIONS, self.model.max_iter),
            tol=max(TRIAL_TOL, self.model.tol),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last fit may warn
            trial.fit(visible, **given)
        gains = to_numpy(_log_densities(trial, full, given) - _log_densities(trial, visible, given))
        return _Trial(dims, trial, weights * gains)


def _log_densities(model: Any, X: Array, given: dict[str, Any]) -> Array:
    """Return the log-densities of samples, each with the noise of its group."""
    if given["noise_groups"] is None:
        return model.score_samples(X)
    groups = np.searchsorted(model.noise_groups_, to_numpy(given["noise_groups"]))
    return by_noise_group(model, X, groups, "score_samples")


def is_better(gains: np.ndarray, others: np.ndarray) -> bool:
    """Tell whether gains of samples exceed others by more than the standard error of the sum."""
    difference = gains - others
    error = float(np.std(difference)) * len(difference) ** 0.5
    return bool(np.sum(difference) > error)


def _best_whole_number(gains: Callable[[int], np.ndarray], most: int) -> int:
    """Return the smallest number from 0 to `most` that hardly any other beats.

    The sum of the gains rises with the number and then falls. Numbers are doubled while it rises;
    then the interval around the best is halved; then the number is lowered while the sum falls by
    no more than its standard error.
    """
    known = {0: gains(0)}
    sums = {0: float(np.sum(known[0]))}

    def ask(number: int) -> None:
        if number not in known:
            known[number] = gains(number)
            sums[number] = float(np.sum(known[number]))

    number = 1
    while number <= most:
        ask(number)
        before, last = list(sums.values())[-2:]
        if last < before and number > 2:
            break
        number = min(2 * number, most) if number < most else most + 1
    while True:
        best = max(sums, key=lambda number: (sums[number], -number))
        below = max((number for number in sums if number < best), default=best)
        above = min((number for number in sums if number > best), default=best)
        untried = [(below + best) // 2, (best + above + 1) // 2]
        untried = [number for number in untried if number not in sums]
        if not untried:
            break
        for number in untried:
            ask(number)
    smallest = best
    while smallest > 0:
        ask(smallest - 1)
        if is_better(known[best], known[smallest - 1]):
            break
        smallest -= 1
    return smallest
