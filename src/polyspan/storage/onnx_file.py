"""A fitted model as an ONNX graph that predicts complete rows.

The graph works in the type of the model. onnxruntime has all its operations in float64 on the CPU;
there labels are those of `predict` except where two subspaces are equally near up to rounding.
Squares are not kept in range by powers of two, as polyspan does.
"""

from __future__ import annotations

import json
import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from polyspan.base.arrays import to_numpy
from polyspan.base.optional import import_optional
from polyspan.mixture.prediction import MixturePrediction

# Runtimes of 2022 and later take these; nothing here needs newer operations.
OPSET = 17
IR_VERSION = 8

# Parts of a graph, in the language of onnx.parser. A name that no line gives is a constant or of a
# part before. Subspaces are the first axis until they are transposed.
_INVALID = """
    zeros = Mul (X, zero)  # NaN where an entry is NaN or infinite
    sums = ReduceSumSquare <axes = [1], keepdims = 0> (zeros)
    invalid = IsNaN (sums)
    sums_column = ReduceSumSquare <axes = [1]> (zeros)
    invalid_column = IsNaN (sums_column)
    no_label = Constant <value_int = -1> ()
"""
# Step k of a pipeline: rows are divided by a norm, or by 1 where it is zero to rounding.
_NORMALIZED = """
    sizes_{k} = Abs ({samples})
    {norms}
    tiny_{k} = Less (norms_{k}, rounding)
    divisors_{k} = Where (tiny_{k}, one, norms_{k})
    scaled_{k} = Div ({samples}, divisors_{k})
"""
_NORMS = {
    "l1": "axis_{k} = Constant <value_ints = [1]> () norms_{k} = ReduceSum (sizes_{k}, axis_{k})",
    "l2": "squares_{k} = ReduceSumSquare <axes = [1]> (sizes_{k}) norms_{k} = Sqrt (squares_{k})",
    "max": "norms_{k} = ReduceMax <axes = [1]> (sizes_{k})",
}
_RESIDUALS = """
    about = Sub ({samples}, points)
    coordinates = MatMul (about, bases)
    fitted = MatMul (coordinates, bases_turned)
    residuals = Sub (about, fitted)
    squares = ReduceSumSquare <axes = [2], keepdims = 0> (residuals)
"""
_LINEAR = """
    norms = Sqrt (squares)
    all_distances = Transpose <perm = [1, 0]> (norms)
    distances = Where (invalid_column, nan, all_distances)
"""
_MOST_INSIDE = """
    inside = ReduceSumSquare <axes = [2], keepdims = 0> (coordinates)
    all_labels = ArgMax <axis = 0, keepdims = 0> (inside)
    labels = Where (invalid, no_label, all_labels)
"""
_NEAREST = """
    all_labels = ArgMin <axis = 0, keepdims = 0> (norms)
    labels = Where (invalid, no_label, all_labels)
"""
_MIXTURE = """
    scaled = Div (coordinates, deviations)
    inside = ReduceSumSquare <axes = [2], keepdims = 0> (scaled)
    outside = Div (squares, noise)
    both = Add (inside, outside)
    mahalanobis = Transpose <perm = [1, 0]> (both)
    all_distances = Sqrt (mahalanobis)
    distances = Where (invalid_column, nan, all_distances)
    halves = Mul (mahalanobis, half)
    joint = Sub (log_scales, halves)
    all_labels = ArgMax <axis = 1, keepdims = 0> (joint)
    labels = Where (invalid, no_label, all_labels)
    all_probabilities = Softmax <axis = 1> (joint)
    probabilities = Where (invalid_column, nan, all_probabilities)
"""
_LOG_DENSITY = """
    all_log_density = ReduceLogSumExp <axes = [1], keepdims = 0> (joint)
    log_density = Where (invalid, nan, all_log_density)
"""


