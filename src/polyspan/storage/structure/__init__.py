"""What must hold between the parts of a loaded model, so that no code reads outside an array.

A file may be forged: it names only allowed types, but its numbers may be anything. Compiled loops
do not check an index, and a size decides how much memory is taken. `check_structure` compares
types, shapes and bounds once, when a model is loaded. It reads each array about once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyspan.storage.structure import estimators, kernels, tables, transformers
from polyspan.storage.structure.shapes import Shapes, StructureError

__all__ = ["CHECKS", "StructureError", "check_structure"]

#: What is checked of each type that a model file may hold.
CHECKS: dict[type, Callable[[Any, Shapes], None]] = {
    **kernels.CHECKS,
    **tables.CHECKS,
    **transformers.CHECKS,
    **estimators.CHECKS,
}


def check_structure(model: Any) -> None:
    """Raise a `StructureError` where the parts of a model do not fit each other."""
    Shapes(type(model).__name__, CHECKS).run(model)
