"""Tables with missing entries: fill them, see what is missing, pool estimates from several."""

from polyspan.tables.imputer import SubspaceImputer
from polyspan.tables.missing import MissingSummary, missing_summary
from polyspan.tables.pooling import PooledEstimate, pool_estimates

__all__ = [
    "MissingSummary",
    "PooledEstimate",
    "SubspaceImputer",
    "missing_summary",
    "pool_estimates",
]
