"""Figures of fitted models and results: `pip install "polyspan[plot]"`."""

from polyspan.plotting.directions import plot_basis_images, plot_loadings
from polyspan.plotting.results import plot_comparison, plot_partition, plot_size_choice
from polyspan.plotting.samples import plot_residuals, plot_samples
from polyspan.plotting.subspaces import plot_subspaces

__all__ = [
    "plot_basis_images",
    "plot_comparison",
    "plot_loadings",
    "plot_partition",
    "plot_residuals",
    "plot_samples",
    "plot_size_choice",
    "plot_subspaces",
]


def __dir__() -> list[str]:
    return __all__
