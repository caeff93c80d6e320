"""Points on the Grassmann manifold: bases, distances and angles between subspaces."""

from polyspan.geometry.bases import (
    Dims,
    draw_bases,
    is_orthonormal,
    near_copies,
    orthonormal_columns,
    orthonormal_rows,
    orthonormal_step,
    orthonormalise,
    range_basis,
    subspace_dims,
    zero_padded,
)
from polyspan.geometry.dimension import check_neighbours, estimate_dimension, neighbour_estimate
from polyspan.geometry.distances import (
    closeness,
    closeness_of_gram,
    distances_between,
    pairwise_subspace_distances,
    principal_angles,
    side_by_side,
    subspace_distance,
)
from polyspan.geometry.matrices import cholesky_or_none, leading_eigen, submatrix

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


def __dir__() -> list[str]:
    return __all__
