"""Figures of fitted models and result tables. Needs matplotlib: `pip install matplotlib`."""

from polyspan.plotting.comparison import plot_comparison
from polyspan.plotting.partition import plot_partition
from polyspan.plotting.size_choice import plot_size_choice

__all__ = ["plot_comparison", "plot_partition", "plot_size_choice"]
