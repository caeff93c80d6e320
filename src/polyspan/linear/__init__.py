"""Unions of linear and affine subspaces, learned from complete or incomplete data."""

from polyspan.linear.adaptive import AdaptiveMiCUSaL
from polyspan.linear.micusal import MiCUSaL
from polyspan.linear.robust import RobustMiCUSaL

__all__ = ["AdaptiveMiCUSaL", "MiCUSaL", "RobustMiCUSaL"]
