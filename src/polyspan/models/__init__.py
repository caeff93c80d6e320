"""scikit-learn estimators."""

from polyspan.models.micusal import MiCUSaL
from polyspan.models.robust import RobustMiCUSaL

__all__ = ["MiCUSaL", "RobustMiCUSaL"]
