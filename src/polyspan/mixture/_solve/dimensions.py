"""Subspaces of unequal dimension: which component gets which dimension, and what that leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyspan.arrays import moved_to, namespace, to_numpy
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture._solve.noise import NoiseRule, within_dims


def match_dims(gaussians: Gaussians, dims: tuple[int, ...]) -> np.ndarray:
    """Return which component gets each of the dimensions, so that the likelihood falls least.

    A component with n samples whose covariance has the eigenvalues λ_j loses, at dimension d, all
    but the mean of those beyond d: its log-likelihood is -n/2 [Σ_{j≤d} log λ_j + (m-d) log σ²]
    with σ² that mean. Dimensions are assigned to components with the largest sum.

    Parameters
    ----------
    gaussians : Gaussians
        Of the largest dimension, which gives their leading eigenvalues and the mean of the others.
    """
    weights = np.exp(to_numpy(gaussians.log_weights).astype(np.float64))
    variances, noise = _spectra(gaussians)
    m = gaussians.bases.shape[1]
    leading = np.cumsum(np.log(variances + noise[:, None]), axis=1)
    leading = np.concatenate([np.zeros((len(noise), 1)), leading], axis=1)
    columns = [
        leading[:, dim] + (m - dim) * np.log(_noise_beyond(variances, noise, dim, m))
        for dim in dims
    ]
    components, slots = linear_sum_assignment(weights[:, None] * np.stack(columns, axis=1))
    return np.asarray(components[np.argsort(slots)])


def truncate(
    gaussians: Gaussians, dims: tuple[int, ...], rule: NoiseRule, order: np.ndarray
) -> Gaussians:
    """Return components in the given order, reduced to these dimensions.

    The variance that is left out is noise: for complete data this is the most likely covariance of
    that dimension.
    """
    xp = namespace(gaussians.bases)
    rows = moved_to(order, gaussians.bases, xp.int64)
    names = ("log_weights", "means", "bases", "variances", "noise")
    found = replace(
        gaussians, **{name: xp.take(getattr(gaussians, name), rows, axis=0) for name in names}
    )
    m, width = gaussians.bases.shape[1:]
    variances, noise = _spectra(found)
    beyond = np.array(
        [
            _noise_beyond(v[None], e[None], dim, m)[0]
            for v, e, dim in zip(variances, noise, dims, strict=True)
        ]
    )
    counts = np.exp(to_numpy(found.log_weights)) * (m - np.asarray(dims))
    within = within_dims(dims, width, found.bases)
    return replace(
        found,
        bases=found.bases * within[:, None, :],
        variances=found.variances * within,
        noise=moved_to(rule.estimate(beyond * counts, counts), found.bases, found.noise.dtype),
    )


def _spectra(gaussians: Gaussians) -> tuple[np.ndarray, np.ndarray]:
    return (
        to_numpy(gaussians.variances).astype(np.float64),
        to_numpy(gaussians.noise).astype(np.float64),
    )


def _noise_beyond(variances: np.ndarray, noise: np.ndarray, dim: int, m: int) -> np.ndarray:
    """Return the mean of the eigenvalues beyond a dimension, for every component."""
    return np.asarray(noise + variances[:, dim:].sum(axis=1) / (m - dim))
