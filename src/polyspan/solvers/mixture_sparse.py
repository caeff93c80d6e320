"""A few steps of EM in which every sample keeps only the components that it may belong to.

Shares below a bound are set to 0 and the others raised to sum to 1; a component once left out for a
sample is not looked at again. Each step still raises a bound of the likelihood, the free energy of
Neal and Hinton (1998). With one or two components per sample instead of twenty, a step on data
with holes costs a quarter (1797 digits, twelve directions).
"""

from __future__ import annotations

import math

from polyspan.arrays import Array, float64_sum, namespace, transpose, zeros
from polyspan.solvers.mixture import LOG_2PI, Gaussians, Pull, share_out
from polyspan.solvers.mixture_masked import (
    FactorSums,
    MaskedSamples,
    gather_factors,
    own_sums,
    stack_sums,
)
from polyspan.solvers.mixture_patterns import Group, observed_systems, posterior_factors
from polyspan.solvers.small_systems import invert_together

# What a component must have of a sample to stay. Down from 1e-2 to 1e-7 the error of filled digits
# changes by less than a thousandth.
LEAST_SHARE = 0.01


def learn_sparse(
    samples: MaskedSamples,
    start: Gaussians,
    pull: Pull,
    *,
    n_iter: int,
    likely: Array | None = None,
) -> tuple[Gaussians, Array | None]:
    """Take `n_iter` steps.

    Parameters
    ----------
    likely : array of bool of shape (n_samples, n_subspaces) or None
        Which components every sample looks at; None: all of them, at first.

    Returns
    -------
    gaussians : Gaussians
    likely : array or None
        Which components are left.
    """
    gaussians = start
    for _ in range(n_iter):
        sums, likely = expect_sparse(samples, gaussians, likely)
        gaussians = samples.maximise(gaussians, sums, pull)
    return gaussians, likely


def expect_sparse(
    samples: MaskedSamples, gaussians: Gaussians, likely: Array | None
) -> tuple[FactorSums, Array]:
    """Return the sums that an update needs, and the components that every sample keeps."""
    patterns = samples.patterns
    xp = namespace(patterns.values)
    n_subspaces, _, s = gaussians.bases.shape
    kept = zeros((patterns.values.shape[0], n_subspaces), patterns.values, xp.bool)
    total = None
    n_systems = n_subspaces
    if likely is not None:  # whole matrices, for as many components as a sample has left
        n_systems = 2 * math.ceil(float(float64_sum(likely)) / max(1, likely.shape[0]))
    for group in patterns.groups(n_systems, s):
        if likely is None or group.shared:
            joint, _, z = posterior_factors(group, gaussians)
            if likely is not None:
                joint = xp.where(likely[group.rows, :], joint, xp.full_like(joint, _lowest(joint)))
            shares = _likely_shares(joint)
            part = gather_factors(group, gaussians, shares, z)
        else:
            shares, part = _expect_members(group, gaussians, likely[group.rows, :])
        kept[group.rows, :] = shares > 0
        total = part if total is None else total + part
    assert total is not None
    return total, kept


def _lowest(a: Array) -> float:
    """Return a log-density that leaves no share, and may still be subtracted from."""
    return float(namespace(a).finfo(a.dtype).min) / 4


def _likely_shares(joint: Array) -> Array:
    """Return the posterior shares, without the small ones."""
    xp = namespace(joint)
    shares = share_out(joint)[0]
    # The largest always stays, however many share the sample.
    bound = xp.minimum(xp.max(shares, axis=1, keepdims=True), xp.full_like(shares, LEAST_SHARE))
    shares = xp.where(shares >= bound, shares, xp.zeros_like(shares))
    return shares / xp.sum(shares, axis=1, keepdims=True)


def _expect_members(group: Group, gaussians: Gaussians, likely: Array) -> tuple[Array, FactorSums]:
    """Look at the likely components only; one inverse gives factors, densities and covariances."""
    xp = namespace(group.values)
    joint = xp.full(likely.shape, _lowest(group.values), dtype=group.values.dtype)
    factors = gaussians.factors
    found = []
    for p in range(likely.shape[1]):
        members = xp.nonzero(likely[:, p])[0]
        own = group.take(members)
        logs, z, inverse = _posterior(own, gaussians, factors[p, ...], p)
        joint[members, p] = logs
        found.append((members, own, z, inverse))
    shares = _likely_shares(joint)
    parts = [
        own_sums(own, shares[members, p], transpose(z), inverse)
        for p, (members, own, z, inverse) in enumerate(found)
    ]
    return shares, stack_sums(parts)


def _posterior(own: Group, gaussians: Gaussians, W: Array, p: int) -> tuple[Array, Array, Array]:
    """Return joint log-densities (n,), expected factors (s, n), their covariances (s, s, n)."""
    xp = namespace(W)
    mean, noise = gaussians.means[p, :], gaussians.noise[p]
    inverse, logs = invert_together(observed_systems(W, noise, own.observed))
    off = own.values - mean * own.observed
    right = transpose(W) @ transpose(off) / noise
    z = xp.sum(inverse * right[None, :, :], axis=1)
    squares = xp.sum(off * off, axis=1) / noise - xp.sum(right * z, axis=0)
    squares = xp.where(squares > 0, squares, xp.zeros_like(squares))
    constant = logs + xp.sum(own.observed, axis=1) * (xp.log(noise) + LOG_2PI)
    return gaussians.log_weights[p] - 0.5 * (squares + constant), z, inverse
