"""Figures of fitted models, results and missing entries. Needs `pip install matplotlib`."""

from polyspan.plotting.comparison import plot_comparison
from polyspan.plotting.missing import plot_missing
from polyspan.plotting.partition import plot_partition
from polyspan.plotting.size_choice import plot_size_choice

__all__ = ["plot_comparison", "plot_missing", "plot_partition", "plot_size_choice"]
