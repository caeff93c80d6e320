"""One call of `SubspaceMixture.fit`: its data and options, checked, and what a warm start takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy
from polyspan.base.checks import check_scale, first_ten, warn_user
from polyspan.data.weights import check_weights
from polyspan.mixture._solve.gaussians import ExtendedGaussians, Gaussians
from polyspan.mixture.dimensions import Sizes, check_sizes
from polyspan.mixture.fitted import gaussians_of
from polyspan.mixture.problem import Problem
from polyspan.mixture.sizes import choose_sizes

if TYPE_CHECKING:
    from polyspan.mixture.mixture import SubspaceMixture


@dataclass(frozen=True)
class FitCase:
    """Data and options of one fit."""

    problem: Problem
    n_subspaces: int
    dim: int
    """The largest dimension."""
    labels: Array | None
    """Labels to start from, of the samples that count."""
    start: Gaussians | None
    """Where sizes were chosen: the mixture of these sizes."""
    groups: np.ndarray | None
    """Number of the noise group of every sample, those of weight 0 included."""
    group_labels: np.ndarray | None
    candidates: dict[str, np.ndarray] | None
    """Table of the sizes that were compared."""

    @classmethod
    def of(
        cls,
        model: SubspaceMixture,
        X: Array,
        sample_weight: Any,
        noise_groups: Any,
        rng: np.random.RandomState,
    ) -> FitCase:
        """Check the options against the data, leave samples of weight 0 out, choose the sizes."""
        sizes = check_sizes(model.n_subspaces, model.subspace_dim, X)
        weights = check_weights(sample_weight, X)
        kept = np.ones(X.shape[0], dtype=bool) if weights is None else to_numpy(weights) != 0
        group_labels, groups = check_noise_groups(noise_groups, model.noise, kept)
        least = len(sizes) if isinstance(sizes, tuple) else sizes.least
        known = isinstance(sizes, tuple) or sizes.least == sizes.most
        labels = check_start_labels(model.init, least if known else None, kept, X)
        if labels is not None and model.n_init != 1:
            warn_user(f"init has labels: n_init={model.n_init} is not used", RuntimeWarning)
        if weights is not None and not kept.all():
            xp = namespace(X)
            rows = xp.nonzero(weights)[0]
            X, weights = xp.take(X, rows, axis=0), xp.take(weights, rows)
        _check_sizes(least, X.shape[0])
        check_scale(X)
        used = None if groups is None else groups[kept]
        problem = Problem.of_model(model, X, weights=weights, groups=used)
        start = candidates = None
        if isinstance(sizes, Sizes) and model._goes_on:
            dims = tuple(int(dim) for dim in model.subspace_dims_)
        elif isinstance(sizes, Sizes):
            given: Any = {"weights": weights, "groups": used, "labels": labels}
            dims, start, candidates = choose_sizes(model, X, sizes, rng, **given)
            moved = problem.mean if model.affine else 0.0
            start = replace(start, means=start.means - moved)
        else:
            dims = sizes
        problem = problem.with_dims(None if len(set(dims)) == 1 else dims)
        return cls(problem, len(dims), max(dims), labels, start, groups, group_labels, candidates)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that follow from the data."""
        found: dict[str, Any] = {}
        if self.problem.log_ranges is not None:
            found["outlier_ranges_"] = namespace(self.problem.values).exp(self.problem.log_ranges)
        if self.group_labels is not None:
            found["noise_groups_"] = self.group_labels
        if self.candidates is not None:
            found["candidates_"] = self.candidates
        return found


def _check_sizes(n_subspaces: int, n_samples: int) -> None:
    if n_samples < max(2, n_subspaces):
        raise ValueError(
            f"n_samples={n_samples} is too few for n_subspaces={n_subspaces}: every "
            "subspace needs a sample, and the noise needs two in all"
        )


def check_start_labels(
    init: Any, n_subspaces: int | None, kept: np.ndarray, like: Array
) -> Array | None:
    """Return the labels of the samples that count, as an array like X; None without labels.

    Parameters
    ----------
    init : "anneal" or array-like of shape (n_samples,)
    kept : array of bool of shape (n_samples,)
        Samples whose weight is not 0.
    """
    if isinstance(init, str):
        return None
    if n_subspaces is None:
        raise ValueError("init has labels, which are for one number of subspaces: give n_subspaces")
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
        warn_user(
            f"init gives no sample that counts to the subspaces {first_ten(empty)}: clusters with "
            "the largest scatter are cut in two"
        )
    return moved_to(counted, like, namespace(like).int64)


