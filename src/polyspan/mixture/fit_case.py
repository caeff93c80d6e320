"""One call of `SubspaceMixture.fit`: its data and options, checked, and what a warm start takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from polyspan.arrays import Array, moved_to, namespace, to_numpy
from polyspan.checks import check_scale, warn_user
from polyspan.data.weights import check_weights, weighted_rows
from polyspan.mixture._solve.gaussians import ExtendedGaussians, Gaussians
from polyspan.mixture.dimensions import check_dims, choose_dims, most_dims
from polyspan.mixture.fitted import gaussians_of
from polyspan.mixture.noise_groups import check_noise_groups
from polyspan.mixture.problem import Problem
from polyspan.mixture.start_labels import check_start_labels


class Parameters(Protocol):
    """Parameters of a mixture that its data are checked against."""

    n_subspaces: int
    subspace_dim: Any
    affine: bool
    center: bool
    noise: Any
    outliers: Any
    init: Any
    n_init: int


@dataclass(frozen=True)
class FitCase:
    """Data and options of one fit."""

    problem: Problem
    dim: int
    """The largest dimension."""
    labels: Array | None
    """Labels to start from, of the samples that count."""
    groups: np.ndarray | None
    """Number of the noise group of every sample, those of weight 0 included."""
    group_labels: np.ndarray | None

    @classmethod
    def of(
        cls,
        model: Parameters,
        X: Array,
        sample_weight: Any,
        noise_groups: Any,
        rng: np.random.RandomState,
    ) -> FitCase:
        """Check the options against the data, and leave samples of weight 0 out."""
        dims: int | tuple[int, ...]
        if isinstance(model.subspace_dim, str):
            dims = choose_dims(model, X, sample_weight, noise_groups, rng)
        else:
            dims = check_dims(model.subspace_dim, model.n_subspaces, X.shape[1])
        weights = check_weights(sample_weight, X)
        found = check_noise_groups(noise_groups, X.shape[0], model.noise)
        group_labels, groups = (None, None) if found is None else found
        kept = np.ones(X.shape[0], dtype=bool)
        if weights is not None:
            kept = to_numpy(weights) != 0
        labels = check_start_labels(model.init, model.n_subspaces, kept, X)
        if labels is not None and model.n_init != 1:
            warn_user(f"init has labels: n_init={model.n_init} is not used", RuntimeWarning)
        if weights is not None and not kept.all():
            rows, xp = weighted_rows(weights), namespace(X)
            X, weights = xp.take(X, rows, axis=0), xp.take(weights, rows)
        _check_sizes(model.n_subspaces, X.shape[0])
        check_scale(X)
        used = None if groups is None else groups[kept]
        if used is not None and len(np.unique(used)) < len(_present(group_labels)):
            absent = np.setdiff1d(np.arange(len(_present(group_labels))), used)
            raise ValueError(
                f"noise_groups: all samples of the group {_present(group_labels)[absent[0]]!r} "
                "have the weight 0, so that its noise cannot be learned"
            )
        problem = Problem.of(
            X, model.noise, affine=model.affine, center=model.affine or model.center,
            weights=weights, outliers=model.outliers, groups=used,
        )  # fmt: skip
        problem = problem.with_dims(dims if isinstance(dims, tuple) else None)
        return cls(problem, most_dims(dims), labels, groups, group_labels)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that follow from the data."""
        found: dict[str, Any] = {}
        if self.problem.log_ranges is not None:
            found["outlier_ranges_"] = namespace(self.problem.values).exp(self.problem.log_ranges)
        if self.group_labels is not None:
            found["noise_groups_"] = self.group_labels
        return found


def _present(labels: np.ndarray | None) -> np.ndarray:
    assert labels is not None
    return labels


def _check_sizes(n_subspaces: int, n_samples: int) -> None:
    if n_samples < max(2, n_subspaces):
        raise ValueError(
            f"n_samples={n_samples} is too few for n_subspaces={n_subspaces}: every "
            "subspace needs a sample, and the noise needs two in all"
        )


def previous_gaussians(model: Any, problem: Problem, single: Gaussians) -> Gaussians:
    """Return the result of the previous fit, relative to the mean of these samples.

    `single` says what is learned besides Gaussians; a level of it that the previous fit does not
    have starts there.
    """
    mean, rule, dims = problem.mean, problem.rule, problem.samples.dims
    shape = (model.n_subspaces, mean.shape[0], single.bases.shape[2])
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
