"""Figures of the directions of subspaces: by their features, and as pictures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from polyspan.datasets.files import whole_numbers
from polyspan.linear.portrait import Portrait, centres_of, dimensions_of, principal_axes
from polyspan.plotting.panels import flat, panels

#: More directions than this are not drawn unless asked for.
MOST_DIRECTIONS = 3
#: Names of features have at most two lines of so many characters; the middle of others is left out.
LINE = 24


def plot_loadings(
    model: Any,
    subspace: int = 0,
    X: Any = None,
    *,
    n_features: int = 10,
    n_directions: int | None = None,
    axes: Any = None,
) -> Any:
    """Plot the features with the largest loadings on the directions of one subspace.

    Parameters
    ----------
    model : fitted linear model or mixture
        The model whose subspace is drawn.
    subspace : int, default=0
        Index of the subspace to draw.
    X : array-like of shape (n_samples, n_features), default=None
        Samples, such as those of the fit. The basis of a linear model is one of many: any rotation
        of it spans the same subspace. With samples it is turned to their principal axes, the most
        important first. Without samples it is drawn as it is, and the order of the directions
        means nothing. A mixture has learned its axes.
    n_features : int, default=10
        Number of features drawn of each direction.
    n_directions : int or None, default=None
        Number of directions; None: up to 3.
    axes : as many matplotlib axes as there are directions, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib axes
        One per direction: a bar per feature, the largest in size on top. The sign of a direction
        is chosen such that its largest loading is positive. Features have the names that they had
        in the fit; long ones have two lines, and of very long ones the middle is left out.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from polyspan import MiCUSaL
    >>> from polyspan.plotting import plot_loadings
    >>> X = load_iris().data
    >>> (ax,) = plot_loadings(MiCUSaL(2, 1, random_state=0).fit(X), 0, X, n_features=2)
    >>> len(ax.patches)
    2
    """
    dims = dimensions_of(model)
    check_scalar(subspace, "subspace", Integral, min_val=0, max_val=len(dims) - 1)
    check_scalar(n_features, "n_features", Integral, min_val=1)
    require_bases(model, "plot_loadings")
    if dims[subspace] == 0:
        raise ValueError(f"subspace {subspace} is a point: it has no directions to draw")
    if n_directions is None:
        n_directions = int(min(MOST_DIRECTIONS, dims[subspace]))
    check_scalar(n_directions, "n_directions", Integral, min_val=1, max_val=int(dims[subspace]))
    found = principal_axes(model, None if X is None else Portrait.of(model, X))
    assert found.bases is not None
    bases, energies = found.bases[subspace], found.energies
    numbered = [f"feature {j}" for j in range(len(bases))]
    names = short_names(getattr(model, "feature_names_in_", numbered))
    shown = min(int(n_features), len(names))
    lines = [line for name in names for line in name.split("\n")]
    # About the width of a letter, and the height of a line or two, in inches.
    tall = 0.26 if len(lines) == len(names) else 0.38
    size = (2.9 + 0.09 * max(map(len, lines)), 1.1 + tall * shown)
    axes = panels(axes, int(n_directions), 3, size, "one per direction")
    for k, ax in enumerate(flat(axes)):
        order = np.argsort(-np.abs(bases[:, k]), kind="stable")[:shown]
        values = bases[order, k]
        ax.barh(range(shown), values, color=np.where(values < 0, "C3", "C0").tolist())
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_yticks(range(shown), [names[j] for j in order])
        ax.invert_yaxis()
        title = f"direction {k + 1}" if found.turned else f"basis vector {k}"
        if energies is not None and np.nansum(energies[subspace]) > 0:
            part = energies[subspace, k] / np.nansum(energies[subspace])
            title += f"\n{part:.0%} of the energy within it"
        ax.set(xlabel="loading", title=f"subspace {subspace}, {title}")
        ax.title.set_fontsize("medium")
    return axes


def short_names(names: Sequence[str]) -> list[str]:
    """Return names in at most two lines each; no two become the same."""
    found = []
    for name in names:
        shown = " ".join(str(name).split())
        if len(shown) > 2 * LINE:
            shown = f"{shown[: LINE - 1]}\n…{shown[1 - LINE :]}"
        elif len(shown) > LINE:
            # At a space or a mark between words, where there is one.
            cuts = [k for k in range(len(shown) - LINE, LINE) if shown[k] in " _-./"]
            cut = min(cuts, key=lambda k: abs(2 * k - len(shown))) + 1 if cuts else LINE
            shown = f"{shown[:cut].rstrip()}\n{shown[cut:]}"
        found.append(shown)
    alike = {name for name, count in Counter(found).items() if count > 1}
    return [f"{name} ({j})" if name in alike else name for j, name in enumerate(found)]


def require_bases(model: Any, caller: str) -> None:
    """Raise an error for kernel models, whose directions have no features."""
    if not hasattr(model, "bases_"):
        raise ValueError(
            f"{caller} draws directions in the space of the data, and those of a "
            f"{type(model).__name__} are in the feature space of a kernel: use plot_subspaces, "
            "plot_residuals or plot_samples"
        )


def plot_basis_images(
    model: Any,
    shape: tuple[int, ...],
    X: Any = None,
    *,
    n_directions: int | None = None,
    axes: Any = None,
) -> Any:
    """Plot the directions of every subspace as pictures.

    Parameters
    ----------
    model : fitted linear model or mixture
        The model whose subspaces are drawn.
    shape : (height, width) or (height, width, 3)
        Shape of the picture that a sample is; the last for pictures in colour.
    X : array-like of shape (n_samples, n_features), default=None
        Samples, such as those of the fit. The basis of a linear model is one of many: with samples
        it is turned to their principal axes, the most important first. Without samples it is drawn
        as it is.
    n_directions : int or None, default=None
        Number of directions of each subspace; None: up to 5.
    axes : array of matplotlib axes, one row per subspace, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib axes of shape (n_subspaces, n_columns)
        One column per direction. Where subspaces have centres of their own (affine ones, mixtures)
        these come first. Directions are red where they add and blue where they take away; in
        colour, grey is 0. The sign of a direction is chosen such that its largest entry is
        positive. Directions that a smaller subspace does not have stay empty.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from polyspan import MiCUSaL
    >>> from polyspan.plotting import plot_basis_images
    >>> X = load_digits(n_class=3).data / 16
    >>> model = MiCUSaL(3, 4, random_state=0).fit(X)
    >>> plot_basis_images(model, (8, 8), X).shape
    (3, 4)
    """
    dims = dimensions_of(model)
    require_bases(model, "plot_basis_images")
    shape = _checked_shape(shape, int(model.bases_.shape[1]))
    if n_directions is not None:
        check_scalar(n_directions, "n_directions", Integral, min_val=1)
    n_drawn = int(min(dims.max(initial=0), 5 if n_directions is None else n_directions))
    centred = hasattr(model, "variances_") or hasattr(model, "anchors_")
    n_columns = n_drawn + centred
    if n_columns == 0:
        raise ValueError("all subspaces are points: they have no directions to draw")
    found = principal_axes(model, None if X is None else Portrait.of(model, X))
    assert found.bases is not None
    what = f"{len(dims)} subspaces times {n_columns} columns"
    axes = panels(axes, len(dims) * n_columns, n_columns, (1.15, 1.2), what)
    grid = np.asarray(axes, dtype=object).reshape(len(dims), n_columns)
    centres = centres_of(model)
    low, high = float(centres.min()), float(centres.max())  # one scale for all
    for p, row in enumerate(grid):
        if centred:
            _draw_picture(row[0], centres[p].reshape(shape), low, high, "gray")
            if p == 0:
                row[0].set_title("centre", fontsize="small")
        most = float(np.abs(found.bases[p]).max(initial=0.0)) or 1.0
        for k, ax in enumerate(row[centred:]):
            if k < dims[p]:
                direction = found.bases[p][:, k].reshape(shape)
                _draw_picture(ax, direction, -most, most, "RdBu_r")  # 0 is in the middle
            else:
                ax.set_axis_off()
            if p == 0:
                name = f"direction {k + 1}" if found.turned else f"vector {k}"
                ax.set_title(name, fontsize="small")
        row[0].set_ylabel(f"subspace {p}", fontsize="small")
    return grid


def _checked_shape(shape: tuple[int, ...], n_features: int) -> tuple[int, ...]:
    """Return the shape of a picture, or raise an error that says what is wrong with it."""
    sides = whole_numbers(shape)
    if len(sides) not in (2, 3) or min(sides) < 1 or sides[2:] not in ((), (3,)):
        raise ValueError(f"shape={shape!r} must be (height, width) or (height, width, 3)")
    if math.prod(sides) != n_features:
        raise ValueError(
            f"shape={sides} has {math.prod(sides)} entries, but the model has {n_features} features"
        )
    return sides


def _draw_picture(ax: Any, picture: np.ndarray, low: float, high: float, cmap: str) -> None:
    """Draw a picture without ticks; its values are on a scale from `low` to `high`."""
    if picture.ndim == 3:
        ax.imshow((picture - low) / max(high - low, 1e-300))
    else:
        ax.imshow(picture, cmap=cmap, vmin=low, vmax=high)
    ax.set_xticks([])
    ax.set_yticks([])
