"""polyspan learns unions of subspaces that are close to each other."""

from importlib.metadata import version

from polyspan import datasets, geometry, kernels, metrics
from polyspan.models import AdaptiveMiCUSaL, MCKUSaL, MiCUSaL, RobustMCKUSaL, RobustMiCUSaL

__version__ = version("polyspan")
__all__ = [
    "AdaptiveMiCUSaL",
    "MCKUSaL",
    "MiCUSaL",
    "RobustMCKUSaL",
    "RobustMiCUSaL",
    "datasets",
    "geometry",
    "kernels",
    "metrics",
]
