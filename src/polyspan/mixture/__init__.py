"""Mixtures of low-rank Gaussians, and an imputer that fills tables with them."""

from polyspan.mixture.imputer import SubspaceImputer
from polyspan.mixture.mixture import SubspaceMixture

__all__ = ["SubspaceImputer", "SubspaceMixture"]
