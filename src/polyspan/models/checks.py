"""Checks of the data that several models make, with one message each."""

from __future__ import annotations

import math

import numpy as np

from polyspan.arrays import Array, machine_epsilon, namespace, power_of_two_scale, to_numpy
from polyspan.geometry import closeness
from polyspan.models.messages import warn_user


def listed(indices: np.ndarray) -> str:
    """Name the first ten of some rows or columns."""
    return ", ".join(str(i) for i in indices[:10]) + (", …" if len(indices) > 10 else "")


def check_subspace_dim(subspace_dim: int, n_features: int) -> None:
    """Raise an error where a subspace would be the whole space."""
    if subspace_dim >= n_features:
        raise ValueError(
            f"subspace_dim={subspace_dim} must be smaller than n_features={n_features}: "
            "a subspace of full dimension represents every sample"
        )


def check_columns_observed(missing: Array) -> None:
    """Raise an error where a feature was observed in no sample."""
    xp = namespace(missing)
    never = np.flatnonzero(to_numpy(xp.all(missing, axis=0)))
    if len(never) == missing.shape[1]:
        raise ValueError("all entries of X are NaN: there is nothing to learn from")
    if len(never):
        raise ValueError(
            f"{len(never)} of {missing.shape[1]} columns of X are never observed "
            f"(columns {listed(never)}): leave them out"
        )


def warn_where_together(bases: Array, lam: float) -> None:
    """Warn where several subspaces are one, to a hundredth, because λ is small for the data."""
    n_subspaces, _, s = bases.shape
    pairs = n_subspaces * (n_subspaces - 1)
    if math.isinf(lam) or not pairs * s:
        return
    if float(closeness(bases[None, ...])[0]) < 1e-4 * pairs * s:
        warn_user(
            f"all {n_subspaces} subspaces coincide: lam={lam:g} is small for samples of this size "
            "(raise lam, or scale X so that samples have norm about 1), or one subspace is enough"
        )


def check_scale(X: Array) -> None:
    """Raise an error where squares of entries would leave the range of their type."""
    xp = namespace(X)
    sizes = xp.where(xp.isnan(X), xp.zeros_like(X), xp.abs(X))
    largest = float(xp.max(sizes))
    if power_of_two_scale(largest, machine_epsilon(X)) != 1.0:
        raise ValueError(
            f"the largest entry of X is {largest:.3g} in size, and squares would leave the range "
            f"of {X.dtype}: scale X"
        )
