"""Sizes tried on a table some of whose entries are hidden."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyspan.models.imputer_fits import Learned, Table, learn_pooled, learn_several
from polyspan.models.mixture import SubspaceMixture

# A feature's own slope counts as much as the common one when this many entries were hidden in it;
# the common one as much as none at all when this many were hidden in all.
TRUST, COMMON_TRUST = 60.0, 5.0
# Most steps of EM for a single subspace.
ITERATIONS = 32


@dataclass(frozen=True)
class Candidate:
    """A size that was tried."""

    sizes: tuple[int, int]
    slopes: np.ndarray
    error: float
    learned: tuple[Learned | SubspaceMixture, ...]

    @property
    def models(self) -> tuple[SubspaceMixture, ...]:
        """What was learned without the hidden entries."""
        return tuple(one if isinstance(one, SubspaceMixture) else one.model for one in self.learned)

    def complete(self, X: np.ndarray) -> tuple[SubspaceMixture, ...]:
        """Go on with the hidden entries as well."""
        found, table = [], None
        for one in self.learned:
            if isinstance(one, SubspaceMixture):
                found.append(quietly(one.set_params(warm_start=True), X))
                continue
            table = table or Table.of(X)
            found.append(one.on(table).model)
        return tuple(found)


class Trial:
    """A table some of whose entries are hidden, and how well they are found.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Standardised, NaN where missing.
    hidden : ndarray of bool, of the same shape
    unit : ndarray of shape (n_features,)
        What errors are multiplied by.
    """

    def __init__(
        self, X: np.ndarray, hidden: np.ndarray, unit: np.ndarray, rng: np.random.RandomState
    ) -> None:
        self.truth, self.hidden, self.unit, self.rng = X * unit, hidden, unit, rng
        self.seen: np.ndarray = np.where(hidden, X.dtype.type(np.nan), X)
        self._pooled: dict[int, Learned] = {}

    def single(self, dim: int) -> Candidate:
        """Learn one subspace to the end."""
        model = SubspaceMixture(
            1,
            dim,
            closeness=0.0,
            noise="shared",
            max_iter=ITERATIONS,
            tol=1e-5,
            random_state=self.rng,
        )
        quietly(model, self.seen)
        return self._candidate((1, dim), (model,), model._expected(self.seen, None))

    def pooled_only(self, dim: int) -> Candidate:
        """Take the one subspace that several are drawn to anyway."""
        pooled = self._pool(dim)
        return self._candidate((1, dim), (pooled,), pooled.model._expected(self.seen, None))

    def several(self, number: int, dim: int, n_fits: int, enough: float) -> Candidate:
        """Learn several subspaces `n_fits` times, or once if the error is above `enough`."""
        found: list[Learned] = []
        total = np.zeros_like(self.seen)
        for k in range(n_fits):
            found.append(learn_several(self._pool(dim), number, self.rng))
            total += found[-1].model._expected(self.seen, None)
            if k == 0 or k == n_fits - 1:
                candidate = self._candidate((number, dim), tuple(found), total / (k + 1))
            if candidate.error > enough:
                break
        return candidate

    def _pool(self, dim: int) -> Learned:
        if dim not in self._pooled:
            self._pooled[dim] = learn_pooled(Table.of(self.seen), dim, self.rng)
        return self._pooled[dim]

    def _candidate(
        self,
        sizes: tuple[int, int],
        learned: tuple[Learned | SubspaceMixture, ...],
        expected: np.ndarray,
    ) -> Candidate:
        slopes, error = trust(expected * self.unit, self.truth, self.hidden)
        return Candidate(sizes, slopes, error, learned)


def quietly(model: SubspaceMixture, X: np.ndarray) -> SubspaceMixture:
    """Fit; a guess at a hole does not need the last digit of the likelihood."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return model


def trust(expected: np.ndarray, truth: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the slope of truth over prediction for every feature, and the error with it.

    Slopes are regressions through the mean, drawn to the common slope where few entries were
    hidden, and that to 0.
    """
    guess = np.where(hidden, expected, 0).astype(np.float64)
    right = np.where(hidden, truth, 0).astype(np.float64)
    products, squares = (guess * right).sum(axis=0), (guess * guess).sum(axis=0)
    unit = squares.sum() / hidden.sum()
    common = products.sum() / (squares.sum() + COMMON_TRUST * unit) if unit > 0 else 0.0
    own = (products + TRUST * unit * common) / (squares + TRUST * unit) if unit > 0 else 0 * squares
    slopes = np.clip(own, 0.0, 1.0)
    error = float(np.sqrt(((slopes * guess - right) ** 2).sum() / hidden.sum()))
    return slopes, error


def average(models: tuple[SubspaceMixture, ...], X: np.ndarray) -> np.ndarray:
    """Return the mean of what several models expect in standardised features."""
    if not models:
        return np.zeros_like(X)
    return np.asarray(sum(model._expected(X, None) for model in models) / len(models))
