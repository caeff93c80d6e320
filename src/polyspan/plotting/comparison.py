"""Figures of what was tried: by `compare`, and by `choose_size`."""

from __future__ import annotations

from typing import Any

from polyspan.base.optional import import_optional
from polyspan.model_selection import SizeChoice
from polyspan.plotting.panels import flat, panels


def plot_comparison(comparison: Any, axes: Any = None) -> Any:
    """Plot what `compare` measured: one panel per measure, one bar per method.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
    axes : as many matplotlib axes as there are measures, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib axes
        One per measure. A method that failed, or that a measure does not apply to, has no bar.
    """
    measures = comparison.measures
    if axes is None:
        plt = import_optional("matplotlib.pyplot", "a figure")
        size = (2.0 + 2.6 * len(measures), 1.0 + 0.3 * len(comparison.rows))
        _, axes = plt.subplots(
            1, len(measures), figsize=size, sharey=True, squeeze=False, layout="constrained"
        )
        axes = axes[0]
    names = [row["method"] for row in comparison.rows]
    places = range(len(names))
    for ax, measure in zip(axes, measures, strict=True):
        values = [row[measure] for row in comparison.rows]
        ax.barh(places, [0.0 if value is None else value for value in values])
        for place, value in zip(places, values, strict=True):
            ax.text(value or 0.0, place, "–" if value is None else f" {value:.3g}", va="center")
        ax.set(xlabel=measure.replace("_", " "), yticks=list(places), yticklabels=names)
        ax.margins(x=0.25)
    # One call is enough: the panels share this axis.
    axes[0].invert_yaxis()
    return axes


def plot_size_choice(choice: SizeChoice, axes: Any = None) -> Any:
    """Plot what `choose_size` tried: BIC by dimension, held-out error by number of subspaces.

    Parameters
    ----------
    choice : SizeChoice
        The result of `choose_size`.
    axes : two matplotlib axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of two matplotlib axes
        1. BIC by dimension, a line for every number of subspaces that was tried with it.
        2. Squared error of hidden entries by number of subspaces, with standard errors, at the
           chosen dimension. Dotted lines mark the choice.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.model_selection import choose_size
    >>> from polyspan.plotting import plot_size_choice
    >>> data = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, spread=0.5,
    ...                                random_state=0)
    >>> axes = plot_size_choice(choose_size(data.X, 3, 4, random_state=0))
    >>> axes[0].get_xlabel()
    'dimension of the subspaces'
    """
    axes = panels(axes, 2, 2, (4.5, 3.2), "BIC, and errors")
    left, right = flat(axes)
    rounds = sorted({int(row["n_subspaces"]) for row in choice.table if row["step"] == "dimension"})
    for n_subspaces in rounds:
        found = _columns(choice, step="dimension", n_subspaces=n_subspaces)
        left.plot(
            found["subspace_dim"], found["value"], marker="o", label=f"{n_subspaces} subspaces"
        )
    left.axvline(choice.subspace_dim, color="gray", linestyle=":")
    left.set(xlabel="dimension of the subspaces", ylabel="BIC")
    left.legend()
    found = _columns(choice, step="number", subspace_dim=choice.subspace_dim)
    right.errorbar(
        found["n_subspaces"], found["value"], yerr=found["standard_error"], marker="o", capsize=3
    )
    right.axvline(choice.n_subspaces, color="gray", linestyle=":")
    right.set(xlabel="number of subspaces", ylabel="squared error of hidden entries")
    return axes


def _columns(choice: SizeChoice, **wanted: Any) -> dict[str, list[Any]]:
    """Return the columns of the table, restricted to the rows with the wanted values."""
    rows = [row for row in choice.table if wanted.items() <= row.items()]
    return {name: [row[name] for row in rows] for name in choice.table[0]}
