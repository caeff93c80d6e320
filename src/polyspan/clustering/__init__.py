"""Clusters of real data: a consensus of spectral graphs, without labels and without tuning."""

from polyspan.clustering.subspace_clustering import SubspaceClustering

__all__ = ["SubspaceClustering"]
