"""polyspan learns unions of subspaces that are close to each other."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from polyspan import datasets, geometry, images, kernels, metrics
from polyspan.compare import Comparison, compare
from polyspan.kernel import MCKUSaL, RobustMCKUSaL
from polyspan.mixture import SubspaceImputer, SubspaceMixture
from polyspan.union import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL

if TYPE_CHECKING:
    from polyspan.persistence import load_model, save_model

try:
    __version__ = version("polyspan")
except PackageNotFoundError:  # pragma: no cover - run from a checkout that was never installed
    __version__ = "0+unknown"
__all__ = [
    "AdaptiveMiCUSaL",
    "Comparison",
    "MCKUSaL",
    "MiCUSaL",
    "RobustMCKUSaL",
    "RobustMiCUSaL",
    "SubspaceImputer",
    "SubspaceMixture",
    "compare",
    "datasets",
    "geometry",
    "images",
    "kernels",
    "load_model",
    "metrics",
    "save_model",
]


def __getattr__(name: str) -> Any:
    # A model file may hold any estimator, so `persistence` imports them all, also `baselines`.
    # It is therefore imported only when a file is read or written.
    if name in ("load_model", "save_model"):
        from polyspan import persistence

        return getattr(persistence, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
