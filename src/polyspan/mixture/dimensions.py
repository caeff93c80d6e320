"""The parameters `n_subspaces` and `subspace_dim` of mixtures: given, or to be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from polyspan.base.checks import check_subspace_dim
from polyspan.linear.options import dims_of

# Numbers of subspaces that "auto" compares.
NUMBERS = (1, 10)
# A subspace of dimension s needs so many rows for each of s + 1.
ROWS_PER_DIRECTION = 2


@dataclass(frozen=True)
class Sizes:
    """Sizes to choose from."""

    least: int
    most: int
    """Of the number of subspaces."""
    dim: int | None
    """Their dimension; None: any."""


def few_rows(n_rows: float, dim: int) -> bool:
    """Tell whether a subspace of this dimension has too few rows to be learned."""
    return n_rows < ROWS_PER_DIRECTION * (dim + 1)


def check_sizes(n_subspaces: Any, subspace_dim: Any, X: Any) -> Sizes | tuple[int, ...]:
    """Return the dimension of every subspace, or the sizes to choose from."""
    n, m = X.shape
    if isinstance(n_subspaces, str):
        n_subspaces = (NUMBERS[0], min(NUMBERS[1], n))
    bounds = (n_subspaces,) * 2 if isinstance(n_subspaces, Integral) else tuple(n_subspaces)
    whole = len(bounds) == 2 and all(isinstance(one, Integral) for one in bounds)
    if not whole or not 1 <= bounds[0] <= bounds[1]:
        raise ValueError(
            f"n_subspaces={n_subspaces} must be one number, 'auto', or two numbers (least, most) "
            "with 1 <= least <= most"
        )
    least, most = map(int, bounds)
    if isinstance(subspace_dim, str):
        return Sizes(least, most, None)
    if least < most and not isinstance(subspace_dim, Integral):
        raise ValueError(
            f"subspace_dim={subspace_dim} gives one dimension for every subspace, which needs "
            f"their number; n_subspaces={n_subspaces}"
        )
    largest, dims = dims_of(least, subspace_dim)
    check_subspace_dim(largest, m, dims)
    return Sizes(least, most, largest) if least < most else dims or (largest,) * least
