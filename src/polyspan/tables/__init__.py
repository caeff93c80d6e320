"""Tables with missing entries: fill them, and pool estimates from several."""

from polyspan.tables.imputer import SubspaceImputer
from polyspan.tables.pooling import PooledEstimate, pool_estimates

__all__ = [
    "PooledEstimate",
    "SubspaceImputer",
    "pool_estimates",
]
