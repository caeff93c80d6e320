"""Panels of a figure: new ones in a grid, or those given; and what several figures share."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.base.arrays import some_rows
from polyspan.base.optional import import_optional

#: More samples than this are thinned out.
MOST_POINTS = 5000


def panels(
    axes: Any, n: int, n_columns: int, size: tuple[float, float], what: str, **options: Any
) -> Any:
    """Return n axes: those given, or new ones in a grid of so many columns.

    Parameters
    ----------
    axes : array of matplotlib axes or None
    size : (width, height)
        Of one new panel, in inches.
    what : str
        What the number of axes depends on, for the error where it is wrong.
    **options
        Of matplotlib's `subplots`.
    """
    if axes is None:
        plt = import_optional("matplotlib.pyplot", "a figure")
        n_columns = min(n, n_columns)
        n_rows = -(-n // n_columns)
        figsize = (size[0] * n_columns, size[1] * n_rows)
        _, grid = plt.subplots(
            n_rows, n_columns, figsize=figsize, squeeze=False, layout="constrained", **options
        )
        for unused in grid.ravel()[n:]:
            unused.remove()
        return grid.ravel()[:n]
    if np.size(axes) != n:
        raise ValueError(f"axes has {np.size(axes)} axes: give {n} ({what})")
    return np.atleast_1d(axes) if np.ndim(axes) == 0 else axes


def flat(axes: Any) -> list[Any]:
    """Return axes of any layout as a list."""
    return list(np.asarray(axes, dtype=object).ravel())


def say(ax: Any, why: str) -> None:
    """Write why there is nothing to draw."""
    ax.text(0.5, 0.5, why, ha="center", transform=ax.transAxes)
    ax.set_axis_off()


def thinned(n: int) -> np.ndarray:
    """Return the indices of the samples to draw: all, or some where there are many."""
    return some_rows(n, MOST_POINTS, np.random.RandomState(0))


def colours(n: int) -> list[Any]:
    """Return a colour for every subspace: the same in every figure."""
    mpl = import_optional("matplotlib", "a figure")
    if n <= 10:
        return [f"C{p}" for p in range(n)]
    return list(mpl.colormaps["nipy_spectral"](np.linspace(0.05, 0.95, n)))


def colour_key(ax: Any, n: int) -> None:
    """Add a bar that says which colour is which subspace, where a legend would be too long."""
    mpl = import_optional("matplotlib", "a figure")
    scale = mpl.cm.ScalarMappable(
        mpl.colors.Normalize(-0.5, n - 0.5), mpl.colors.ListedColormap(colours(n))
    )
    bar = ax.figure.colorbar(scale, ax=ax, label="subspace")
    bar.set_ticks(range(0, n, -(-n // 20)))
