"""scikit-learn estimators."""

from polyspan.models.micusal import MiCUSaL

__all__ = ["MiCUSaL"]
