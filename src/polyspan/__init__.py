"""polyspan learns unions of subspaces that are close to each other."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from polyspan._interrupts import ended_by_interrupt, is_command

with ended_by_interrupt(is_command()):
    from polyspan import datasets, geometry, images, kernels, metrics
    from polyspan.clustering import SubspaceClustering
    from polyspan.compare import Comparison, compare
    from polyspan.kernel import MCKUSaL, RobustMCKUSaL
    from polyspan.mixture import SubspaceMixture
    from polyspan.outliers import SubspaceOutlierDetector
    from polyspan.tables import SubspaceImputer, pool_estimates
    from polyspan.union import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL

if TYPE_CHECKING:
    from polyspan import baselines, batch, callbacks, model_selection, plotting
    from polyspan.export import export_model
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
    "SubspaceClustering",
    "SubspaceImputer",
    "SubspaceMixture",
    "SubspaceOutlierDetector",
    "baselines",
    "batch",
    "callbacks",
    "compare",
    "datasets",
    "export_model",
    "geometry",
    "images",
    "kernels",
    "load_model",
    "metrics",
    "model_selection",
    "plotting",
    "pool_estimates",
    "save_model",
]


# Imported when somebody first asks for them, so that `import polyspan` does not wait for them.
_LATER = ("baselines", "batch", "callbacks", "model_selection", "plotting")
# Files may hold any estimator, also those of `baselines`: not imported before somebody reads or
# writes a file.
_FILES = {"export_model": "export", "load_model": "persistence", "save_model": "persistence"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return import_module(f"polyspan.{name}")
    if name in _FILES:
        return getattr(import_module(f"polyspan.{_FILES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
