"""Rows of data with holes, grouped so that equal masks share their small systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyspan.arrays import (
    CHUNK_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    identity,
    is_host,
    item_bytes,
    namespace,
    transpose,
    zeros,
)
from polyspan.solvers.mixture import LOG_2PI, Gaussians
from polyspan.solvers.small_systems import invert_together, pairwise_products, solve_packed


@dataclass(frozen=True)
class Group:
    """Some rows: all with one mask, or each with its own."""

    rows: Array
    """Which rows, (n,)."""
    values: Array
    """Zero where missing, (n, n_features)."""
    observed: Array
    """1 where observed, else 0: (n, n_features), or (1, n_features) for one mask."""

    @property
    def shared(self) -> bool:
        """Whether all rows have one mask."""
        return bool(self.observed.shape[0] == 1)

    def take(self, members: Array) -> Group:
        """Return some of the rows."""
        xp = namespace(self.values)
        observed = self.observed if self.shared else xp.take(self.observed, members, axis=0)
        rows = xp.take(self.rows, members)
        return Group(rows, xp.take(self.values, members, axis=0), observed)


@dataclass(frozen=True)
class Patterns:
    """Zero-filled rows, where they are observed, and which of them share a mask."""

    values: Array
    """Shape (n, n_features)."""
    observed: Array
    """1 or 0, of the type of the values."""
    together: tuple[Array, ...]
    """Rows of every mask that recurs."""
    single: Array
    """All other rows."""

    def groups(self, n_systems: int, dim: int) -> Iterator[Group]:
        """Yield all rows, in groups whose systems stay within the memory bound."""
        xp = namespace(self.values)
        m, size = self.values.shape[1], item_bytes(self.values)
        # A step holds several arrays of this size: on an accelerator too they have to fit.
        most = 4 * CHUNK_BYTES if is_host(self.values) else DEVICE_CHUNK_BYTES // 4
        wide = max(1, most // (size * (3 * m + 4 * n_systems * (dim + 1))))
        for rows in self.together:
            for start in range(0, rows.shape[0], wide):
                part = rows[start : min(start + wide, rows.shape[0])]
                observed = xp.take(self.observed, part[:1], axis=0)
                yield Group(part, xp.take(self.values, part, axis=0), observed)
        per_row = size * (3 * m + 2 * n_systems * (dim + 1) * (dim + 2))
        long = max(1, most // per_row)
        n = self.single.shape[0]
        for start in range(0, n, long):
            part = self.single[start : min(start + long, n)]
            yield Group(
                part, xp.take(self.values, part, axis=0), xp.take(self.observed, part, axis=0)
            )


def posterior_factors(group: Group, gaussians: Gaussians) -> tuple[Array, Array, Array]:
    r"""Return joint log-densities, squared Mahalanobis distances and expected factors z.

    With x = μ_l + W_l z + noise on the observed entries o, A = I + W_oᵀW_o/σ² is all that is ever
    factorised: z = A⁻¹W_oᵀ(x - μ)_o/σ², the squared distance is (‖(x - μ)_o‖² - (x - μ)_oᵀW_o z)/σ²
    and log|C_oo| = log|A| + |o| log σ².

    Returns
    -------
    joint, squares : arrays of shape (n, n_subspaces)
    factors : array of shape (n_subspaces, n, s)
    """
    xp = namespace(group.values)
    W, means, noise = gaussians.factors, gaussians.means, gaussians.noise
    values, observed = group.values, group.observed
    right = transpose(W) @ transpose(values)[None, ...]  # (L, s, n)
    right = right - transpose(W * means[..., None]) @ transpose(observed)[None, ...]
    right = right / noise[:, None, None]
    if group.shared:
        masked = W * xp.reshape(observed, (1, -1, 1))
        systems = unit_plus(transpose(masked) @ masked, noise)
        logs = xp.linalg.slogdet(systems)[1][:, None]
        z = xp.linalg.solve(systems, right)
    else:
        z, logs = _eliminate(W, observed, right, noise)
    norms = xp.sum(values * values, axis=1)[None, :] - 2.0 * (means @ transpose(values))
    norms = norms + (means * means) @ transpose(observed)
    squares = norms / noise[:, None] - xp.sum(right * z, axis=1)
    squares = xp.where(squares > 0, squares, xp.zeros_like(squares))
    n_observed = xp.sum(observed, axis=1)[None, :]
    constant = logs + n_observed * (xp.log(noise)[:, None] + LOG_2PI)
    joint = gaussians.log_weights[:, None] - 0.5 * (squares + constant)
    return transpose(joint), transpose(squares), transpose(z)


def posterior_covariances(group: Group, gaussians: Gaussians, p: int) -> Array:
    """Return A⁻¹ for component p: (s, s, n), or (s, s, 1) for one mask."""
    xp = namespace(group.values)
    W, noise = gaussians.factors[p, ...], gaussians.noise[p]
    if group.shared:
        masked = W * transpose(group.observed)
        systems = unit_plus((transpose(masked) @ masked)[None, ...], noise[None])
        return xp.permute_dims(xp.linalg.inv(systems), (1, 2, 0))
    return invert_together(observed_systems(W, noise, group.observed))[0]


def observed_systems(W: Array, noise: Array, observed: Array) -> Array:
    """Return A = I + W_oᵀW_o/σ² of one component for rows with masks of their own: (s, s, n)."""
    xp = namespace(W)
    m, s = W.shape
    scaled = transpose(W) / xp.sqrt(noise)
    outer = xp.reshape(scaled[:, None, :] * scaled[None, :, :], (s * s, m))
    systems = xp.reshape(outer @ transpose(observed), (s, s, observed.shape[0]))
    for i in range(s):
        systems[i, i, :] += 1.0
    return systems


def unit_plus(grams: Array, noise: Array) -> Array:
    """Return I + gram/σ²."""
    return identity(grams.shape[-1], grams) + grams / noise[:, None, None]


def _eliminate(W: Array, observed: Array, right: Array, noise: Array) -> tuple[Array, Array]:
    """Solve the systems of all rows and components together; return also log|A|."""
    xp = namespace(W)
    n_subspaces, m, s = W.shape
    n = observed.shape[0]
    if not s:
        return right, zeros((n_subspaces, n), W)
    pairs = pairwise_products(W / xp.sqrt(noise)[:, None, None])
    t = pairs.shape[1]
    grams = xp.reshape(
        xp.reshape(pairs, (n_subspaces * t, m)) @ transpose(observed), (n_subspaces, t, n)
    )
    diagonal = [i * s - i * (i - 1) // 2 for i in range(s)]
    for k in diagonal:
        grams[:, k, :] += 1.0
    z = solve_packed(grams, xp.asarray(right, copy=True))
    # Elimination leaves the pivots, whose product is the determinant, on the diagonal.
    logs = sum(xp.log(grams[:, k, :]) for k in diagonal)
    return z, logs
