"""What a case gives: its line is evaluated, and the result becomes named arrays and texts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import polyspan
from polyspan import baselines, batch, datasets, geometry, images, kernels, metrics, model_selection
from recording.cases import CALLS, FITS, PICTURES
from recording.data import Data

#: What models are asked, where they have it, about each of two data.
QUESTIONS = (
    "predict", "transform", "reconstruct", "impute", "score_samples", "score", "coordinates",
    "memberships", "predict_proba", "outlier_probability", "bic", "decision_function",
    "contributions", "impute_std", "impute_proba",
)  # fmt: skip
#: Parts of results that say nothing of the data, or are objects of private classes.
LEFT_OUT = {"runs_", "indicator_", "feature_names_in_", "seconds", "error"}


def lines() -> dict[str, str]:
    """Return every case with its kind."""
    kinds = {"fit": FITS, "picture": PICTURES, "call": CALLS}
    found = [(line, kind) for kind, text in kinds.items() for line in text.strip().splitlines()]
    names = [line for line, _ in found]
    if len(set(names)) < len(names):
        raise ValueError(f"twice the same: {sorted({n for n in names if names.count(n) > 1})}")
    return dict(found)


def outcome(line: str, kind: str, data: Data) -> dict[str, Any]:
    """Run one case; return its values: floats, other arrays, and texts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "call":
            return dict(flat(_value(line, data), ""))
        head, *rest = line.split(" | ")
        if kind == "picture":
            return _of_picture(_value(head, data), _value(rest[0], data))
        new = [part.removeprefix("new: ") for part in rest if part.startswith("new: ")]
        options = [part for part in rest[1:] if not part.startswith("new: ")]
        return _of_fit(
            _value(head, data), _value(rest[0], data),
            _value(f"dict({', '.join(options)})", data), [_value(name, data) for name in new],
        )  # fmt: skip


def _value(text: str, data: Data) -> Any:
    """Return the value of an expression."""
    code = compile(text, text, "eval")
    return eval(code, {**_NAMES, **data.named(code.co_names)})


def _seeded(function: Any) -> Any:
    """Return a function whose `random_state`, where it has one, is 0."""
    known = "random_state" in inspect.signature(function).parameters
    return partial(_call, function) if known else function


def _call(function: Any, *positional: Any, **named: Any) -> Any:
    return function(*positional, **{"random_state": 0, **named})


_NAMES = {
    "np": np,
    "inner": np.inner,
    "geometry": geometry,
    "kernels": kernels,
    "metrics": metrics,
    **{
        name: _seeded(getattr(module, name))
        for module in (polyspan, baselines, batch, datasets, images, model_selection)
        for name in module.__all__
        if callable(getattr(module, name))
    },
}


def _of_fit(model: Any, X: Any, options: dict[str, Any], new: list[Any]) -> dict[str, Any]:
    """Fit a model, or stream a list of batches to it; return its attributes and answers."""
    if isinstance(X, list):
        for k, part in enumerate(X):
            model.partial_fit(part, **{name: value[k] for name, value in options.items()})
        X = X[-1]
    else:
        model.fit(X, **options)
    found = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and name not in LEFT_OUT
    }
    values = dict(flat(found, ""))
    values.update(answers(model, X))
    for rows in new:
        values.update({f"{name}, new": part for name, part in answers(model, rows).items()})
    return values


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return what a fitted model says of data."""
    given = {name: _answer(model, name, X) for name in QUESTIONS if hasattr(model, name)}
    return dict(flat(given, ""))


def _answer(model: Any, question: str, X: Any) -> Any:
    """Return what a method gives; a refusal is a result too."""
    try:
        return getattr(model, question)(X)
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        return type(error).__name__


def _of_picture(found: Any, truth: np.ndarray) -> dict[str, Any]:
    error = np.asarray(found, dtype=float) - truth
    peak = float(truth.max() - truth.min())
    decibels = 10 * np.log10(peak**2 / np.mean(error**2))
    return {
        "PSNR": decibels,
        "picture": np.asarray(found, dtype=np.float64),
        "type": str(found.dtype),
    }


def flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a result, each with a name."""
    value = _opened(value)
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in LEFT_OUT:
                yield from flat(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple) and not _is_flat(value):
        for k, part in enumerate(value):
            yield from flat(part, f"{name}[{k}]")
    elif value is None or isinstance(value, str):
        yield name, str(value)
    else:
        yield name, _array(value)


def _opened(value: Any) -> Any:
    """Return what is in memory, dense, and a dict instead of objects with fields."""
    if hasattr(value, "compute"):
        value = value.compute()
    if scipy.sparse.issparse(value):
        return value.toarray()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, pd.DataFrame):
        return {str(column): value[column] for column in value}
    return value


def _is_flat(values: Any) -> bool:
    return all(isinstance(value, int | float | str | np.number | bool) for value in values)


def _array(value: Any) -> np.ndarray:
    """Return floats as they are and anything else as integers or texts."""
    array = np.asarray(value)
    if array.dtype.kind in "mM":
        return array.astype("int64")
    if array.dtype.kind not in "fiub":
        return array.astype(str)
    return array
