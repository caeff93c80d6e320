"""Mixtures of low-rank Gaussians, and tables that are filled by them."""

from polyspan.mixture.imputer import SubspaceImputer
from polyspan.mixture.mixture import SubspaceMixture

__all__ = ["SubspaceImputer", "SubspaceMixture"]
