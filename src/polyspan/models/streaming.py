"""`partial_fit`: unions of subspaces from a stream of batches, with a memory that may fade."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_n_features

from polyspan.arrays import limit_threads, pass_work
from polyspan.models.learner import SubspaceLearner
from polyspan.models.shared_rows import needs_all_samples
from polyspan.solvers.shares import Recipe
from polyspan.solvers.streaming import Memory, absorb

# The first samples are kept until there are this many for each dimension of each subspace: an
# annealed fit of the paper's setting with as many has 1.4 % of the labels wrong.
FIRST_PER_DIMENSION = 10
# While they are being kept, a fit is repeated when there are this many times as many.
REFIT_FROM = 1.25
# Power steps per batch, and the share of the objective below which they are given up.
MOST_STEPS = 20
STEP_TOL = 1e-5


@dataclass(frozen=True)
class Stream:
    """What `partial_fit` knows between two batches."""

    n_seen: int
    """Samples that have come."""
    sums: np.ndarray
    """Weighted sums of every feature, of what was observed."""
    counts: np.ndarray
    """Their weights."""
    first: np.ndarray | None = None
    """The first samples, until there are enough to start from."""
    n_fitted: int = 0
    """How many of them the last fit had."""
    memory: Memory | None = None

    def with_batch(self, X: np.ndarray, forget_factor: float) -> Stream:
        """Fade the means and count a batch in."""
        missing = np.isnan(X)
        return replace(
            self,
            n_seen=self.n_seen + len(X),
            sums=forget_factor * self.sums + np.where(missing, 0, X).sum(axis=0, dtype=np.float64),
            counts=forget_factor * self.counts + (~missing).sum(axis=0),
        )

    def mean(self, dtype: Any) -> np.ndarray:
        """Return the weighted mean of what was observed of every feature."""
        return np.asarray(self.sums / np.maximum(self.counts, 1e-300), dtype=dtype)


def _streamable(model: Any) -> bool:
    """Say why a model has no `partial_fit`; scikit-learn makes an AttributeError of it."""
    option = needs_all_samples(model)
    if option is not None:
        raise ValueError(
            f"{option} needs all samples at once: partial_fit takes power steps on sums; leave it "
            "at its default, or call fit"
        )
    return True


class StreamLearner(SubspaceLearner):
    """Learn from batch after batch."""

    lam: float
    solver: str
    forget_factor: float
    _stream: Stream

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **SubspaceLearner._parameter_constraints,
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
    }

    @available_if(_streamable)  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more batch of samples.

        The first samples, ten for each dimension of each subspace, are kept and fitted as `fit`
        would; before there are `n_subspaces * subspace_dim` of them the model is not fitted.
        After that a batch is assigned, power steps are taken on it and on what is remembered of
        the past, and of the batch only sums are remembered: its samples keep the labels that
        they have then. `forget_factor` is what the past is multiplied by before each batch.

        After `fit` a new stream begins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A batch, in memory.
        y : ignored

        Returns
        -------
        self : object
            With `labels_` of this batch, `objective_` the objective over the batch and over what
            is remembered, each sample with its weight and with the label (and the filled-in
            entries) that it had, `objective_history_` that before every step on this batch, and
            `n_samples_seen_`.
        """
        stream = getattr(self, "_stream", None)
        X = np.asarray(X) if hasattr(X, "dask") else X
        if stream is not None:
            _check_n_features(self, X, reset=False)
        X = self._validate(X, reset=stream is None or not hasattr(self, "bases_"))
        if stream is None:
            self._check_sizes(self.n_subspaces * self.subspace_dim, X.shape[1])
            nothing = np.zeros(X.shape[1])
            stream = Stream(0, nothing, nothing, X[:0])
        if stream.first is not None:
            self._stream = self._begin(stream, X)
        else:
            self._stream = self._go_on(stream, X)
        self.n_samples_seen_ = self._stream.n_seen
        if hasattr(self, "bases_"):
            self.labels_ = self.predict(X)
        return self

    def _begin(self, stream: Stream, X: np.ndarray) -> Stream:
        """Keep the first samples, and fit them when there are enough."""
        assert stream.first is not None
        first = np.concatenate([stream.first, X.astype(stream.first.dtype, copy=False)])
        stream = replace(stream.with_batch(X, 1.0), first=first)
        n_directions = self.n_subspaces * self.subspace_dim
        learnable = int(((~np.isnan(first)).sum(axis=1) > self.subspace_dim).sum())
        enough = learnable >= FIRST_PER_DIMENSION * n_directions
        if learnable < n_directions or not (enough or learnable >= REFIT_FROM * stream.n_fitted):
            return stream
        starter = clone(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            starter.fit(first)
        for name in ("bases_", "mean_", "objective_", "objective_history_", "anneal_history_",
                     "n_iter_", "converged_"):  # fmt: skip
            setattr(self, name, getattr(starter, name))
        stream = replace(stream, n_fitted=learnable)
        if not enough:
            return stream
        memory = Memory.empty(self.mean_, self.n_subspaces, self.subspace_dim)
        return self._take_in(replace(stream, first=None, memory=memory), first)

    def _go_on(self, stream: Stream, X: np.ndarray) -> Stream:
        """Let the past fade and learn from a batch."""
        assert stream.memory is not None
        factor = float(self.forget_factor)
        stream = replace(stream.with_batch(X, factor), memory=stream.memory.faded(factor))
        return self._take_in(stream, X)

    def _take_in(self, stream: Stream, X: np.ndarray) -> Stream:
        assert stream.memory is not None
        dtype = self.bases_.dtype
        mean = stream.mean(dtype) if self.center else self.mean_
        holes = bool(np.isnan(X).any())
        recipe = Recipe(
            float(self.lam), dtype, mean if self.center else None, explicit=self.center,
            holes=holes, least=self.subspace_dim, prior=self._fill_prior(),
        )  # fmt: skip
        batch = recipe.problem(X, with_norms=True)
        if batch is None:  # no sample has enough observed entries
            return stream
        n_subspaces, m, s = self.bases_.shape
        with limit_threads(pass_work(len(X), m, n_subspaces * s)):
            found = absorb(
                stream.memory, batch, self.bases_, mean, max_steps=MOST_STEPS, tol=STEP_TOL
            )
        self.bases_, self.mean_ = found.bases, mean
        self.objective_ = found.history[-1]
        self.objective_history_ = np.array(found.history)
        self.n_iter_ = len(found.history) - 1
        self.converged_ = found.settled
        return replace(stream, memory=found.memory)

    def __sklearn_is_fitted__(self) -> bool:
        # A stream may have begun with too few samples to fit.
        return hasattr(self, "bases_")

    def _end_stream(self) -> None:
        """Forget the batches of `partial_fit`."""
        for name in ("_stream", "n_samples_seen_"):
            self.__dict__.pop(name, None)

    def _fill_prior(self) -> float:
        """Return the weight of filled-in entries, for models that take NaN."""
        return 0.0
