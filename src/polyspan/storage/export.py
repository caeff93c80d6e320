"""Fitted models as ONNX files, which predict without polyspan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn import preprocessing
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import to_numpy
from polyspan.base.files import atomic_write, check_target
from polyspan.clustering import SubspaceClustering
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.prediction import UnionPrediction
from polyspan.mixture.prediction import MixturePrediction
from polyspan.storage.onnx_file import onnx_bytes

__all__ = ["export_model"]

EXPORTED = (
    "MiCUSaL, RobustMiCUSaL, AdaptiveMiCUSaL, SubspaceMixture, SubspaceClustering, and the "
    "baselines with linear subspaces, such as KSubspaces"
)
SCALERS = (
    preprocessing.StandardScaler,
    preprocessing.MinMaxScaler,
    preprocessing.MaxAbsScaler,
    preprocessing.RobustScaler,
    preprocessing.Normalizer,
)
# What a class may not have of its own: the exported file repeats these of its family.
_PREDICTION = ("predict", "transform", "reconstruct", "_nearest", "_distances", "_reconstructed")


def export_model(model: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted model as an ONNX file that predicts without polyspan.

    The file is for runtimes of ONNX in any language (opset 17). It takes `X` of shape
    (n_samples, n_features) in the type of the model, which is float64 unless it was fitted to
    float32, and returns `labels` and `distances`, of mixtures also `probabilities` and
    `log_density` (which mixtures with outliers lack). It predicts complete rows only, also for
    models that take missing entries: a row with NaN or an infinite entry has the label -1 and
    distances NaN.

    Parameters
    ----------
    model : estimator or `sklearn.pipeline.Pipeline`, fitted
        A linear model (`MiCUSaL`, `RobustMiCUSaL`, `AdaptiveMiCUSaL`, `SubspaceClustering`,
        `KSubspaces` and other baselines with linear subspaces) or a `SubspaceMixture`. The other
        steps of a pipeline may be `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `RobustScaler`,
        `Normalizer` and "passthrough". Kernel models are refused, since they need their training
        samples.
    path : str or Path
        Ends in ".onnx". Writing it needs the package onnx; its user needs only a runtime.
    overwrite : bool, default=False
        Whether an existing file may be replaced. It is written completely or not at all.

    See Also
    --------
    polyspan.save_model : Saves any model, to be used with polyspan again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import onnxruntime
    >>> from polyspan import MiCUSaL, export_model
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    >>> model = MiCUSaL(2, 2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_model(model, Path(folder) / "model.onnx")
    ...     content = (Path(folder) / "model.onnx").read_bytes()
    >>> (labels,) = onnxruntime.InferenceSession(content).run(["labels"], {"X": X})
    >>> bool((labels == model.predict(X)).all())
    True
    """
    ending = Path(path).suffix.lower()
    if ending != ".onnx":
        gone = "models are no longer written as Python source; " if ending == ".py" else ""
        raise ValueError(
            f"{path} ends in {ending!r}: {gone}export_model writes .onnx (ONNX), and save_model "
            "writes .skops, which load_model reads where polyspan is installed"
        )
    check_target(path, overwrite=overwrite)
    *before, (_, last) = model.steps if isinstance(model, Pipeline) else [("model", model)]
    _check_kind(last)
    steps = [action for name, step in before for action in _actions(name, step)]
    check_is_fitted(last)
    names = getattr(model, "feature_names_in_", None)
    content = onnx_bytes(last, None if names is None else [str(name) for name in names], steps)
    with atomic_write(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _check_kind(model: Any) -> None:
    """Refuse models that do not predict as the linear models or the mixture do."""
    name = type(model).__name__
    base = next(
        (kind for kind in (LinearUnion, MixturePrediction) if isinstance(model, kind)), None
    )
    if base is None:
        reason = ""
        if isinstance(model, UnionPrediction) or hasattr(model, "kernel"):
            reason = ", since its prediction needs the kernel values with its training samples"
        raise TypeError(
            f"cannot export a {name}{reason}: polyspan exports {EXPORTED}; {_instead(model)}"
        )
    if isinstance(model, SubspaceClustering):
        base = SubspaceClustering
        if model._by_mixture:
            raise TypeError(
                f"cannot export this {name}: its clusters are those of a mixture; save_model "
                "saves it"
            )
    own = [
        part
        for part in _PREDICTION
        if getattr(type(model), part, None) is not getattr(base, part, None)
    ]
    if own:
        raise TypeError(
            f"cannot export a {name}: it has its own {', '.join(own)}, and an exported file would "
            f"predict as polyspan's classes do: {EXPORTED}"
        )


def _instead(model: Any) -> str:
    """Say what to do with an estimator that is not exported."""
    if hasattr(model, "best_estimator_"):
        return "export its best_estimator_"
    if type(model).__module__.partition(".")[0] == "polyspan":
        return "save_model saves the others of polyspan"
    return "a model of polyspan is needed"


def _actions(name: str, step: Any) -> list[tuple[Any, ...]]:
    """Return what a scaler does to samples, one operation of ONNX after the other."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return []
    if type(step) not in SCALERS:
        known = ", ".join(kind.__name__ for kind in SCALERS)
        raise TypeError(
            f"cannot export a pipeline whose step {name!r} is a {type(step).__name__}: these are "
            f"exported: {known}; or export the last step, pipeline[-1], which takes the samples "
            "that come out of the others"
        )
    if isinstance(step, preprocessing.Normalizer):
        return [(step.norm,)]
    check_is_fitted(step)
    if isinstance(step, preprocessing.MinMaxScaler):
        clip = [("Clip", *step.feature_range)] if step.clip else []
        return [("Mul", to_numpy(step.scale_)), ("Add", to_numpy(step.min_)), *clip]
    centre = step.mean_ if getattr(step, "with_mean", False) else None
    centre = step.center_ if getattr(step, "with_centering", False) else centre
    learned = {"Sub": centre, "Div": step.scale_}
    return [(name, to_numpy(value)) for name, value in learned.items() if value is not None]
