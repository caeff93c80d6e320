"""Figures of samples: within their subspaces, and how far from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.base.arrays import to_numpy
from polyspan.linear.portrait import (
    Portrait,
    dimensions_of,
    in_memory,
    principal_axes,
    unsure_samples,
)
from polyspan.plotting.panels import colour_key, colours, flat, panels, say, thinned

#: Beyond so many subspaces their sizes are not written below them.
MOST_SIZED = 12


def plot_samples(model: Any, X: Any, axes: Any = None) -> Any:
    """Plot every sample on the two leading directions of its own subspace.

    Parameters
    ----------
    model : fitted linear model, mixture or kernel model
        The model whose subspaces are drawn.
    X : array-like of shape (n_samples, n_features)
        Samples, such as those of the fit.
    axes : as many matplotlib axes as there are subspaces, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib axes
        One per subspace, with the samples that `predict` gives it. The axes are the principal axes
        of these samples within the subspace (in a mixture, those that it has learned), with their
        shares of the energy within the subspace. Unsure samples have a ring: no subspace has a
        membership of .9; in kernel models a second subspace is nearly as near. A subspace of
        dimension 1 has the distance to it on its second axis; one of dimension 0 has nothing to
        draw and says so. Beyond 5000 samples some are drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.plotting import plot_samples
    >>> X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    >>> len(plot_samples(MiCUSaL(2, 2, random_state=0).fit(X), X))
    2
    """
    dims, X = dimensions_of(model), in_memory(X)
    portrait = Portrait.of(model, X)
    found = principal_axes(model, portrait)
    unsure = unsure_samples(model, X)[portrait.rows]
    n_columns = 4 if len(dims) in (4, 7, 8) or len(dims) > 9 else 3
    new = axes is None
    axes = panels(axes, len(dims), n_columns, (3.1, 2.9), "one per subspace")
    shown = thinned(len(portrait.rows))
    every = zip(flat(axes), colours(len(dims)), strict=True)
    for p, (ax, colour) in enumerate(every):
        own = shown[portrait.labels[shown] == p]
        ax.set_title(f"subspace {p}: {(portrait.labels == p).sum()} samples", fontsize="medium")
        if dims[p] == 0:
            say(ax, "dimension 0: a point")
            continue
        turned = portrait.coordinates[own] @ found.turns[p]
        second = turned[:, 1] if dims[p] > 1 else np.sqrt(portrait.residuals[own])
        ax.scatter(turned[:, 0], second, s=8, color=colour, alpha=0.7)
        ring = unsure[own]
        if ring.any():
            ax.scatter(
                turned[ring, 0], second[ring], s=36, facecolors="none", edgecolors="black",
                linewidths=0.7, label="unsure",
            )  # fmt: skip
        names = _axis_names(found.energies, p, int(dims[p]))
        ax.set(xlabel=names[0], ylabel=names[1])
        ax.axhline(0.0, color="gray", linewidth=0.5, zorder=0)
        ax.axvline(0.0, color="gray", linewidth=0.5, zorder=0)
    if new and unsure.any():
        flat(axes)[0].figure.suptitle("samples with a ring are unsure", fontsize="medium")
    return axes


def _axis_names(energies: np.ndarray | None, p: int, dim: int) -> tuple[str, str]:
    assert energies is not None
    total = float(np.nansum(energies[p]))
    names = [
        f"direction {k + 1}" + (f" ({energies[p, k] / total:.0%})" if total > 0 else "")
        for k in range(min(dim, 2))
    ]
    return (names[0], names[1]) if dim > 1 else (names[0], "distance to the subspace")


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
        say(right, "one subspace: there is no other")
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
    step = 1 if n <= 2 * MOST_SIZED else -(-n // MOST_SIZED)
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
