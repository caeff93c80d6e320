"""Points on the Grassmann manifold: bases, distances and angles between subspaces."""

from polyspan.geometry.bases import (
    draw_bases,
    is_orthonormal,
    orthonormal_columns,
    orthonormal_step,
    orthonormalise,
    range_basis,
)
from polyspan.geometry.dimension import check_neighbours, estimate_dimension, neighbour_estimate
from polyspan.geometry.distances import (
    closeness,
    pairwise_subspace_distances,
    principal_angles,
    subspace_distance,
)

__all__ = [
    "check_neighbours",
    "closeness",
    "draw_bases",
    "estimate_dimension",
    "is_orthonormal",
    "neighbour_estimate",
    "orthonormal_columns",
    "orthonormal_step",
    "orthonormalise",
    "pairwise_subspace_distances",
    "principal_angles",
    "range_basis",
    "subspace_distance",
]
