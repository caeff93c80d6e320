"""Names and options of the methods that the command line can fit."""

from __future__ import annotations

import ast
from typing import Any

import typer

from polyspan import baselines, clustering, kernel, linear, mixture, outliers, tables
from polyspan.cli.errors import CommandError

METHODS: dict[str, type] = {
    "micusal": linear.MiCUSaL,
    "robust": linear.RobustMiCUSaL,
    "adaptive": linear.AdaptiveMiCUSaL,
    "mckusal": kernel.MCKUSaL,
    "robust-mckusal": kernel.RobustMCKUSaL,
    "mixture": mixture.SubspaceMixture,
    "clustering": clustering.SubspaceClustering,
    "imputer": tables.SubspaceImputer,
    "outliers": outliers.SubspaceOutlierDetector,
    "ksubspaces": baselines.KSubspaces,
    "ssc": baselines.SparseSubspaceClustering,
    "robust-ssc": baselines.RobustSparseSubspaceClustering,
    "tsc": baselines.ThresholdingSubspaceClustering,
    "ensc": baselines.ElasticNetSubspaceClustering,
    "lsr": baselines.LeastSquaresSubspaceClustering,
    "ekss": baselines.EnsembleKSubspaces,
    "rsim": baselines.RobustShapeInteraction,
    "block-sparse": baselines.BlockSparseDictionary,
    "grouse": baselines.GROUSE,
    "kgrouse": baselines.KGROUSE,
    "kernel-kmeans": baselines.KernelKMeans,
    "kernel-pca": baselines.KernelPCADenoiser,
    "robust-kernel-pca": baselines.RobustKernelPCA,
}
#: Parameters that -L and -s set: the first of these names that the method has.
NUMBER = ("n_subspaces", "max_subspaces", "n_clusters")
DIMENSION = ("subspace_dim", "max_dim")


def make_model(
    method: str,
    subspaces: int | None,
    dim: int | None,
    seed: int,
    settings: list[str] | None,
    **others: Any,
) -> Any:
    """Return an estimator with the parameters that were given.

    Parameters
    ----------
    method : str
        A name of `METHODS`.
    subspaces, dim : int or None
        Values of -L and -s.
    seed : int
        Value of `random_state`, if the method has this parameter.
    settings : list of str or None
        "name=value" for any other parameter.
    **others
        Parameters that have their own option; None if the option was not given.
    """
    if method not in METHODS:
        raise typer.BadParameter(
            f"{method!r} is none of {', '.join(METHODS)}", param_hint="--method"
        )
    kind = METHODS[method]
    defaults = kind().get_params()
    chosen = _parse(settings or [])
    for flag, names, value in (("-L", NUMBER, subspaces), ("-s", DIMENSION, dim)):
        name = next((name for name in names if name in defaults), None)
        if value is not None:
            if name is None:
                raise CommandError(f"--method {method} has no {names[0]}: leave {flag} out")
            chosen[name] = value
        elif name is not None and name not in chosen and defaults[name] not in ("auto", None):
            raise typer.BadParameter(
                f"--method {method} needs it ({name}); polyspan.model_selection.choose_size "
                "helps to find sizes",
                param_hint=flag,
            )
    chosen.update({name: value for name, value in others.items() if value is not None})
    unknown = sorted(set(chosen) - set(defaults))
    if unknown:
        raise CommandError(
            f"--method {method} has no {', '.join(unknown)}: it has {', '.join(sorted(defaults))}"
        )
    if "random_state" in defaults:
        chosen.setdefault("random_state", seed)
    return kind(**chosen)


def _parse(settings: list[str]) -> dict[str, Any]:
    """Read name=value pairs; a value that is no Python literal is taken as a string."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{setting!r} is not name=value", param_hint="--set")
        text = text.strip()
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = float("inf") if text in ("inf", "+inf") else text
        found[name.strip()] = value
    return found
