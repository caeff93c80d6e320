"""A figure of how far samples lie from their own subspace, and from the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.arrays import to_numpy
from polyspan.plotting.panels import colour_key, colours, flat, panels, thinned
from polyspan.union.portrait import dimensions_of, in_memory

#: Beyond so many subspaces their sizes are not written below them.
MOST_SIZED = 12


def plot_residuals(model: Any, X: Any, axes: Any = None) -> Any:
    """Plot how far samples lie from their own subspace, and from the nearest other one.

    Parameters
    ----------
    model : fitted linear model, mixture or kernel model
        The model whose `transform` measures the distances.
    X : array-like of shape (n_samples, n_features)
        Samples, such as those of the fit.
    axes : two matplotlib axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of two matplotlib axes
        1. Distances to the own subspace, a box for every subspace: median, quartiles, range
           without outliers, and outliers as dots.
        2. Each sample with its distance to its own subspace and that to the nearest other one, in
           the colour of its subspace. Samples near the line are unsure. Samples far to the right
           fit no subspace. Beyond 5000 samples some are drawn.

        Distances are those of `transform`: Euclidean ones, in kernel models in the feature space,
        in a mixture those of Mahalanobis. Samples that cannot be judged are left out.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.plotting import plot_residuals
    >>> X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    >>> boxes, pairs = plot_residuals(MiCUSaL(2, 2, random_state=0).fit(X), X)
    >>> boxes.get_ylabel()
    'distance to the own subspace'
    """
    n_subspaces = len(dimensions_of(model))
    X = in_memory(X)
    labels, distances = to_numpy(model.predict(X)), to_numpy(model.transform(X))
    judged = labels >= 0
    labels, distances = labels[judged], distances[judged].astype(np.float64)
    own = distances[np.arange(len(labels)), labels]
    axes = panels(axes, 2, 2, (4.8, 4.0), "boxes, and pairs of distances")
    left, right = flat(axes)
    _draw_boxes(left, own, labels, n_subspaces)
    if n_subspaces == 1:
        right.text(
            0.5, 0.5, "one subspace: there is no other", ha="center", transform=right.transAxes
        )
        right.set_axis_off()
        return axes
    distances[np.arange(len(labels)), labels] = np.inf
    _draw_pairs(right, own, distances.min(axis=1), labels, n_subspaces)
    return axes


def _draw_boxes(ax: Any, own: np.ndarray, labels: np.ndarray, n: int) -> None:
    groups = [own[labels == p] for p in range(n)]
    boxes = ax.boxplot(
        groups, positions=list(range(n)), patch_artist=True,
        flierprops={"marker": ".", "markersize": 3}, medianprops={"color": "black"},
    )  # fmt: skip
    for box, colour in zip(boxes["boxes"], colours(n), strict=True):
        box.set_facecolor(colour)
        box.set_alpha(0.6)
    sized = n <= MOST_SIZED
    names = [f"{p}\n({len(groups[p])})" if sized else str(p) for p in range(n)]
    if n <= 2 * MOST_SIZED:
        ax.set_xticks(range(n), names)
    else:
        step = -(-n // MOST_SIZED)
        ax.set_xticks(range(0, n, step), names[::step])
    ax.set(xlabel="subspace" + " (samples)" * sized, ylabel="distance to the own subspace")
    ax.set_ylim(bottom=0.0)


def _draw_pairs(ax: Any, own: np.ndarray, other: np.ndarray, labels: np.ndarray, n: int) -> None:
    shown = thinned(len(own))
    for p, colour in enumerate(colours(n)):
        here = shown[labels[shown] == p]
        ax.scatter(own[here], other[here], s=8, color=colour, alpha=0.7, label=str(p))
    most = float(max(own.max(initial=0.0), 1e-300))
    ax.plot([0.0, most], [0.0, most], color="black", linewidth=0.8)
    ax.set(xlabel="distance to the own subspace", ylabel="distance to the nearest other subspace")
    if n <= 10:
        ax.legend(title="subspace", fontsize="small", ncols=2 if n > 5 else 1)
    else:
        colour_key(ax, n)
