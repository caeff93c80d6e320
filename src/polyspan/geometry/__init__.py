"""Points on the Grassmann manifold: bases, distances and angles between subspaces."""

from polyspan.geometry import bases, distances, matrices
from polyspan.geometry.bases import Dims, draw_bases
from polyspan.geometry.checked import with_checks
from polyspan.geometry.dimension import check_neighbours, estimate_dimension, neighbour_estimate
from polyspan.geometry.distances import (
    pairwise_subspace_distances,
    principal_angles,
    subspace_distance,
)
from polyspan.geometry.matrices import submatrix

__all__ = [
    "Dims",
    "check_neighbours",
    "cholesky_or_none",
    "closeness",
    "closeness_of_gram",
    "distances_between",
    "draw_bases",
    "estimate_dimension",
    "is_orthonormal",
    "leading_eigen",
    "near_copies",
    "neighbour_estimate",
    "orthonormal_columns",
    "orthonormal_rows",
    "orthonormal_step",
    "orthonormalise",
    "pairwise_subspace_distances",
    "principal_angles",
    "range_basis",
    "side_by_side",
    "submatrix",
    "subspace_dims",
    "subspace_distance",
    "zero_padded",
]


_STACK = "..., n_features, dim"
_STACKS = "n_stacks, n_subspaces, n_features, dim"

cholesky_or_none = with_checks(matrices.cholesky_or_none, "n, n", square=True, filled=True)
closeness = with_checks(distances.closeness, _STACKS)
closeness_of_gram = with_checks(
    distances.closeness_of_gram, "n_stacks, columns, columns", square=True
)
distances_between = with_checks(distances.distances_between, "n_subspaces, n_features, dim")
is_orthonormal = with_checks(bases.is_orthonormal, _STACK, filled=True)
leading_eigen = with_checks(matrices.leading_eigen, "n, n", square=True, filled=True)
near_copies = with_checks(bases.near_copies, _STACK, tall=True)
orthonormal_columns = with_checks(bases.orthonormal_columns, _STACK, tall=True)
orthonormal_rows = with_checks(bases.orthonormal_rows, "..., dim, n_features", tall=True)
orthonormal_step = with_checks(bases.orthonormal_step, _STACK, tall=True)
orthonormalise = with_checks(bases.orthonormalise, _STACK, tall=True, filled=True)
range_basis = with_checks(bases.range_basis, "n_features, n_columns", filled=True)
side_by_side = with_checks(distances.side_by_side, _STACKS)
subspace_dims = with_checks(bases.subspace_dims, _STACK)
zero_padded = with_checks(bases.zero_padded, _STACK)


def __dir__() -> list[str]:
    return __all__
