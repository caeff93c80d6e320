"""polyspan learns unions of subspaces that are close to each other."""

from importlib.metadata import version

from polyspan import datasets, geometry, metrics
from polyspan.models import MiCUSaL, RobustMiCUSaL

__version__ = version("polyspan")
__all__ = ["MiCUSaL", "RobustMiCUSaL", "datasets", "geometry", "metrics"]
