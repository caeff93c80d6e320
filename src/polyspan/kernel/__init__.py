"""Unions of subspaces of a kernel's feature space, learned from complete or incomplete data."""

from polyspan.kernel.mckusal import MCKUSaL
from polyspan.kernel.robust import RobustMCKUSaL

__all__ = ["MCKUSaL", "RobustMCKUSaL"]
