"""Many small problems at once: Monte Carlo trials, restarts, one model per block of pixels."""

from polyspan.batch.group import BatchFit
from polyspan.batch.micusal import fit_micusal

__all__ = ["BatchFit", "fit_micusal"]