def onnx_bytes(model: Any, features: list[str] | None, steps: list[tuple[Any, ...]]) -> bytes:
    """Return the content of the exported file. Needs onnx.

    Parameters
    ----------
    model : LinearUnion or MixturePrediction
        The fitted model.
    features : list of str or None
        Names of the features, where it was fitted to a table.
    steps : list of tuple
        What the scalers of a pipeline do, one after the other: operations of ONNX with the values
        that follow the samples, and norms by which rows are divided.
    """
    onnx = import_optional("onnx", "exporting to ONNX")
    dtype, name = to_numpy(model.bases_).dtype, type(model).__name__
    scaling, samples, constants = _scaling(steps, dtype)
    compute = _mixture if isinstance(model, MixturePrediction) else _linear
    parts, outputs = compute(model, constants)
    count, m, _ = model.bases_.shape
    numbers = "float" if dtype == np.float32 else "double"
    shapes = {"labels": "int64[n_samples]", "log_density": f"{numbers}[n_samples]"}
    shown = [f"{shapes.get(one, f'{numbers}[n_samples, {count}]')} {one}" for one in outputs]
    body = "".join([_INVALID, scaling, _RESIDUALS.format(samples=samples), parts])
    exported = onnx.parser.parse_model(
        f'<ir_version: {IR_VERSION}, opset_import: ["": {OPSET}], producer_name: "polyspan"> '
        f"{name} ({numbers}[n_samples, {m}] X) => ({', '.join(shown)}) {{ {body} }}"
    )
    arrays = {own: np.array(value, dtype, order="C") for own, value in constants.items()}
    tensors = [onnx.numpy_helper.from_array(array, own) for own, array in arrays.items()]
    exported.graph.initializer.extend(tensors)
    exported.producer_version = _version()
    exported.doc_string = (
        f"A {name} of polyspan {_version()}. X has samples as rows, which must be "
        "complete: a row with NaN or an infinite entry has the label -1 and all else NaN."
    )
    about = {"estimator": name} | ({} if features is None else {"features": json.dumps(features)})
    onnx.helper.set_model_props(exported, about)
    onnx.checker.check_model(exported, full_check=True)
    content: bytes = exported.SerializeToString()
    return content


def _version() -> str:
    try:
        return version("polyspan")
    except PackageNotFoundError:  # pragma: no cover - run from a checkout that was never installed
        return "0+unknown"


def _scaling(steps: list[tuple[Any, ...]], dtype: Any) -> tuple[str, str, dict[str, Any]]:
    """Return the lines of the scalers, the name of what they scaled, and the first constants."""
    lines, samples, constants = "", "X", {"zero": 0.0, "nan": math.nan}
    for k, (operation, *values) in enumerate(steps):
        if operation in _NORMS:
            norms = _NORMS[operation].format(k=k)
            lines += _NORMALIZED.format(k=k, samples=samples, norms=norms)
            constants |= {"one": 1.0, "rounding": 10 * np.finfo(dtype).eps}
        else:
            given = {f"value_{k}_{place}": value for place, value in enumerate(values)}
            lines += f"scaled_{k} = {operation} ({', '.join([samples, *given])})\n"
            constants |= given
        samples = f"scaled_{k}"
    return lines, samples, constants


def _linear(model: Any, constants: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the lines of a linear or affine model, and what they give; add their constants."""
    anchors = getattr(model, "anchors_", None)
    points = model.mean_[None] if anchors is None else anchors
    constants |= _subspaces(to_numpy(points), to_numpy(model.bases_))
    return _LINEAR + (_MOST_INSIDE if anchors is None else _NEAREST), ["labels", "distances"]


def _mixture(model: Any, constants: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the lines of a mixture, and what they give; add their constants."""
    means, bases, weights, variances, noise = (
        to_numpy(getattr(model, name)).astype(np.float64)
        for name in ("means_", "bases_", "weights_", "variances_", "noise_variances_")
    )
    constants |= _subspaces(means, bases)
    _, m, s = bases.shape
    along = variances + noise[:, None]
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    spread = np.sum(np.log(along), axis=1) + (m - s) * np.log(noise)
    constants["log_scales"] = logs - 0.5 * (spread + m * math.log(2.0 * math.pi))
    constants |= {"noise": noise[:, None], "half": 0.5}
    constants["deviations"] = np.sqrt(along if s else noise[:, None])[:, None, :]
    found = ["labels", "distances", "probabilities"]
    if hasattr(model, "outlier_weight_"):  # the uniform part of their density is not exported
        return _MIXTURE, found
    return _MIXTURE + _LOG_DENSITY, [*found, "log_density"]


def _subspaces(points: np.ndarray, bases: np.ndarray) -> dict[str, Any]:
    """Return the constants of residuals; points have a direction of zeros where they are alone."""
    if not bases.shape[2]:  # not every runtime sums over nothing
        bases = np.zeros((*bases.shape[:2], 1))
    turned = np.swapaxes(bases, 1, 2)
    return {"points": points[:, None, :], "bases": bases, "bases_turned": turned}
