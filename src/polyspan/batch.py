"""Many small problems at once: Monte Carlo trials, restarts, one model per block of pixels."""

from polyspan.linear.batch import BatchFit, fit_micusal

__all__ = ["BatchFit", "fit_micusal"]


def __dir__() -> list[str]:
    return __all__
