"""A figure of what is missing where in a table."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from polyspan._optional import import_optional
from polyspan.tables.column_values import columns_of

#: Beyond so many columns their names are not written below them.
MOST_NAMED = 40
#: Beyond so many columns neighbouring ones are averaged where pixels are too few.
MOST_APART = 300


def plot_missing(X: Any, *, max_rows: int = 200, ax: Any = None) -> Any:
    """Plot which entries of a table are missing: rows by columns, and the fraction per column.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns), or pandas or Polars frame
        Columns of any type. NaN, None, NA and NaT are missing.
    max_rows : int, default=200
        Most rows that are drawn one by one. Of more rows so many bins of neighbouring ones are
        drawn: a colour is the fraction of missing entries in a bin. The order of the rows stays;
        sort the table to see whether what is missing depends on a column.
    ax : matplotlib axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of two matplotlib axes
        1. The table: from white, nothing is missing, to dark, all is missing.
        2. Above it, the fraction of missing entries of each column.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from polyspan.plotting import plot_missing
    >>> table, bars = plot_missing([[1.0, "a"], [np.nan, "b"], [3.5, None], [np.nan, "b"]])
    >>> table.get_title()
    '37.5% of 8 entries are missing'
    """
    check_scalar(max_rows, "max_rows", Integral, min_val=1)
    columns = [(column.name, column.missing) for column in columns_of(X, "plot_missing")]
    if not columns or not len(columns[0][1]):
        raise ValueError(
            f"X has {len(columns)} columns and no entries: there is nothing to draw; give a table "
            "with rows and columns"
        )
    if ax is None:
        plt = import_optional("matplotlib.pyplot", "a figure")
        figure, ax = plt.subplots(figsize=(8, 5))
        # The layout reckons with too low axes above others: without room the title is cut.
        figure.set_layout_engine("constrained", rect=(0.0, 0.0, 1.0, 0.96))
    n_rows, n_columns = len(columns[0][1]), len(columns)
    binned = np.stack([_binned(missing, int(max_rows)) for _, missing in columns], axis=1)
    # Neighbouring columns stay apart, unless they are more than a figure has pixels for.
    smoothing = "nearest" if n_columns <= MOST_APART else "auto"
    image = ax.imshow(
        binned, interpolation=smoothing, vmin=0.0, vmax=1.0, cmap="Greys", aspect="auto",
        extent=(-0.5, n_columns - 0.5, n_rows - 0.5, -0.5),
    )  # fmt: skip
    ax.set(xlabel="column", ylabel="row")
    if n_columns <= MOST_NAMED:
        names = [str(name) for name, _ in columns]
        # Short names are easier to read upright.
        turned = 90 if sum(map(len, names)) > 60 else 0
        ax.set_xticks(range(n_columns), names, rotation=turned)
        ax.set_xlabel("")
    bars = ax.inset_axes((0.0, 1.03, 1.0, 0.22), sharex=ax)
    fractions = [float(missing.mean()) for _, missing in columns]
    bars.stairs(fractions, np.arange(n_columns + 1) - 0.5, fill=True, color="C0")
    bars.set(ylim=(0.0, 1.0), yticks=(0.5, 1.0), ylabel="fraction\nmissing")
    bars.tick_params(labelbottom=False)
    lost = sum(int(missing.sum()) for _, missing in columns)
    total = n_rows * n_columns
    ax.set_title(f"{lost / total:.1%} of {total} entries are missing", y=1.26)
    if n_rows > max_rows:
        ax.figure.colorbar(image, ax=ax, label="fraction missing of neighbouring rows")
    return np.array([ax, bars])


def _binned(missing: np.ndarray, most: int) -> np.ndarray:
    """Return the fraction of missing entries in at most so many bins of neighbouring rows."""
    n_bins = min(most, len(missing))
    edges = np.linspace(0, len(missing), n_bins + 1).astype(np.intp)
    sums = np.add.reduceat(missing.astype(np.intp), edges[:-1])
    return np.asarray(sums / np.diff(edges))
