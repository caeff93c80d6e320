"""Coordinates and memberships of samples in a mixture, methods of `MixturePrediction`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyspan.arrays import Array, members_of, namespace, restore_order
from polyspan.data.prediction import by_blocks
from polyspan.mixture._solve.gaussians import Posterior

if TYPE_CHECKING:
    from polyspan.mixture.prediction import MixturePrediction


@by_blocks
def coordinates(self: MixturePrediction, X: Any) -> Array:
    """Return the expected coefficients of every sample in its most probable subspace.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples, with NaN for missing entries.

    Returns
    -------
    ndarray of shape (n_samples, subspace_dim)
        Posterior means of D_τᵀ(x - μ_τ) for the sample without its noise, with τ the most probable
        subspace: D_τᵀ(x - μ_τ) shrunk by v/(v + σ²) in each direction, where nothing is missing.
        ``means_[τ] + bases_[τ] @ coordinates`` is the expected clean sample if τ is its subspace.
        Where dimensions differ, `subspace_dim` is the largest, and columns beyond the dimension of
        a subspace are 0.
    """
    X = self._validate(X, reset=False, method="coordinates")

    def own_factors(posterior: Posterior) -> Array:
        xp = namespace(posterior.joint)
        members = members_of(xp.argmax(posterior.joint, axis=1), posterior.joint.shape[1])
        parts = [xp.take(posterior.factors[p, ...], own, axis=0) for p, own in enumerate(members)]
        return restore_order(members, parts)

    return self._per_row(X, own_factors)


def memberships(self: MixturePrediction, X: Any) -> Array:
    """Return the posterior probability of every subspace for every sample, as `predict_proba`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples, with NaN for missing entries.

    Returns
    -------
    ndarray of shape (n_samples, n_subspaces)
        Memberships, whose rows sum to 1; the largest is that of `predict(X)`.
    """
    return self.predict_proba(X)
