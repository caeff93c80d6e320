"""A fitted model as an ONNX graph that predicts complete rows.

The graph works in the type of the model. onnxruntime has all its operations in float64 on the CPU;
there labels are those of `predict` except where two subspaces are equally near up to rounding.
Squares are not kept in range by powers of two, as polyspan does.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.base.arrays import to_numpy
from polyspan.base.optional import import_optional
from polyspan.mixture.prediction import MixturePrediction

# Runtimes of 2022 and later take these; nothing here needs newer operations.
OPSET = 17
IR_VERSION = 8


@dataclass(frozen=True)
class Exported:
    """A fitted model that is exported, and what surrounds it."""

    model: Any
    """A `LinearUnion` or a `MixturePrediction`."""
    features: list[str] | None
    """Names of the features, where the model was fitted to a table."""
    steps: list[tuple[str, Any]]
    """What the scalers of a pipeline do, one after the other."""

    @property
    def bases(self) -> np.ndarray:
        """Bases, (n_subspaces, n_features, subspace_dim)."""
        return to_numpy(self.model.bases_)

    @property
    def estimator(self) -> str:
        """Name of the class."""
        return type(self.model).__name__


def onnx_bytes(fitted: Exported, version: str) -> bytes:
    """Return the content of the exported file. Needs onnx."""
    onnx = import_optional("onnx", "exporting to ONNX")
    graph = _Graph(fitted.bases.dtype)
    invalid = graph.invalid_rows("X")
    samples = _scaled(graph, fitted.steps)
    compute = _mixture if isinstance(fitted.model, MixturePrediction) else _linear
    results = compute(graph, fitted.model, samples)
    for name, found in results.items():
        if name == "labels":
            graph.result(name, "Where", invalid, graph.constant(np.int64(-1)), found)
        else:
            per_row = invalid if name == "log_density" else graph.column(invalid)
            graph.result(name, "Where", per_row, graph.number(math.nan), found)
    model = _model(onnx, graph, fitted, version)
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


class _Graph:
    """Operations and constants of a graph, in the order in which they were added."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.nodes: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, value: Any, name: str | None = None) -> str:
        """Add an array; return its name."""
        name = name or f"constant_{len(self.constants)}"
        self.constants[name] = np.array(value, order="C")
        return name

    def number(self, value: Any, name: str | None = None) -> str:
        """Add an array in the type of the graph; return its name."""
        return self.constant(np.asarray(value, dtype=self.dtype), name)

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; return the name of its result."""
        output = f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append((operation, inputs, output, attributes))
        return output

    def result(self, name: str, operation: str, *inputs: str) -> None:
        """Add an operation whose result is an output of the graph."""
        self.nodes.append((operation, inputs, name, {}))

    def total(self, a: str, axis: int, *, keepdims: bool = False) -> str:
        """Add a sum along an axis."""
        return self.add("ReduceSum", a, self.constant(np.array([axis])), keepdims=int(keepdims))

    def squares(self, a: str, axis: int) -> str:
        """Add a sum of squares along an axis."""
        return self.total(self.add("Mul", a, a), axis)

    def column(self, a: str) -> str:
        """Turn a vector into a column."""
        return self.add("Unsqueeze", a, self.constant(np.array([1])))

    def invalid_rows(self, samples: str) -> str:
        """Tell which rows have an entry that is NaN or infinite."""
        either = self.add("Or", self.add("IsNaN", samples), self.add("IsInf", samples))
        count = self.total(self.add("Cast", either, to=_TENSOR_INT32), axis=1)
        return self.add("Greater", count, self.constant(np.int32(0)))


# Numbers of types in the format.
_TENSOR_INT32 = 6


def _scaled(graph: _Graph, steps: list[tuple[str, Any]]) -> str:
    """Add what the scalers of a pipeline do; return the name of the scaled samples."""
    names = {"subtract": "Sub", "divide": "Div", "multiply": "Mul", "add": "Add"}
    samples = "X"
    for action, value in steps:
        if action in names:
            samples = graph.add(names[action], samples, graph.number(value))
        elif action == "clip":
            samples = graph.add("Clip", samples, *(graph.number(bound) for bound in value))
        else:
            samples = graph.add("Div", samples, _row_norms(graph, samples, value))
    return samples


def _row_norms(graph: _Graph, samples: str, norm: str) -> str:
    """Add norms of rows, 1 for those that are zero to rounding, as scikit-learn's Normalizer."""
    if norm == "l2":
        squares = graph.total(graph.add("Mul", samples, samples), 1, keepdims=True)
        norms = graph.add("Sqrt", squares)
    elif norm == "l1":
        norms = graph.total(graph.add("Abs", samples), 1, keepdims=True)
    else:
        norms = graph.add("ReduceMax", graph.add("Abs", samples), axes=[1], keepdims=1)
    tiny = graph.add("Less", norms, graph.number(10 * np.finfo(graph.dtype).eps))
    return graph.add("Where", tiny, graph.number(1.0), norms)