def check_noise_groups(
    noise_groups: Any, noise: Any, kept: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the labels of all groups, sorted, and the number of every sample's group, or None.

    Parameters
    ----------
    noise_groups : array-like of shape (n_samples,) or None
        Labels of any kind that can be sorted, such as numbers or names.
    noise : "subspace", "shared" or float
        The parameter of the mixture.
    kept : array of bool of shape (n_samples,)
        Samples whose weight is not 0.
    """
    if noise_groups is None:
        return None, None
    given = np.asarray(to_numpy(noise_groups))
    if given.shape != kept.shape:
        raise ValueError(
            f"noise_groups has the shape {given.shape}, expected {kept.shape}: one label for "
            "every sample of X"
        )
    if not isinstance(noise, str):
        raise ValueError(
            f"noise={noise} is known for all samples, and noise_groups learns one level for every "
            "group: set noise='subspace' or 'shared'"
        )
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError("noise_groups holds NaN or infinity: every sample needs a group")
    if given.dtype.kind == "O":
        given = _names(given)
    labels, numbers = np.unique(given, return_inverse=True)
    numbers = numbers.reshape(-1)
    absent = np.setdiff1d(np.arange(len(labels)), numbers[kept])
    if len(absent):
        raise ValueError(
            f"noise_groups: all samples of the group {labels[absent[0]]!r} have the weight 0, so "
            "that its noise cannot be learned"
        )
    return labels, numbers


def _names(given: np.ndarray) -> np.ndarray:
    """Return labels that are Python objects as an array of strings, of numbers or of bools."""
    kinds = {type(label) for label in given}
    if any(label is None or label != label for label in given):
        raise ValueError("noise_groups holds None or NaN: every sample needs a group")
    try:
        found = np.array(list(given))
    except (TypeError, ValueError):
        found = given
    if len(kinds) > 1 and found.dtype.kind in "US":
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"noise_groups has labels of several types ({names}), which cannot be sorted: give "
            "numbers or strings"
        )
    if found.ndim != 1 or found.dtype.kind == "O":
        raise ValueError(
            "noise_groups must hold numbers or strings, one for every sample; found "
            f"{given[0]!r:.80}"
        )
    return found


def previous_gaussians(model: Any, case: FitCase, single: Gaussians) -> Gaussians:
    """Return the result of the previous fit, relative to the mean of these samples.

    `single` says what is learned besides Gaussians; a level of it that the previous fit does not
    have starts there.
    """
    problem = case.problem
    mean, rule, dims = problem.mean, problem.rule, problem.samples.dims
    shape = (case.n_subspaces, mean.shape[0], single.bases.shape[2])
    same = model.bases_.shape == shape
    if not same or (dims is not None and tuple(model.subspace_dims_) != dims):
        raise ValueError(
            f"warm_start goes on from bases of shape {model.bases_.shape}, but n_subspaces, "
            f"n_features and subspace_dim are {shape if dims is None else (*shape[:2], dims)}: set "
            "warm_start=False"
        )
    learned = gaussians_of(model)
    means = to_numpy(learned.means)
    means = means + (to_numpy(model.mean_) - to_numpy(mean)) if model.affine else 0 * means
    noise = to_numpy(learned.noise)
    if rule.kind != "subspace":  # the previous fit may have had another rule
        noise = to_numpy(rule.estimate(noise * to_numpy(model.weights_), to_numpy(model.weights_)))
    arrays = (learned.log_weights, means, learned.bases, learned.variances, noise)
    dtype = problem.values.dtype
    found = Gaussians(*(moved_to(to_numpy(array), mean, dtype) for array in arrays))
    if not isinstance(single, ExtendedGaussians):
        return found
    factors = getattr(model, "noise_factors_", None)
    if (
        factors is None
        or single.noise_factors is None
        or (factors.shape != single.noise_factors.shape)
    ):
        factors = single.noise_factors
    share = single.outlier_share
    if problem.row_weights.learned:
        share = float(getattr(model, "outlier_weight_", share))
    return ExtendedGaussians.of(found, share, factors)
