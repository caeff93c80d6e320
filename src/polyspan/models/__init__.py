"""scikit-learn estimators."""

from polyspan.models.adaptive import AdaptiveMiCUSaL
from polyspan.models.imputer import SubspaceImputer
from polyspan.models.mckusal import MCKUSaL
from polyspan.models.micusal import MiCUSaL
from polyspan.models.mixture import SubspaceMixture
from polyspan.models.robust import RobustMiCUSaL
from polyspan.models.robust_mckusal import RobustMCKUSaL

__all__ = [
    "AdaptiveMiCUSaL",
    "MCKUSaL",
    "MiCUSaL",
    "RobustMCKUSaL",
    "RobustMiCUSaL",
    "SubspaceImputer",
    "SubspaceMixture",
]
