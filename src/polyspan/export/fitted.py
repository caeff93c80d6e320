"""What an exported file holds of a fitted model: arrays, numbers, names, and the scaling before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from polyspan.arrays import CHUNK_BYTES, CHUNK_MAX_BYTES, chunk_rows, to_numpy
from polyspan.data.missing import MIN_GROUP_ROWS, SAMPLES_PER_PATTERN
from polyspan.mixture.prediction import MixturePrediction
from polyspan.union.linear import LinearUnion
from polyspan.union.prediction import UnionPrediction

EXPORTED = (
    "MiCUSaL, RobustMiCUSaL, AdaptiveMiCUSaL, SubspaceMixture, SubspaceClustering, and the "
    "baselines with linear subspaces, such as KSubspaces"
)
SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer)
# What a class may not have of its own: the exported file repeats these of its family.
_PREDICTION = ("predict", "transform", "reconstruct", "_nearest", "_distances", "_reconstructed")


@dataclass(frozen=True)
class Exported:
    """A fitted model, as arrays of NumPy."""

    estimator: str
    """Name of the class."""
    family: str
    """"complete", "masked" or "gaussians": how it predicts."""
    arrays: dict[str, np.ndarray | None]
    """In the type that the model works in."""
    settings: dict[str, Any]
    """Numbers that prediction needs."""
    features: list[str] | None
    """Names of the features, where the model was fitted to a table."""
    takes_missing: bool
    steps: list[tuple[str, Any]] = field(default_factory=list)
    """What the scalers of a pipeline do, one after the other."""
    has_density: bool = True
    """False for mixtures with outliers: the uniform part of their density is not exported."""

    @property
    def bases(self) -> np.ndarray:
        """Bases, (n_subspaces, n_features, subspace_dim)."""
        found = self.arrays["BASES"]
        assert found is not None
        return found

    @classmethod
    def of(cls, model: Any) -> Exported:
        """Read a fitted model, or a pipeline of scalers that ends in one.

        Raises
        ------
        TypeError
            If its prediction cannot be exported.
        """
        steps, last = [], model
        if isinstance(model, Pipeline):
            last = model.steps[-1][1]
            _check_kind(last)
            for name, step in model.steps[:-1]:
                steps += _actions(name, step)
        _check_kind(last)
        check_is_fitted(last)
        read = _gaussians if isinstance(last, MixturePrediction) else _linear
        names = getattr(model, "feature_names_in_", None)
        return cls(
            type(last).__name__,
            *read(last),
            None if names is None else [str(name) for name in names],
            # scikit-learn's Normalizer refuses NaN.
            _takes_missing(last) and not any(action == "divide rows" for action, _ in steps),
            steps,
            not hasattr(last, "outlier_weight_"),
        )


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


def _takes_missing(model: Any) -> bool:
    return isinstance(model, MixturePrediction) or bool(model._takes_missing)


def _actions(name: str, step: Any) -> list[tuple[str, Any]]:
    """Return what a scaler does to samples, one operation after the other."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return []
    if type(step) not in SCALERS:
        known = ", ".join(kind.__name__ for kind in SCALERS)
        raise TypeError(
            f"cannot export a pipeline whose step {name!r} is a {type(step).__name__}: these are "
            f"exported: {known}; or export the last step, pipeline[-1], which takes the samples "
            "that come out of the others"
        )
    if isinstance(step, Normalizer):
        return [("divide rows", step.norm)]
    check_is_fitted(step)
    if isinstance(step, MinMaxScaler):
        clip = [("clip", tuple(float(v) for v in step.feature_range))] if step.clip else []
        return [("multiply", to_numpy(step.scale_)), ("add", to_numpy(step.min_)), *clip]
    centre = None
    if isinstance(step, StandardScaler) and step.with_mean:
        centre = step.mean_
    elif isinstance(step, RobustScaler) and step.with_centering:
        centre = step.center_
    found = [] if centre is None else [("subtract", to_numpy(centre))]
    return found if step.scale_ is None else [*found, ("divide", to_numpy(step.scale_))]


def _linear(model: LinearUnion) -> tuple[str, dict[str, np.ndarray | None], dict[str, Any]]:
    """Return family, arrays and numbers of a linear or affine model."""
    bases = to_numpy(model.bases_)
    anchors = getattr(model, "anchors_", None)
    arrays = {
        "BASES": bases,
        "MEAN": to_numpy(model.mean_),
        "ANCHORS": None if anchors is None else to_numpy(anchors),
    }
    count, m, s = bases.shape
    if not model._takes_missing:
        rows = {size: chunk_rows(m, size, count * s) for size in (4, 8)}
        return "complete", arrays, {"ROWS_OF_TYPE": rows}
    per_row = bases.itemsize * (2 * m + 2 * count * s * (s + 1))
    return (
        "masked",
        arrays,
        {
            "PRIOR": model._prior(),
            "TOO_FEW": s,
            "ROWS_AT_ONCE": max(1, min(chunk_rows(m, bases.itemsize), CHUNK_MAX_BYTES // per_row)),
            "SAMPLES_PER_PATTERN": SAMPLES_PER_PATTERN,
        },
    )


def _gaussians(
    model: MixturePrediction,
) -> tuple[str, dict[str, np.ndarray | None], dict[str, Any]]:
    """Return family, arrays and numbers of a mixture."""
    bases = to_numpy(model.bases_)
    arrays: dict[str, np.ndarray | None] = {
        "BASES": bases,
        "MEAN": to_numpy(model.mean_),
        "MEANS": to_numpy(model.means_),
        "WEIGHTS": to_numpy(model.weights_),
        "VARIANCES": to_numpy(model.variances_),
        "NOISE": to_numpy(model.noise_variances_),
    }
    count, m, s = bases.shape
    size, most = bases.itemsize, 4 * CHUNK_BYTES
    together = max(1, most // (size * (3 * m + 4 * count * (s + 1))))
    alone = max(1, most // (size * (3 * m + 2 * count * (s + 1) * (s + 2))))
    return (
        "gaussians",
        arrays,
        {
            "ROWS_AT_ONCE": chunk_rows(m, size, count * (s + 2)),
            "ROWS_OF_GROUP": (together, alone),
            "MIN_GROUP_ROWS": MIN_GROUP_ROWS,
        },
    )
