"""Kernel values, from complete and incomplete samples, and the way back to the input space."""

from polyspan.kernel.bounds import (
    coherence,
    gaussian_kernel_bounds,
    inner_product_deviation,
    polynomial_kernel_bounds,
    squared_distance_deviation,
)
from polyspan.kernel.functions import Kernel
from polyspan.kernel.incomplete import (
    Estimate,
    estimate_feature_distances,
    estimate_kernel,
    mend,
    nearest_positive_definite,
)

__all__ = [
    "Estimate",
    "Kernel",
    "coherence",
    "estimate_feature_distances",
    "estimate_kernel",
    "gaussian_kernel_bounds",
    "inner_product_deviation",
    "mend",
    "nearest_positive_definite",
    "polynomial_kernel_bounds",
    "squared_distance_deviation",
]


def __dir__() -> list[str]:
    return __all__
