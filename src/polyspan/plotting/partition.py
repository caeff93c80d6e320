"""A figure of a fitted `SubspaceClustering`: where its labels come from, and how sure they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import to_numpy
from polyspan.base.inputs import naming_columns, plain_numbers
from polyspan.base.private_sklearn import plain_settings
from polyspan.plotting.panels import flat, panels, thinned

#: Samples of lower confidence get a ring.
UNSURE = 0.5
#: Beyond so many clusters their sizes are not written below them.
MOST_SIZED = 15


def plot_partition(model: Any, X: Any = None, axes: Any = None) -> Any:
    """Plot what a `SubspaceClustering` found: spectra, agreement, confidence, samples.

    Parameters
    ----------
    model : fitted SubspaceClustering
        The model whose result is drawn.
    X : array-like of shape (n_samples, n_features), default=None
        The samples of the fit, for the fourth panel, which is left out without them: a model does
        not keep its samples.
    axes : three matplotlib axes, or four with `X`, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib axes
        1. Leading eigenvalues of every graph, the darker the more the graph counts. The graph with
           the largest gap is marked: a clear partition has a large step after the last cluster.
        2. How well the labels of two graphs agree (adjusted Rand index), the result as last row.
        3. Confidence of the samples of each cluster: median, quartiles and range without outliers.
        4. Samples on the two leading singular vectors, coloured by cluster; those of a confidence
           below .5 have a ring. Beyond 5000 samples some are drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from polyspan import SubspaceClustering
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.plotting import plot_partition
    >>> data = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, spread=0.6,
    ...                                random_state=0)
    >>> axes = plot_partition(SubspaceClustering(2, random_state=0).fit(data.X), data.X)
    >>> axes[1].get_title()
    'agreement of the graphs'
    """
    check_is_fitted(model)
    model = _on_cpu(model)
    coordinates = None if X is None else _leading_coordinates(model, X)
    n_panels = 3 if coordinates is None else 4
    axes = panels(axes, n_panels, 2, (5.0, 3.75), f"{'with' if n_panels == 4 else 'without'} X")
    each = flat(axes)
    _draw_spectra(each[0], model)
    _draw_agreement(each[1], model)
    _draw_confidence(each[2], model)
    if coordinates is not None:
        _draw_samples(each[3], model, coordinates)
    return axes


def _on_cpu(model: Any) -> Any:
    """Return what is drawn of a model, in NumPy arrays wherever the model is."""
    arrays = {name: to_numpy(getattr(model, name)) for name in ("labels_", "confidence_", "mean_")}
    return SimpleNamespace(
        **arrays, members_=model.members_, n_clusters_=model.n_clusters_,
        certainty_=model.certainty_,
    )  # fmt: skip


def _draw_spectra(ax: Any, model: Any) -> None:
    """Draw the eigenvalues of every graph, and the gap after the last cluster."""
    members, n_clusters = model.members_, model.n_clusters_
    ax.set(xlabel="eigenvalue", ylabel="value", title="spectra of the graphs")
    if not len(members["gap"]):
        _say_nothing(ax)
        return
    weights = members["weight"] / max(float(members["weight"].max()), 1e-12)
    best = int(np.argmax(members["gap"]))
    places = np.arange(1, members["values"].shape[1] + 1)
    lines = []
    for k, values in enumerate(members["values"]):
        look = {"color": "C0", "alpha": 0.15 + 0.7 * float(weights[k])}
        if k == best:
            look = {"color": "C1", "alpha": 1.0}
        lines += ax.plot(places, values, marker=".", label=str(members["graph"][k]), **look)
    ax.axvspan(n_clusters, n_clusters + 1, color="gray", alpha=0.15, linewidth=0)
    ax.set_title(f"gap after {n_clusters} clusters: {members['gap'][best]:.2f} of 1")
    ax.legend(handles=[lines[best]], loc="lower left", fontsize="small")
    ax.xaxis.get_major_locator().set_params(integer=True)


def _draw_agreement(ax: Any, model: Any) -> None:
    """Draw the adjusted Rand index of all pairs of graphs, and of each with the result."""
    members = model.members_
    ax.set(title="agreement of the graphs")
    if not len(members["gap"]):
        _say_nothing(ax)
        return
    names, labels = [str(name) for name in members["graph"]], list(members["labels"])
    # Of many samples some are clustered, and only these have labels of graphs.
    if labels[0].shape == model.labels_.shape:
        names, labels = [*names, "result"], [*labels, model.labels_]
    values = np.eye(len(labels))
    for i, first in enumerate(labels):
        for j in range(i):
            values[i, j] = values[j, i] = adjusted_rand_score(first, labels[j])
    image = ax.imshow(values, vmin=0.0, vmax=1.0, cmap="viridis")
    # Full names on one side only: they are long.
    places = list(range(len(names)))
    ax.set_xticks(places, [str(k) for k in places])
    ax.set_yticks(places, [f"{name}  {k}" for k, name in enumerate(names)])
    ax.tick_params(labelsize="x-small")
    ax.figure.colorbar(image, ax=ax, label="adjusted Rand index")


def _draw_confidence(ax: Any, model: Any) -> None:
    """Draw a box of the confidence of the samples of each cluster."""
    clusters = range(model.n_clusters_)
    groups = [model.confidence_[model.labels_ == c] for c in clusters]
    sized = model.n_clusters_ <= MOST_SIZED
    names = [f"{c}\n({len(groups[c])})" if sized else str(c) for c in clusters]
    ax.boxplot(groups, positions=list(clusters), flierprops={"marker": "."})
    ax.set_xticks(list(clusters), names)
    ax.set(ylim=(-0.03, 1.03), xlabel="cluster" + " (size)" * sized, ylabel="confidence")
    ax.set_title(f"certainty of the partition: {model.certainty_:.2f} of 1")


def _draw_samples(ax: Any, model: Any, coordinates: np.ndarray) -> None:
    """Draw samples in the colours of their clusters."""
    shown = thinned(len(coordinates))
    points, labels = coordinates[shown], model.labels_[shown]
    few = model.n_clusters_ <= 10
    bounds = (-0.5, 9.5) if few else (-0.5, model.n_clusters_ - 0.5)
    ax.scatter(
        points[:, 0], points[:, 1], c=labels, s=10, cmap="tab10" if few else "nipy_spectral",
        vmin=bounds[0], vmax=bounds[1], label="samples",
    )  # fmt: skip
    unsure = model.confidence_[shown] < UNSURE
    if unsure.any():
        ax.scatter(
            *points[unsure].T, s=45, facecolors="none", edgecolors="black", linewidths=0.6,
            label=f"confidence below {UNSURE:g}",
        )  # fmt: skip
        ax.legend()
    ax.set(xlabel="first coordinate", ylabel="second coordinate", title="samples by cluster")


def _leading_coordinates(model: Any, X: Any) -> np.ndarray:
    """Return samples on their two leading singular vectors, or on one and zero."""
    X = plain_numbers(X)
    X = to_numpy(X) if is_array_api_obj(X) else X
    with naming_columns(X):
        X = check_array(X, dtype=[np.float64, np.float32])
    wanted = (len(model.labels_), len(model.mean_))
    if X.shape != wanted:
        raise ValueError(
            f"X has shape {X.shape}, but the model was fitted to samples of shape {wanted}: give "
            "the samples of the fit, or leave X out"
        )
    found = np.zeros((len(X), 2))
    k = min(2, X.shape[1], len(X))
    with plain_settings():
        svd = TruncatedSVD(k, random_state=0) if k < X.shape[1] else None
        found[:, :k] = (X - model.mean_)[:, :k] if svd is None else svd.fit_transform(X)
    return found


def _say_nothing(ax: Any) -> None:
    """Write that there is nothing to draw."""
    ax.text(0.5, 0.5, "no graphs: nothing was compared", ha="center", transform=ax.transAxes)
    ax.set_axis_off()
