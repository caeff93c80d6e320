"""All that a user may call on a loaded model, each on a few rows."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sklearn.pipeline import Pipeline

from polyspan import load_model
from polyspan.storage.models import ModelFileError, model_bytes

#: What sets options, or learns anew from data that the caller gives.
NOT_CALLED = {"fit", "fit_predict", "fit_transform", "get_metadata_routing"}
MORE: dict[str, dict[str, Any]] = {
    "for_noise_group": {"group": 0},
    "sample": {"n_samples": 5, "random_state": 0},
    "sample_imputations": {"n_draws": 2, "random_state": 0},
}


def calls_of(model: Any, X: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of every call, and the call."""
    yield "repr", lambda: repr(model)
    yield "save", lambda: model_bytes(model)
    yield from _methods(model, X)
    if isinstance(model, Pipeline):
        for name, step in model.steps:
            yield from ((f"{name}.{call}", made) for call, made in _methods(step, X))


def _methods(model: Any, X: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the calls of the methods of one estimator; `partial_fit`, which changes it, last."""
    kind = type(model)
    names = [name for name in dir(kind) if not name.startswith(("_", "set_"))]
    names = [name for name in names if name not in NOT_CALLED and callable(getattr(kind, name))]
    if isinstance(model, Pipeline):  # whose methods are those of its last step
        names = ["predict", "transform", "score", "score_samples"]
    for name in names:
        if name != "partial_fit":
            yield from (
                (name, partial(_call, model, name, given)) for given in _data(kind, name, X)
            )
    if "partial_fit" in names:
        for name in ("partial_fit", "partial_fit", "predict"):
            yield name, partial(_call, model, name, (X,))
        if hasattr(kind, "summary"):
            yield "summary", partial(_call, model, "summary", ())


def _data(kind: type, name: str, X: Any) -> list[tuple[Any, ...]]:
    """Return what a method is given: rows if it takes some, and nothing if it need not."""
    try:
        found = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
    except ValueError:
        return [(X,)]
    if not any(one.name == "X" for one in found):
        return [()]
    return [(X,)] if found[0].default is inspect.Parameter.empty else [(X,), ()]


def _call(model: Any, name: str, given: tuple[Any, ...]) -> Any:
    method = getattr(model, name, None)  # options leave some out
    return None if method is None else method(*given, **MORE.get(name, {}))


def outcome_of(path: str, X: Any) -> str:
    """Load a file and call everything: "refused", "errors" (in some call), or "results"."""
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load_model(path)
        except ModelFileError as error:
            if isinstance(error.__cause__, MemoryError):
                return f"memory in load: {error}"
            return f"refused: {error}"
        except Exception as error:
            return f"load raised {type(error).__name__}: {error}"
        for name, call in calls_of(model, copy.deepcopy(X)):
            try:
                str(call())
            except MemoryError as error:
                return f"memory in {name}: {error}"
            except Exception as error:
                errors.append(f"{name}: {type(error).__name__}: {error}"[:200])
    return f"errors: {errors[0]}" if errors else "results"
