"""What must hold between the parts of a loaded model, so that no code reads outside an array.

A file may be forged: it names only allowed types, but its numbers may be anything. Compiled loops
do not check an index, and a size decides how much memory is taken. So types, shapes and bounds are
compared once, when a model is loaded; each array is read about once. `parts.py` and `estimators.py`
say of each type what must hold: by rules such as ``floats("counts weights", "subspaces")``, two
arrays with one number for each subspace, and by functions where no rule can say it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from polyspan.base.private_sklearn import validate_parameter_constraints

#: Numbers in the state of a Mersenne twister. NumPy reads after the last without a check.
TWISTER_NUMBERS = 624
#: A size: a number, the name of one that several arrays share, or None for any.
Size = int | str | None
#: What is checked of an object, with the sizes that it shares.
Rule = Callable[[Any, "Shapes"], None]


class StructureError(ValueError):
    """Parts of a model do not fit each other."""


class Shapes:
    """The sizes of one object: each name has the value that it had in the first array.

    Parameters
    ----------
    where : str
        The object, for messages.
    checks : mapping
        What is checked of each type.
    **sizes : int
        Sizes that are known already.
    """

    def __init__(self, where: str, checks: Mapping[type, Sequence[Rule]], **sizes: int) -> None:
        self.where, self._checks, self.sizes = where, checks, dict(sizes)

    def run(self, one: Any) -> None:
        """Check an object of a known type."""
        kind = type(one)
        own = [field.name for field in fields(one)] if is_dataclass(one) else []
        own += kind._get_param_names() if isinstance(one, BaseEstimator) else []
        for name in vars(one):
            if hasattr(kind, name) and name not in own:
                raise StructureError(f"{self.where} hides {name!r} of its class")
        if isinstance(one, BaseEstimator):
            check_estimator_parameters(one)
        for rule in self._checks[kind]:
            rule(one, self)

    def part(self, name: str, one: Any, *kinds: type, **sizes: Size) -> None:
        """Check an object inside, which must be of one of these types.

        Its sizes are numbers, or sizes of this object; None says that one is known only inside.
        """
        if type(one) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise StructureError(
                f"{name} of {self.where} is a {type(one).__name__}, and must be a {wanted}"
            )
        known = {own: self[n] if isinstance(n, str) else n for own, n in sizes.items()}
        given = {own: n for own, n in known.items() if n is not None}
        inside = Shapes(f"{self.where}.{name}", self._checks, **given)
        inside.run(one)
        self.sizes |= {own: inside[own] for own, n in known.items() if n is None}

    def parts(self, name: str, some: Any, n: Size, kind: type, **sizes: Size) -> None:
        """Check a tuple or list of objects of one type."""
        for k, one in enumerate(self.several(name, some, n)):
            self.part(f"{name}[{k}]", one, kind, **sizes)

    def several(self, name: str, some: Any, n: Size = None) -> Any:
        """Return a tuple or list, which must have this many parts."""
        if not isinstance(some, tuple | list):
            raise StructureError(f"{name} of {self.where} is a {type(some).__name__}, not a tuple")
        self._fit(name, (len(some),), (n,))
        return some

    def floats(self, name: str, array: Any, *shape: Size, finite: bool = True) -> None:
        """Check an array of float32 or float64."""
        self._array(name, array, "f", (4, 8), shape)
        if finite and not np.isfinite(array).all():
            raise StructureError(f"{name} of {self.where} holds NaN or infinity")

    def ints(
        self, name: str, array: Any, *shape: Size, least: int | None = None, below: Size = None
    ) -> None:
        """Check an array of indices: from `least` on, and below a size."""
        self._array(name, array, "i", (4, 8), shape)
        if not array.size:
            return
        most = self[below] if isinstance(below, str) else below
        low, high = int(array.min()), int(array.max())
        if (least is not None and low < least) or (most is not None and high >= most):
            bounds = f"from {least}" if most is None else f"from {least} to {most - 1}"
            raise StructureError(
                f"{name} of {self.where} has numbers from {low} to {high}, and may have {bounds}"
            )

    def nonempty(self, name: str, array: Any) -> None:
        """Check that an array has an entry."""
        if not len(array):
            raise StructureError(f"{name} of {self.where} is empty")

    def flags(self, name: str, array: Any, *shape: Size) -> None:
        """Check an array of booleans."""
        self._array(name, array, "b", (1,), shape)

    def words(self, name: str, array: Any, *shape: Size) -> None:
        """Check an array of text, or of objects."""
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "UO":
            raise StructureError(f"{name} of {self.where} is not an array of text")
        self._fit(name, array.shape, shape)

    def number(self, name: str, value: Any, least: float | None = None) -> None:
        """Check a number, which may be NaN where there is no least one."""
        if not isinstance(value, Real) or (least is not None and not float(value) >= least):
            raise StructureError(f"{name} of {self.where} is {_shown(value)}")

    def whole(self, name: str, value: Any, least: int | str, most: int | str) -> None:
        """Check a whole number between two others, which may be sizes."""
        least, most = (self[one] if isinstance(one, str) else one for one in (least, most))
        if not isinstance(value, Integral) or not least <= int(value) <= most:
            raise StructureError(
                f"{name} of {self.where} is {_shown(value)}, and may be from {least} to {most}"
            )

    def text(self, name: str, value: Any) -> None:
        """Check a text."""
        if not isinstance(value, str):
            raise StructureError(f"{name} of {self.where} is a {type(value).__name__}, not text")

    def same(self, name: str, one: Any, other: Any) -> None:
        """Check that two sizes are equal."""
        if one != other:
            raise StructureError(f"{name} of {self.where} is {_shown(one)}, and must be {other}")

    def __getitem__(self, size: str) -> int:
        if size not in self.sizes:
            raise StructureError(f"{self.where} lacks the array that says {size!r}")
        return self.sizes[size]

    def _array(
        self, name: str, array: Any, kind: str, n_bytes: tuple[int, ...], shape: tuple[Size, ...]
    ) -> None:
        if not isinstance(array, np.ndarray):
            raise StructureError(f"{name} of {self.where} is a {type(array).__name__}, no array")
        dtype = array.dtype
        if dtype.kind != kind or dtype.itemsize not in n_bytes or not dtype.isnative:
            raise StructureError(f"{name} of {self.where} is an array of {dtype}")
        self._fit(name, array.shape, shape)

    def _fit(self, name: str, found: tuple[int, ...], wanted: tuple[Size, ...]) -> None:
        """Compare a shape, and keep the sizes that it is the first to have."""
        fits = len(found) == len(wanted)
        known = []
        for size, one in zip(wanted, found, strict=False):
            known.append(self.sizes.setdefault(size, one) if isinstance(size, str) else size)
            fits = fits and known[-1] in (None, one)
        if not fits:
            shown = ", ".join("any" if one is None else str(one) for one in known)
            raise StructureError(
                f"{name} of {self.where} has the shape {found}, which does not fit ({shown})"
            )


def _shown(value: Any) -> str:
    try:
        return repr(value)[:40]
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"


def check_estimator_parameters(model: Any) -> None:
    """Raise an error where a parameter is not what the class takes, as `fit` would."""
    kind = type(model)
    # Those of the class, and those that are there: scikit-learn may have got others since.
    given = {name: vars(model)[name] for name in kind._get_param_names() if name in vars(model)}
    constraints = getattr(kind, "_parameter_constraints", {})  # KernelCenterer has none
    validate_parameter_constraints(constraints, given, caller_name=kind.__name__)
    for name, value in given.items():
        if isinstance(value, np.random.RandomState):
            state: Any = value.get_state(legacy=False)
            place = state["state"]["pos"]
            if not 0 <= place <= TWISTER_NUMBERS:
                raise ValueError(f"{name} is at number {place} of {TWISTER_NUMBERS}")


def _rule(check: Callable[..., Any]) -> Callable[..., Rule]:
    """Turn a method of `Shapes` into rules for attributes, whose names stand in one text."""

    def rule(names: str, *about: Any, optional: bool = False, **options: Any) -> Rule:
        def checked(one: Any, see: Shapes) -> None:
            for name in names.split():
                value = getattr(one, name, None)
                if value is not None or not optional:
                    check(see, name, value, *about, **options)

        return checked

    return rule


floats, ints, flags, nonempty = (
    _rule(check) for check in (Shapes.floats, Shapes.ints, Shapes.flags, Shapes.nonempty)
)
numbers, wholes, texts = (_rule(check) for check in (Shapes.number, Shapes.whole, Shapes.text))
several, part, parts = (_rule(check) for check in (Shapes.several, Shapes.part, Shapes.parts))
