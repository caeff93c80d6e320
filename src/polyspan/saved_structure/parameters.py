"""Parameters of estimators in a file, held to what their classes allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyspan._sklearn import validate_parameter_constraints

#: Numbers in the state of a Mersenne twister. NumPy reads after the last without a check.
TWISTER_NUMBERS = 624


def check_estimator_parameters(model: Any) -> None:
    """Raise an error where a parameter is not what the class takes, as `fit` would."""
    kind = type(model)
    # Those of the class, and those that are there: scikit-learn may have got others since.
    given = {name: vars(model)[name] for name in kind._get_param_names() if name in vars(model)}
    constraints = getattr(kind, "_parameter_constraints", {})  # KernelCenterer has none
    validate_parameter_constraints(constraints, given, caller_name=kind.__name__)
    for name, value in given.items():
        if isinstance(value, np.random.RandomState):
            _check_generator(name, value)


def _check_generator(name: str, generator: np.random.RandomState) -> None:
    state: Any = generator.get_state(legacy=False)
    place = state["state"]["pos"]
    if not 0 <= place <= TWISTER_NUMBERS:
        raise ValueError(f"{name} is at number {place} of {TWISTER_NUMBERS}")


def hidden_names(one: Any, known: Sequence[str]) -> list[str]:
    """Return the names of the class that attributes of an object hide, but for parameters."""
    kind = type(one)
    parameters = kind._get_param_names() if hasattr(kind, "_get_param_names") else []
    return [name for name in vars(one) if hasattr(kind, name) and name not in (*known, *parameters)]
