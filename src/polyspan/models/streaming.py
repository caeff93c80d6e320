"""`partial_fit`: unions of subspaces from a stream of batches, with a memory that may fade."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from polyspan._sklearn import Interval, fit_context
from polyspan.arrays import limit_threads, machine_epsilon, pass_work, power_of_two_scale
from polyspan.models.checks import listed
from polyspan.models.learner import SubspaceLearner
from polyspan.models.messages import warn_user
from polyspan.models.shared_rows import needs_all_samples
from polyspan.solvers.preparation import working_weight
from polyspan.solvers.shares import Recipe
from polyspan.solvers.streaming import Memory, absorb

# The first samples are kept until there are this many for each dimension of each subspace: an
# annealed fit of the paper's setting with as many has 1.4 % of the labels wrong.
FIRST_PER_DIMENSION = 10
# Where some feature was observed in none of them, up to this many times as many are kept.
MOST_TIMES = 10
# While they are being kept, a fit is repeated when there are this many times as many.
REFIT_FROM = 1.25
# What may not change within a stream: everything that is remembered depends on it.
FIXED = ("n_subspaces", "subspace_dim", "center")
# Power steps per batch, and the share of the objective below which they are given up.
MOST_STEPS = 20
STEP_TOL = 1e-5


@dataclass(frozen=True)
class Stream:
    """What `partial_fit` knows between two batches."""

    n_seen: int
    """Samples that have come."""
    options: tuple[Any, ...]
    """Values of the parameters in FIXED that it began with."""
    sums: np.ndarray
    """Weighted sums of every feature, of what was observed, times `scale`."""
    counts: np.ndarray
    """Their weights."""
    first: np.ndarray | None = None
    """The first samples with enough observed entries, until there are enough to start from."""
    n_fitted: int = 0
    """How many of them the last fit had."""
    memory: Memory | None = None
    """Of samples times `scale`."""
    scale: float = 1.0
    """A power of two that keeps squares finite."""

    def with_batch(self, X: np.ndarray, forget_factor: float) -> Stream:
        """Let the past fade and count a batch in, on a scale that suits both."""
        assert self.memory is not None
        missing = np.isnan(X)
        values = np.where(missing, X.dtype.type(0), X)
        old = self._scaled_for(float(np.abs(values).max(initial=0.0)), machine_epsilon(X))
        assert old.memory is not None
        sums = (values * old.scale).sum(axis=0, dtype=np.float64)
        return replace(
            old,
            sums=forget_factor * old.sums + sums,
            counts=forget_factor * old.counts + (~missing).sum(axis=0),
            memory=old.memory.faded(forget_factor),
        )

    def _scaled_for(self, largest: float, eps: float) -> Stream:
        """Lower the scale where the squares of a batch would overflow on it."""
        assert self.memory is not None
        brought = largest * self.scale
        if math.isfinite(brought) and power_of_two_scale(brought, eps) >= 1.0:
            return self
        scale = power_of_two_scale(largest, eps)
        by = scale / self.scale
        return replace(self, scale=scale, sums=by * self.sums, memory=self.memory.scaled(by))

    def mean(self, dtype: Any) -> np.ndarray:
        """Return the weighted mean of what was observed of every feature, times `scale`."""
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
    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more batch of samples.

        The first samples, ten for each dimension of each subspace, are kept and fitted as `fit`
        would; before there are `n_subspaces * subspace_dim` of them the model is not fitted.
        After that a batch is assigned, power steps are taken on it and on what is remembered of
        the past, and of the batch only sums are remembered: its samples keep the labels that
        they have then. `forget_factor` is what the past is multiplied by before each batch.

        With missing entries the first samples are kept until every feature was observed among
        them, up to ten times as many as above: of more the oldest are forgotten.

        After `fit` a new stream begins: what `fit` learned is forgotten.

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
        X = X.compute() if hasattr(X, "__dask_graph__") else X
        X = self._validate(X, reset=stream is None, method="partial_fit")
        if stream is None:
            self._forget_fit()
            self._check_sizes(self.n_subspaces * self.subspace_dim, X.shape[1])
            nothing = np.zeros(X.shape[1])
            stream = Stream(0, self._fixed_options(), nothing, nothing, X[:0])
        self._check_options(stream)
        X = _in_precision(X, stream)
        learned = (~np.isnan(X)).sum(axis=1) > self.subspace_dim
        if not learned.all():
            warn_user(
                f"{int((~learned).sum())} of {len(X)} rows have at most subspace_dim="
                f"{self.subspace_dim} observed entries and are not learned from; their label is -1"
            )
        batch = X if learned.all() else X[learned]
        stream = replace(stream, n_seen=stream.n_seen + len(X))
        if stream.first is not None:
            self._stream = self._begin(stream, batch)
        else:
            self._stream = self._take_in(stream, batch, float(self.forget_factor))
        self.n_samples_seen_ = stream.n_seen
        if hasattr(self, "bases_"):
            self.labels_ = self._nearest(X)
        return self

    def _begin(self, stream: Stream, X: np.ndarray) -> Stream:
        """Keep the first samples, and fit them when there are enough."""
        assert stream.first is not None
        first = np.concatenate([stream.first, X])
        n_directions = self.n_subspaces * self.subspace_dim
        enough = FIRST_PER_DIMENSION * n_directions
        unseen = np.flatnonzero(np.isnan(first).all(axis=0))
        if len(unseen) and len(first) >= enough:
            first = first[-MOST_TIMES * enough :]
            warn_user(
                f"columns {listed(unseen)} were not observed in any of the first samples: the "
                f"model is fitted when they are; until then the last {MOST_TIMES * enough} "
                "samples are kept"
            )
        stream = replace(stream, first=first)
        due = len(first) >= min(enough, max(n_directions, REFIT_FROM * stream.n_fitted))
        if len(unseen) or not due:
            return stream
        self._stream = stream  # a fit that fails costs no samples
        starter = clone(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            starter.fit(first)
        for name in ("bases_", "mean_", "objective_", "objective_history_", "anneal_history_",
                     "n_iter_", "converged_"):  # fmt: skip
            setattr(self, name, getattr(starter, name))
        if len(first) < enough:
            return replace(stream, n_fitted=len(first))
        scale = power_of_two_scale(float(np.nanmax(np.abs(first))), machine_epsilon(first))
        memory = Memory.empty(self.mean_ * scale, self.n_subspaces, self.subspace_dim)
        stream = replace(stream, first=None, memory=memory, scale=scale)
        return self._take_in(stream, first, 1.0)

    def _take_in(self, stream: Stream, X: np.ndarray, forget_factor: float) -> Stream:
        """Let the past fade and learn from a batch."""
        stream = stream.with_batch(X, forget_factor)
        assert stream.memory is not None
        dtype, scale = self.bases_.dtype, stream.scale
        mean = stream.mean(dtype) if self.center else np.zeros_like(self.mean_)
        recipe = Recipe(
            working_weight(float(self.lam), scale), dtype, mean if self.center else None,
            explicit=self.center, scale=scale, holes=bool(np.isnan(X).any()),
            least=self.subspace_dim, prior=self._fill_prior(),
        )  # fmt: skip
        batch = recipe.problem(X, with_norms=True)
        if batch is None:  # no sample has enough observed entries
            return stream
        n_subspaces, m, s = self.bases_.shape
        with limit_threads(pass_work(len(X), m, n_subspaces * s)):
            found = absorb(
                stream.memory, batch, self.bases_, mean, max_steps=MOST_STEPS, tol=STEP_TOL
            )
        # An objective without closeness is in the units of the data.
        unit = 1.0 if batch.pull else scale
        self.bases_, self.mean_ = found.bases, mean / dtype.type(scale)
        self.objective_history_ = np.array([(value / unit) / unit for value in found.history])
        self.objective_ = float(self.objective_history_[-1])
        self.n_iter_ = len(found.history) - 1
        self.converged_ = found.settled
        return replace(stream, memory=found.memory)

    def _fixed_options(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in FIXED)

    def _check_options(self, stream: Stream) -> None:
        """Raise an error where a parameter was set that all that is remembered depends on."""
        for name, now, before in zip(FIXED, self._fixed_options(), stream.options, strict=True):
            if now != before:
                raise ValueError(
                    f"{name}={now} was set within a stream that began with {name}={before}: set "
                    "it back, or begin a new stream with sklearn.clone(model)"
                )

    def __sklearn_is_fitted__(self) -> bool:
        # A stream may have begun with too few samples to fit.
        return hasattr(self, "bases_")

    def _end_stream(self) -> None:
        """Forget the batches of `partial_fit`."""
        for name in ("_stream", "n_samples_seen_"):
            self.__dict__.pop(name, None)

    def _forget_fit(self) -> None:
        """Forget what `fit` has learned, as a stream begins anew."""
        for name in list(vars(self)):
            if name.endswith("_") and name not in ("n_features_in_", "feature_names_in_"):
                delattr(self, name)

    def _fill_prior(self) -> float:
        """Return the weight of filled-in entries, for models that take NaN."""
        return 0.0


def _in_precision(X: np.ndarray, stream: Stream) -> np.ndarray:
    """Return a batch in the precision of the first one."""
    kept = stream.first
    if kept is None:
        assert stream.memory is not None
        kept = stream.memory.reference
    with np.errstate(over="ignore"):
        cast = X.astype(kept.dtype, copy=False)
    if np.isinf(cast).any():
        raise ValueError(
            f"Input X contains a value too large for {kept.dtype!r}, in which the stream began: "
            "scale X, or begin a new stream in float64"
        )
    return cast
