"""Unions of linear and affine subspaces, learned from complete or incomplete data."""

from polyspan.union.adaptive import AdaptiveMiCUSaL
from polyspan.union.micusal import MiCUSaL
from polyspan.union.robust import RobustMiCUSaL

__all__ = ["AdaptiveMiCUSaL", "MiCUSaL", "RobustMiCUSaL"]
