"""Checks of what users pass to the public functions; solvers call those without checks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from inspect import signature
from numbers import Integral
from typing import Any, TypeVar

from polyspan.base.arrays import Array, as_array, namespace

Function = TypeVar("Function", bound=Callable[..., Any])


def finite_floats(a: Any, name: str) -> Array:
    """Return an array of finite real numbers, in double precision where they are no floats."""
    try:
        a = as_array(a)
        xp = namespace(a)
        if not xp.isdtype(a.dtype, ("real floating", "complex floating")):
            a = xp.astype(a, xp.float64)
    except (TypeError, ValueError) as error:  # lists of different lengths, text
        raise ValueError(
            f"{name} cannot be read as one array of numbers ({error}): give arrays of one shape, "
            "with columns of zeros where a subspace has fewer dimensions"
        ) from error
    if xp.isdtype(a.dtype, "complex floating"):
        raise ValueError(f"{name} holds complex numbers, of the type {a.dtype}: give real ones")
    bad = int(xp.count_nonzero(~xp.isfinite(a)))
    if bad:
        raise ValueError(
            f"{bad} of {math.prod(a.shape)} entries of {name} are NaN or infinite: give finite "
            "numbers"
        )
    return a


def with_checks(function: Function, axes: str, **rules: bool) -> Function:
    """Return a function that checks its first argument, an array, and its `n`, `dims`.

    Parameters
    ----------
    function : callable
        The function without checks.
    axes : str
        Names of the axes of the array, where "..." stands for any number of them.
    **rules : bool
        As for `check_axes`.
    """
    parameters = signature(function)
    first = next(iter(parameters.parameters))

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        given = parameters.bind(*args, **options)
        a = given.arguments[first] = finite_floats(given.arguments[first], first)
        check_axes(a.shape, first, axes, **rules)
        n = given.arguments.get("n")
        if n is not None and (not isinstance(n, Integral) or int(n) < 1):
            raise ValueError(f"n={n!r} must be a whole number of at least 1")
        count = None if n is None else int(n)
        if count is not None and first == "gram" and a.shape[-1] % count:
            raise ValueError(
                f"gram has {a.shape[-1]} columns, which are not those of n={n} bases of one size"
            )
        check_dims(given.arguments.get("dims"), a.shape, axes, count)
        return function(*given.args, **given.kwargs)

    checked.__module__ = "polyspan.geometry"
    return checked  # type: ignore[return-value]


def check_axes(
    shape: tuple[int, ...],
    name: str,
    axes: str,
    *,
    tall: bool = False,
    square: bool = False,
    filled: bool = False,
) -> None:
    """Raise an error for a wrong number of axes, or lengths of the last two that do not fit.

    Parameters
    ----------
    shape, name
        Those of the array.
    axes : str
        As for `with_checks`.
    tall : bool
        There must be no more dimensions than features.
    square : bool
        The last two axes must have one length.
    filled : bool
        No axis may have the length 0.
    """
    names = axes.split(", ")
    least = len(names) - ("..." in names)
    if len(shape) < least or ("..." not in names and len(shape) > least):
        raise ValueError(f"{name} needs the shape ({axes}), found {tuple(shape)}")
    if filled and 0 in shape:
        raise ValueError(f"{name} has no entries, its shape is {tuple(shape)}: give some")
    if square and shape[-1] != shape[-2]:
        raise ValueError(f"{name} needs square matrices, ({axes}), found {tuple(shape)}")
    sizes = dict(zip(names[-2:], shape[-2:], strict=True))
    if tall and sizes["dim"] > sizes["n_features"]:
        raise ValueError(
            f"{name} needs at least as many features as dimensions, ({axes}), found {tuple(shape)}"
        )


def check_dims(dims: Any, shape: tuple[int, ...], axes: str, n: int | None) -> None:
    """Raise an error for dimensions that are not those of subspaces of a stack."""
    if dims is None:
        return
    most = shape[-2] if axes.endswith("dim, n_features") else shape[-1]
    if n is not None and axes.endswith("columns"):
        most //= n
    count = n if n is not None else shape[-3] if len(shape) > 2 else 1
    if len(dims) != count or not all(0 <= dim <= most for dim in dims):
        raise ValueError(
            f"dims={tuple(dims)} must be {count} whole numbers from 0 to {most}, one for every "
            "subspace"
        )
