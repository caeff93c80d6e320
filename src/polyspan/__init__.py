"""polyspan learns unions of subspaces that are close to each other."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polyspan.base.interrupts import ended_by_interrupt, is_command

if TYPE_CHECKING:
    from polyspan import (
        baselines,
        batch,
        callbacks,
        datasets,
        geometry,
        images,
        kernels,
        metrics,
        model_selection,
        plotting,
    )
    from polyspan.clustering import SubspaceClustering
    from polyspan.comparison import Comparison, compare
    from polyspan.kernel import MCKUSaL, RobustMCKUSaL
    from polyspan.linear import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL
    from polyspan.mixture import SubspaceMixture
    from polyspan.outliers import SubspaceOutlierDetector
    from polyspan.storage.export import export_model
    from polyspan.storage.models import load_model, save_model
    from polyspan.tables import SubspaceImputer, pool_estimates

    __version__: str

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

# The names that are not modules themselves, by their modules. All are imported when somebody first
# asks for them, so that `import polyspan` waits for nothing.
_NAMES = {
    "clustering": ("SubspaceClustering",),
    "comparison": ("Comparison", "compare"),
    "kernel": ("MCKUSaL", "RobustMCKUSaL"),
    "linear": ("AdaptiveMiCUSaL", "MiCUSaL", "RobustMiCUSaL"),
    "mixture": ("SubspaceMixture",),
    "outliers": ("SubspaceOutlierDetector",),
    "storage.export": ("export_model",),
    "storage.models": ("load_model", "save_model"),
    "tables": ("SubspaceImputer", "pool_estimates"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    else:
        with ended_by_interrupt(is_command()):
            module = import_module(f"polyspan.{_HOMES.get(name, name)}")
        value = getattr(module, name) if name in _HOMES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("polyspan")
    except PackageNotFoundError:  # pragma: no cover - run from a checkout, never installed
        return "0+unknown"
