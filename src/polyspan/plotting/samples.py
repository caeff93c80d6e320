"""A figure of samples within their subspaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.plotting.panels import colours, flat, panels, share, thinned
from polyspan.union.portrait import (
    Portrait,
    dimensions_of,
    in_memory,
    principal_axes,
    unsure_samples,
)


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
            ax.text(0.5, 0.5, "dimension 0: a point", ha="center", transform=ax.transAxes)
            ax.set_axis_off()
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
        f"direction {k + 1}" + (f" ({share(energies[p, k] / total)})" if total > 0 else "")
        for k in range(min(dim, 2))
    ]
    return (names[0], names[1]) if dim > 1 else (names[0], "distance to the subspace")
