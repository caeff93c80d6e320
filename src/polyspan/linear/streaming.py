"""`partial_fit`: unions of subspaces from a stream of batches, with optional forgetting."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polyspan.base.arrays import limit_threads, machine_epsilon, pass_work, power_of_two_scale
from polyspan.base.checks import first_ten, warn_left_out, warn_user
from polyspan.base.private_sklearn import available_if, fit_context
from polyspan.data.weights import check_weights, keep_without_weight
from polyspan.data.working import working_lam
from polyspan.linear._solve.alternation import Rules, alternate
from polyspan.linear._solve.memory import Memory, Past
from polyspan.linear._solve.observation import Observation
from polyspan.linear._solve.problem import batch_problem
from polyspan.linear._solve.shape import join
from polyspan.linear.looking import noise_variance
from polyspan.linear.options import (
    MOST_FEATURES,
    check_needs,
    check_plan,
    dims_of,
    sized_plan,
)
from polyspan.linear.reading import Data

if TYPE_CHECKING:
    from polyspan.linear.linear_union import LinearUnion

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

    n_seen: float
    """Number of samples so far, or the sum of their weights."""
    options: tuple[Any, ...]
    """Values of the parameters that may not change, at the beginning of the stream."""
    sums: np.ndarray
    """Weighted sums of the observed entries of every feature, times `scale`."""
    counts: np.ndarray
    """Sums of the weights of these entries."""
    first: np.ndarray | None = None
    """The first samples with enough observed entries, until there are enough to start from."""
    first_weights: np.ndarray | None = None
    """Weights of `first`; None: 1 for each."""
    n_fitted: int = 0
    """Number of samples in `first` at the last fit."""
    memory: Memory | None = None
    """Sums over past samples times `scale`."""
    scale: float = 1.0
    """A power of two that keeps squares finite."""

    def with_batch(self, X: np.ndarray, weights: np.ndarray | None, forget_factor: float) -> Stream:
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
        own = True if weights is None else weights[:, None]
        return replace(
            self,
            sums=forget_factor * sums + (own * (values * scale)).sum(axis=0, dtype=np.float64),
            counts=forget_factor * self.counts + (own * ~missing).sum(axis=0),
            memory=memory.faded(forget_factor),
            scale=scale,
        )

    def mean(self, dtype: Any) -> np.ndarray:
        """Return the weighted mean of the observed entries of every feature, times `scale`."""
        return np.asarray(self.sums / np.maximum(self.counts, 1e-300), dtype=dtype)


def _streamable(model: LinearUnion) -> bool:
    """Raise an error if the options of a model rule out `partial_fit`.

    Wrong values are no reason for that: `partial_fit` itself refuses them, as `fit` does.
    """
    solver = "power" if model.solver == "mm" else model.solver
    if solver in MOST_FEATURES:
        rules = Rules(solver, leave_one_out=model.residual == "loo", trim=model.trim)
        check_needs(rules, model.affine, "stream", 0)
    return True


@available_if(_streamable)
@fit_context(prefer_skip_nested_validation=True)
def partial_fit(self: LinearUnion, X: Any, y: Any = None, sample_weight: Any = None) -> LinearUnion:
    """Learn from one more batch of samples.

    The first samples, ten for each dimension of each subspace, are kept and fitted as `fit`
    would; before there are as many as dimensions in all subspaces the model is not fitted.
    After that every batch is assigned to the subspaces, and power steps are taken on the batch
    and on the remembered sums together. Then only sums over the batch are remembered, with the
    labels that its samples have at that time. Before each batch the remembered sums are
    multiplied by `forget_factor`.

    With missing entries the first samples are kept until every feature was observed at least
    once, but at most ten times as many as above: then the oldest samples are dropped.

    After `fit` a new stream begins: what `fit` learned is forgotten. A batch that ends in an error,
    or is interrupted, is not counted: it may be given again.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        One batch of samples, in memory.
    y : Ignored
        Not used, present for API consistency by convention.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples: 2 is the sample twice, 0 is no sample. None: 1 for each. The
        first samples are counted without their weights. A batch whose weights are all 0 changes
        nothing but `labels_`.

    Returns
    -------
    object
        The estimator itself. `labels_` and `noise_variance_` belong to this batch. `objective_` is
        the objective over the batch and the remembered samples, each with its weight and with the
        label (and the filled-in entries) that it had when it was remembered. `objective_history_`
        holds the objective before every step on this batch. `n_samples_seen_` counts all samples
        of the stream, by their weights.
    """
    stream = getattr(self, "_stream", None)
    X = X.compute() if hasattr(X, "__dask_graph__") else X
    X = self._validate(X, reset=stream is None, method="partial_fit")
    weights = check_weights(sample_weight, X, allow_zero=True)
    if stream is None:
        _forget_fit(self)
        check_plan(sized_plan(self), Data(X, X.shape[1], 10**9))
        nothing = np.zeros(X.shape[1])
        stream = Stream(0, _options(self), nothing, nothing, X[:0])
    _check_options(self, stream)
    X = _cast_to_stream(X, stream)
    dim, _ = dims_of(self.n_subspaces, self.subspace_dim)
    learned = (~np.isnan(X)).sum(axis=1) > dim
    warn_left_out(int((~learned).sum()), len(X), dim)
    counted = len(X) if weights is None else float(weights.sum(dtype=np.float64))
    stream = replace(stream, n_seen=stream.n_seen + counted)
    if weights is not None:
        weights = weights.astype(X.dtype, copy=False)
        learned &= weights > 0
        weights = weights[learned]
    batch = X if learned.all() else X[learned]
    if weights is not None and not len(batch):
        self._stream = stream
    elif stream.first is not None:
        self._stream = _fit_first(self, stream, batch, weights)
    else:
        self._stream = _update(self, stream, batch, weights, float(self.forget_factor))
    self.n_samples_seen_ = stream.n_seen
    if hasattr(self, "bases_"):
        self.labels_ = self._nearest(X)
        keep_without_weight(self, sample_weight)
        if len(batch) or not hasattr(self, "noise_variance_"):
            self.noise_variance_ = noise_variance(self, batch, sample_weight=weights)
    return self


def _fit_first(
    model: LinearUnion, stream: Stream, X: np.ndarray, new_weights: np.ndarray | None
) -> Stream:
    """Keep the first samples, and fit them when there are enough."""
    assert stream.first is not None
    first = np.concatenate([stream.first, X])
    weights = None
    if new_weights is not None or stream.first_weights is not None:
        parts = ((stream.first, stream.first_weights), (X, new_weights))
        weights = np.concatenate([np.ones(len(a), X.dtype) if w is None else w for a, w in parts])
    plan = sized_plan(model)
    n_directions = plan.n_directions
    enough = FIRST_PER_DIMENSION * n_directions
    unseen = np.flatnonzero(np.isnan(first).all(axis=0))
    if len(unseen) and len(first) >= enough:
        first = first[-MOST_KEPT_FACTOR * enough :]
        weights = None if weights is None else weights[-MOST_KEPT_FACTOR * enough :]
        warn_user(
            f"columns {first_ten(unseen)} were not observed in any of the first samples: the "
            f"model is fitted when they are; until then the last {MOST_KEPT_FACTOR * enough} "
            "samples are kept"
        )
    stream = replace(stream, first=first, first_weights=weights)
    due = len(first) >= min(enough, max(n_directions, REFIT_FACTOR * stream.n_fitted))
    if len(unseen) or not due:
        return stream
    starter = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        starter.fit(first, **({} if weights is None else {"sample_weight": weights}))
    for name in ("bases_", "mean_", "anchors_", "lam_", "objective_", "objective_history_",
                 "anneal_history_", "n_iter_", "converged_"):  # fmt: skip
        if hasattr(starter, name):
            setattr(model, name, getattr(starter, name))
    if len(first) < enough:
        return replace(stream, n_fitted=len(first))
    scale = power_of_two_scale(float(np.nanmax(np.abs(first))), machine_epsilon(first))
    memory = Memory.empty(model.mean_ * scale, model.n_subspaces, plan.subspace_dim)
    stream = replace(stream, first=None, first_weights=None, memory=memory, scale=scale)
    return _update(model, stream, first, weights, 1.0)


def _update(
    model: LinearUnion,
    stream: Stream,
    X: np.ndarray,
    sample_weights: np.ndarray | None,
    forget_factor: float,
) -> Stream:
    """Apply the forget factor, take power steps on past and batch, and remember the batch.

    Samples of the batch are assigned anew before each step; remembered samples keep their labels.
    """
    stream = stream.with_batch(X, sample_weights, forget_factor)
    assert stream.memory is not None
    dtype, scale = model.bases_.dtype, stream.scale
    center = model.center or model.affine
    mean = stream.mean(dtype) if center else np.zeros_like(model.mean_)
    observation = Observation(
        dtype, mean if center else None, center_first=center, scale=scale,
        holes=bool(np.isnan(X).any()), too_few=model.bases_.shape[2], prior=model._prior(),
    )  # fmt: skip
    block = observation.block(X, sample_weights)
    if block is None:  # no sample has enough observed entries
        return stream
    lam, past = working_lam(learned_lam(model), scale), Past(stream.memory, mean)
    _, dims = dims_of(model.n_subspaces, model.subspace_dim)
    problem = batch_problem(block, lam, model.affine, past).with_dims(dims)
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


def learned_lam(model: Any) -> float:
    """Return λ; a stream keeps that of its first samples, but for a number that is set later."""
    return float(model.lam_ if isinstance(model.lam, str) else model.lam)


def _options(model: LinearUnion) -> tuple[Any, ...]:
    """Return the values of the parameters in FIXED; dimensions are one number where equal."""
    largest, dims = dims_of(model.n_subspaces, model.subspace_dim)
    return model.n_subspaces, dims or largest, model.center, model.affine


def _check_options(model: LinearUnion, stream: Stream) -> None:
    """Raise an error if a parameter in FIXED was changed within the stream."""
    for name, before, now in zip(FIXED, stream.options, _options(model), strict=True):
        if now != before:
            raise ValueError(
                f"{name}={now} was set within a stream that began with {name}={before}: set "
                "it back, or begin a new stream with sklearn.clone(model)"
            )


def _forget_fit(model: LinearUnion) -> None:
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
