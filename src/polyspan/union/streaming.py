"""`partial_fit`: unions of subspaces from a stream of batches, with optional forgetting."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from polyspan._sklearn import fit_context
from polyspan.arrays import limit_threads, machine_epsilon, pass_work, power_of_two_scale
from polyspan.checks import first_ten, warn_left_out, warn_user
from polyspan.data.working import working_lam
from polyspan.union._solve.alternation import Rules, alternate
from polyspan.union._solve.memory import Memory, Past
from polyspan.union._solve.observation import Observation
from polyspan.union._solve.problem import batch_problem
from polyspan.union._solve.shape import join
from polyspan.union.plan import SizedParameters, check_needs, check_plan, sized_plan
from polyspan.union.reading import Data

# The first samples are kept until there are this many for each dimension of each subspace: an
# annealed fit of the paper's setting with as many has 1.4 % of the labels wrong.
FIRST_PER_DIMENSION = 10
# If some feature was observed in none of them, up to this many times as many samples are kept.
MOST_KEPT_FACTOR = 10
# Meanwhile the fit is repeated whenever their number has grown by this factor.
REFIT_FACTOR = 1.25
# Parameters that may not change within a stream: everything that is remembered depends on them.
FIXED = ("n_subspaces", "subspace_dim", "center", "affine")
# Power steps per batch, and the fraction of the objective below which they stop.
MOST_STEPS = 20
STEP_TOL = 1e-5


@dataclass(frozen=True)
class Stream:
    """What `partial_fit` knows between two batches."""

    n_seen: int
    """Number of samples so far."""
    options: tuple[Any, ...]
    """Values of the parameters in FIXED at the beginning of the stream."""
    sums: np.ndarray
    """Weighted sums of the observed entries of every feature, times `scale`."""
    counts: np.ndarray
    """Sums of the weights of these entries."""
    first: np.ndarray | None = None
    """The first samples with enough observed entries, until there are enough to start from."""
    n_fitted: int = 0
    """Number of samples in `first` at the last fit."""
    memory: Memory | None = None
    """Sums over past samples times `scale`."""
    scale: float = 1.0
    """A power of two that keeps squares finite."""

    def with_batch(self, X: np.ndarray, forget_factor: float) -> Stream:
        """Apply the forget factor and add a batch, on a scale that suits both."""
        assert self.memory is not None
        missing, eps = np.isnan(X), machine_epsilon(X)
        values = np.where(missing, X.dtype.type(0), X)
        largest = float(np.abs(values).max(initial=0.0))
        scale, sums, memory = self.scale, self.sums, self.memory
        fits = math.isfinite(largest * scale) and power_of_two_scale(largest * scale, eps) >= 1.0
        if not fits:  # the squares of the batch would overflow on this scale
            scale = power_of_two_scale(largest, eps)
            by = scale / self.scale
            sums, memory = by * sums, memory.scaled(by)
        return replace(
            self,
            sums=forget_factor * sums + (values * scale).sum(axis=0, dtype=np.float64),
            counts=forget_factor * self.counts + (~missing).sum(axis=0),
            memory=memory.faded(forget_factor),
            scale=scale,
        )

    def mean(self, dtype: Any) -> np.ndarray:
        """Return the weighted mean of the observed entries of every feature, times `scale`."""
        return np.asarray(self.sums / np.maximum(self.counts, 1e-300), dtype=dtype)


class Streaming(SizedParameters, Protocol):
    """A linear model that can learn from a stream."""

    lam: float
    forget_factor: float
    bases_: np.ndarray
    mean_: np.ndarray
    anchors_: np.ndarray
    labels_: np.ndarray
    objective_: float
    objective_history_: np.ndarray
    n_iter_: int
    converged_: bool
    n_samples_seen_: int
    _stream: Stream

    def _validate(self, X: Any, *, reset: bool, method: str) -> np.ndarray: ...
    def _nearest(self, X: np.ndarray) -> np.ndarray: ...
    def _prior(self) -> float: ...


def _streamable(model: Streaming) -> bool:
    """Raise an error if a model has no `partial_fit`; scikit-learn turns it into AttributeError."""
    check_needs(sized_plan(model).rules, model.affine, "stream", 0)
    return True


@available_if(_streamable)  # type: ignore[untyped-decorator]
@fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
def partial_fit(self: Streaming, X: Any, y: Any = None) -> Streaming:
    """Learn from one more batch of samples.

    The first samples, ten for each dimension of each subspace, are kept and fitted as `fit`
    would; before there are `n_subspaces * subspace_dim` of them the model is not fitted.
    After that every batch is assigned to the subspaces, and power steps are taken on the batch
    and on the remembered sums together. Then only sums over the batch are remembered, with the
    labels that its samples have at that time. Before each batch the remembered sums are
    multiplied by `forget_factor`.

    With missing entries the first samples are kept until every feature was observed at least
    once, but at most ten times as many as above: then the oldest samples are dropped.

    After `fit` a new stream begins: what `fit` learned is forgotten.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        A batch, in memory.
    y : ignored

    Returns
    -------
    self : object
        `labels_` belong to this batch. `objective_` is the objective over the batch and the
        remembered samples, each with its weight and with the label (and the filled-in entries)
        that it had when it was remembered. `objective_history_` holds the objective before every
        step on this batch. `n_samples_seen_` counts all samples of the stream.
    """
    stream = getattr(self, "_stream", None)
    X = X.compute() if hasattr(X, "__dask_graph__") else X
    X = self._validate(X, reset=stream is None, method="partial_fit")
    if stream is None:
        _forget_fit(self)
        check_plan(sized_plan(self), Data(X, X.shape[1], 10**9))
        nothing = np.zeros(X.shape[1])
        options = tuple(getattr(self, name) for name in FIXED)
        stream = Stream(0, options, nothing, nothing, X[:0])
    _check_options(self, stream)
    X = _cast_to_stream(X, stream)
    learned = (~np.isnan(X)).sum(axis=1) > self.subspace_dim
    warn_left_out(int((~learned).sum()), len(X), self.subspace_dim)
    batch = X if learned.all() else X[learned]
    stream = replace(stream, n_seen=stream.n_seen + len(X))
    if stream.first is not None:
        self._stream = _fit_first(self, stream, batch)
    else:
        self._stream = _update(self, stream, batch, float(self.forget_factor))
    self.n_samples_seen_ = stream.n_seen
    if hasattr(self, "bases_"):
        self.labels_ = self._nearest(X)
    return self


def _fit_first(model: Streaming, stream: Stream, X: np.ndarray) -> Stream:
    """Keep the first samples, and fit them when there are enough."""
    assert stream.first is not None
    first = np.concatenate([stream.first, X])
    n_directions = model.n_subspaces * (model.subspace_dim + model.affine)
    enough = FIRST_PER_DIMENSION * n_directions
    unseen = np.flatnonzero(np.isnan(first).all(axis=0))
    if len(unseen) and len(first) >= enough:
        first = first[-MOST_KEPT_FACTOR * enough :]
        warn_user(
            f"columns {first_ten(unseen)} were not observed in any of the first samples: the "
            f"model is fitted when they are; until then the last {MOST_KEPT_FACTOR * enough} "
            "samples are kept"
        )
    stream = replace(stream, first=first)
    due = len(first) >= min(enough, max(n_directions, REFIT_FACTOR * stream.n_fitted))
    if len(unseen) or not due:
        return stream
    model._stream = stream  # a fit that fails costs no samples
    starter = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        starter.fit(first)
    for name in ("bases_", "mean_", "anchors_", "objective_", "objective_history_",
                 "anneal_history_", "n_iter_", "converged_"):  # fmt: skip
        if hasattr(starter, name):
            setattr(model, name, getattr(starter, name))
    if len(first) < enough:
        return replace(stream, n_fitted=len(first))
    scale = power_of_two_scale(float(np.nanmax(np.abs(first))), machine_epsilon(first))
    memory = Memory.empty(model.mean_ * scale, model.n_subspaces, model.subspace_dim)
    stream = replace(stream, first=None, memory=memory, scale=scale)
    return _update(model, stream, first, 1.0)


def _update(model: Streaming, stream: Stream, X: np.ndarray, forget_factor: float) -> Stream:
    """Apply the forget factor, take power steps on past and batch, and remember the batch.

    Samples of the batch are assigned anew before each step; remembered samples keep their labels.
    """
    stream = stream.with_batch(X, forget_factor)
    assert stream.memory is not None
    dtype, scale = model.bases_.dtype, stream.scale
    center = model.center or model.affine
    mean = stream.mean(dtype) if center else np.zeros_like(model.mean_)
    observation = Observation(
        dtype, mean if center else None, center_first=center, scale=scale,
        holes=bool(np.isnan(X).any()), too_few=model.subspace_dim, prior=model._prior(),
    )  # fmt: skip
    block = observation.block(X)
    if block is None:  # no sample has enough observed entries
        return stream
    lam, past = working_lam(float(model.lam), scale), Past(stream.memory, mean)
    problem = batch_problem(block, lam, model.affine, past)
    points = (model.anchors_ * scale - mean).astype(dtype) if model.affine else None
    n_subspaces, m, s = model.bases_.shape
    with limit_threads(pass_work(len(X), m, n_subspaces * s)):
        rules = Rules("power", MOST_STEPS, STEP_TOL)
        (found,) = alternate(problem, join(model.bases_, points)[None], rules)
    bases, points = problem.shape.split(found.frames)
    complete, weights = block.completed(bases, points, found.labels)
    samples = complete.centred(slice(0, len(found.labels)))
    if weights is None:
        weights = np.ones(len(samples), dtype=samples.dtype)
    # An objective without closeness is in the units of the data.
    unit = scale if math.isinf(lam) else 1.0
    # A copy, so that the array lies in memory as it does after saving and loading.
    model.bases_, model.mean_ = bases.copy(), mean / dtype.type(scale)
    if points is not None:
        model.anchors_ = (points + mean) / dtype.type(scale)
    model.objective_history_ = np.array([(value / unit) / unit for value in found.history])
    model.objective_ = float(model.objective_history_[-1])
    model.n_iter_, model.converged_ = found.n_iter, found.stopped == "converged"
    return replace(stream, memory=stream.memory.with_samples(samples, weights, mean, found.labels))


def _check_options(model: Streaming, stream: Stream) -> None:
    """Raise an error if a parameter in FIXED was changed within the stream."""
    for name, before in zip(FIXED, stream.options, strict=True):
        if (now := getattr(model, name)) != before:
            raise ValueError(
                f"{name}={now} was set within a stream that began with {name}={before}: set "
                "it back, or begin a new stream with sklearn.clone(model)"
            )


def _forget_fit(model: Streaming) -> None:
    """Delete what `fit` has learned, because a new stream begins."""
    for name in list(vars(model)):
        if name.endswith("_") and name not in ("n_features_in_", "feature_names_in_"):
            delattr(model, name)


def _cast_to_stream(X: np.ndarray, stream: Stream) -> np.ndarray:
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
