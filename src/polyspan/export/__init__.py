"""Fitted models as files that predict without polyspan: Python with NumPy alone, or ONNX."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from polyspan.export.fitted import Exported
from polyspan.export.onnx_file import onnx_bytes
from polyspan.export.python_file import python_text
from polyspan.files import atomic_write, check_target

__all__ = ["ENDINGS", "export_model"]

#: Endings of files that `export_model` writes.
ENDINGS = (".py", ".onnx")


def export_model(model: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted model as a file that predicts without polyspan.

    The ending of `path` decides. A `.py` file needs Python and NumPy (1.23 or newer), and holds the
    model and the functions `predict`, `transform`, `score_samples` and `reconstruct`; those of
    models that take missing entries also `impute`, those of mixtures also `predict_proba`; those of
    pipelines have no `reconstruct` and no `impute`, those of mixtures with outliers no
    `score_samples`. It repeats the operations of polyspan: labels
    are those of `predict`. In a shell, `python model.py data.csv` prints labels.

    A `.onnx` file is for runtimes of ONNX in any language (opset 17). It takes `X` of shape
    (n_samples, n_features) in the type of the model, which is float64 unless it was fitted to
    float32, and returns `labels` and `distances`, of mixtures also `probabilities` and
    `log_density`. It predicts complete rows only, also for models that take missing entries: a row
    with NaN or an infinite entry has the label -1 and distances NaN.

    Parameters
    ----------
    model : estimator or `sklearn.pipeline.Pipeline`, fitted
        A linear model (`MiCUSaL`, `RobustMiCUSaL`, `AdaptiveMiCUSaL`, `SubspaceClustering`,
        `KSubspaces` and other baselines with linear subspaces) or a `SubspaceMixture`. The other
        steps of a pipeline may be `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `RobustScaler`,
        `Normalizer` and "passthrough". Kernel models are refused, since they need their training
        samples.
    path : str or Path
        Ends in ".py" or ".onnx" (which needs the package onnx here, but not where it is used).
    overwrite : bool, default=False
        Whether an existing file may be replaced. It is written completely or not at all.

    See Also
    --------
    polyspan.save_model : Saves any model, to be used with polyspan again.

    Examples
    --------
    >>> import runpy, tempfile
    >>> from pathlib import Path
    >>> from polyspan import MiCUSaL, export_model
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    >>> model = MiCUSaL(2, 2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_model(model, Path(folder) / "model.py")
    ...     exported = runpy.run_path(str(Path(folder) / "model.py"))
    >>> bool((exported["predict"](X) == model.predict(X)).all())
    True
    """
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{path} ends in {ending!r}: a model is exported to .py (Python with NumPy alone) or "
            ".onnx (ONNX)"
        )
    check_target(path, overwrite=overwrite)
    fitted = Exported.of(model)
    if ending == ".py":
        content = python_text(fitted, _version()).encode("utf-8")
    else:
        content = onnx_bytes(fitted, _version())
    with atomic_write(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _version() -> str:
    try:
        return version("polyspan")
    except PackageNotFoundError:  # pragma: no cover - run from a checkout that was never installed
        return "0+unknown"
