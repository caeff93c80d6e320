"""polyspan learns unions of subspaces that are close to each other."""

from importlib.metadata import version

from polyspan import datasets, geometry, metrics
from polyspan.models import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL

__version__ = version("polyspan")
__all__ = ["AdaptiveMiCUSaL", "MiCUSaL", "RobustMiCUSaL", "datasets", "geometry", "metrics"]
