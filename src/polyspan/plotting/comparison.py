"""A figure of what `compare` measured."""

from __future__ import annotations

from typing import Any

from polyspan._optional import import_optional


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