def _linear(graph: _Graph, model: Any, samples: str) -> dict[str, str]:
    """Add labels and distances of a linear or affine model."""
    bases, mean = to_numpy(model.bases_), to_numpy(model.mean_)
    anchors = getattr(model, "anchors_", None)
    centred = graph.add("Sub", samples, graph.number(mean, "mean"))
    about = graph.add("Unsqueeze", centred, graph.constant(np.array([0])))
    if anchors is not None:
        about = graph.add(
            "Sub", about, graph.number((to_numpy(anchors) - mean)[:, None, :], "points")
        )
    coordinates = graph.add("MatMul", about, graph.number(bases, "bases"))  # (L, n, s)
    turned = graph.number(np.swapaxes(bases, 1, 2), "bases_turned")
    residuals = graph.add("Sub", about, graph.add("MatMul", coordinates, turned))
    norms = graph.add("Sqrt", graph.squares(residuals, axis=2))
    distances = graph.add("Transpose", norms, perm=[1, 0])
    if anchors is not None:
        labels = graph.add("ArgMin", distances, axis=1, keepdims=0)
    else:
        labels = graph.add("ArgMax", graph.squares(coordinates, axis=2), axis=0, keepdims=0)
    return {"labels": labels, "distances": distances}


def _mixture(graph: _Graph, model: Any, samples: str) -> dict[str, str]:
    """Add labels, Mahalanobis distances, probabilities and log-densities of a mixture."""
    mean, means, bases, weights, variances, noise = (
        to_numpy(getattr(model, name)).astype(np.float64)
        for name in ("mean_", "means_", "bases_", "weights_", "variances_", "noise_variances_")
    )
    means = means - mean
    _, m, s = bases.shape
    centred = graph.add("Sub", samples, graph.number(mean, "mean"))
    cross = graph.add("MatMul", centred, graph.number(2.0 * means.T, "means_turned"))
    norms = graph.add("Sub", graph.column(graph.squares(centred, axis=1)), cross)
    norms = graph.add("Add", norms, graph.number(np.sum(means * means, axis=1)))
    if s:
        about = graph.add("Unsqueeze", centred, graph.constant(np.array([0])))
        about = graph.add("Sub", about, graph.number(means[:, None, :], "means"))
        coordinates = graph.add("MatMul", about, graph.number(bases, "bases"))  # (L, n, s)
        squared = graph.add("Mul", coordinates, coordinates)
        inside = graph.add("Transpose", graph.total(squared, axis=2), perm=[1, 0])
        outside = graph.add("Sub", norms, inside)
        outside = graph.add("Max", outside, graph.number(0.0))
        along = graph.number((variances + noise[:, None])[:, None, :], "variances")
        inside = graph.total(graph.add("Div", squared, along), axis=2)
        inside = graph.add("Transpose", inside, perm=[1, 0])
        weighted = graph.add("Div", outside, graph.number(noise, "noise"))
        squares = graph.add("Add", weighted, inside)
    else:
        outside = graph.add("Max", norms, graph.number(0.0))
        squares = graph.add("Div", outside, graph.number(noise, "noise"))
    with np.errstate(divide="ignore"):
        constant = np.log(weights)
    logs = np.sum(np.log(variances + noise[:, None]), axis=1) + (m - s) * np.log(noise)
    constant = constant - 0.5 * (logs + m * math.log(2.0 * math.pi))
    halves = graph.add("Mul", squares, graph.number(0.5))
    joint = graph.add("Sub", graph.number(constant, "constants"), halves)
    top = graph.add("ReduceMax", joint, axes=[1], keepdims=1)
    powers = graph.add("Exp", graph.add("Sub", joint, top))
    total = graph.total(powers, axis=1, keepdims=True)
    found = {
        "labels": graph.add("ArgMax", joint, axis=1, keepdims=0),
        "distances": graph.add("Sqrt", squares),
        "probabilities": graph.add("Div", powers, total),
    }
    if hasattr(model, "outlier_weight_"):  # the uniform part of their density is not exported
        return found
    log_density = graph.add("Add", top, graph.add("Log", total))
    found["log_density"] = graph.add("Squeeze", log_density, graph.constant(np.array([1])))
    return found


def _model(onnx: Any, graph: _Graph, fitted: Exported, version: str) -> Any:
    """Return the model with its inputs, outputs and what it says about itself."""
    helper, types = onnx.helper, onnx.TensorProto
    count, m, _ = fitted.bases.shape
    kind = types.FLOAT if graph.dtype == np.float32 else types.DOUBLE
    shapes = {
        "labels": (types.INT64, ["n_samples"]),
        "distances": (kind, ["n_samples", count]),
        "probabilities": (kind, ["n_samples", count]),
        "log_density": (kind, ["n_samples"]),
    }
    written = [output for _, _, output, _ in graph.nodes]
    outputs = {name: shape for name, shape in shapes.items() if name in written}
    content = helper.make_graph(
        [
            helper.make_node(operation, list(inputs), [output], **attributes)
            for operation, inputs, output, attributes in graph.nodes
        ],
        fitted.estimator,
        [helper.make_tensor_value_info("X", kind, ["n_samples", m])],
        [helper.make_tensor_value_info(name, *about) for name, about in outputs.items()],
        [onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    model = helper.make_model(
        content,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="polyspan",
        producer_version=version,
        doc_string=f"A {fitted.estimator} of polyspan {version}. X has samples as rows, which must "
        "be complete: a row with NaN or an infinite entry has the label -1 and all else NaN.",
    )
    about = {"estimator": fitted.estimator}
    if fitted.features is not None:
        about["features"] = json.dumps(fitted.features)
    helper.set_model_props(model, about)
    return model
