"""polyspan learns unions of subspaces that are close to each other."""

from importlib.metadata import version

from polyspan import datasets, geometry, images, kernels, metrics
from polyspan.compare import Comparison, compare
from polyspan.models import (
    AdaptiveMiCUSaL,
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
)
from polyspan.persistence import load_model, save_model

__version__ = version("polyspan")
__all__ = [
    "AdaptiveMiCUSaL",
    "Comparison",
    "MCKUSaL",
    "MiCUSaL",
    "RobustMCKUSaL",
    "RobustMiCUSaL",
    "SubspaceImputer",
    "SubspaceMixture",
    "compare",
    "datasets",
    "geometry",
    "images",
    "kernels",
    "load_model",
    "metrics",
    "save_model",
]
