"""Figures of results: of `SubspaceClustering`, how sure it is; of `compare` and `choose_size`."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import to_numpy
from polyspan.base.inputs import numbers_of_samples
from polyspan.base.private_sklearn import plain_settings
from polyspan.model_selection import SizeChoice
from polyspan.plotting.panels import flat, panels, say, thinned

#: Samples of lower confidence get a ring.
UNSURE = 0.5
#: Beyond so many clusters their sizes are not written below them.
MOST_SIZED = 15
NOTHING = "no graphs: nothing was compared"


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
    moved = copy(model)
    for name in ("labels_", "confidence_", "mean_"):
        setattr(moved, name, to_numpy(getattr(model, name)))
    return moved


def _draw_spectra(ax: Any, model: Any) -> None:
    """Draw the eigenvalues of every graph, and the gap after the last cluster."""
    members, n_clusters = model.members_, model.n_clusters_
    ax.set(xlabel="eigenvalue", ylabel="value", title="spectra of the graphs")
    if not len(members["gap"]):
        say(ax, NOTHING)
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
        say(ax, NOTHING)
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
    X = numbers_of_samples(X, dtype=[np.float64, np.float32])
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
    n = len(measures)
    size = (2.6 + 2.0 / n, 1.0 + 0.3 * len(comparison.rows))
    axes = panels(axes, n, n, size, "one per measure", sharey=True)
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
