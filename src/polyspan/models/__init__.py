"""scikit-learn estimators."""

from polyspan.models.adaptive import AdaptiveMiCUSaL
from polyspan.models.micusal import MiCUSaL
from polyspan.models.robust import RobustMiCUSaL

__all__ = ["AdaptiveMiCUSaL", "MiCUSaL", "RobustMiCUSaL"]
