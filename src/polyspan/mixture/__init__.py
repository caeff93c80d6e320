"""Mixtures of low-rank Gaussians."""

from polyspan.mixture.mixture import SubspaceMixture

__all__ = ["SubspaceMixture"]
