"""Pictures of basis vectors, for samples that are pictures."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from polyspan.plotting.loadings import require_bases
from polyspan.plotting.panels import panels
from polyspan.union.portrait import Portrait, centres_of, dimensions_of, principal_axes


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
    centred = hasattr(model, "means_") or hasattr(model, "anchors_")
    n_columns = n_drawn + centred
    if n_columns == 0:
        raise ValueError("all subspaces are points: they have no directions to draw")
    found = principal_axes(model, None if X is None else Portrait.of(model, X))
    assert found.bases is not None
    what = f"{len(dims)} subspaces times {n_columns} columns"
    axes = panels(axes, len(dims) * n_columns, n_columns, (1.15, 1.2), what)
    grid = np.asarray(axes, dtype=object).reshape(len(dims), n_columns)
    centres = centres_of(model)
    for p, row in enumerate(grid):
        if centred:
            _draw_centre(row[0], centres, p, shape)
        most = float(np.abs(found.bases[p]).max(initial=0.0)) or 1.0
        for k, ax in enumerate(row[centred:]):
            if k < dims[p]:
                _draw_direction(ax, found.bases[p][:, k].reshape(shape), most)
            else:
                ax.set_axis_off()
            if p == 0:
                name = f"direction {k + 1}" if found.turned else f"vector {k}"
                ax.set_title(name, fontsize="small")
        row[0].set_ylabel(f"subspace {p}", fontsize="small")
    return grid


def _checked_shape(shape: tuple[int, ...], n_features: int) -> tuple[int, ...]:
    """Return the shape of a picture, or raise an error that says what is wrong with it."""
    sides = np.asarray(shape)
    if sides.ndim != 1 or sides.dtype.kind not in "iu":
        raise ValueError(f"shape={shape!r} must be (height, width) or (height, width, 3)")
    shape = tuple(int(side) for side in sides)
    wrong = len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] != 3)
    if wrong or min(shape) < 1:
        raise ValueError(f"shape={shape} must be (height, width) or (height, width, 3)")
    if int(np.prod(shape)) != n_features:
        raise ValueError(
            f"shape={shape} has {int(np.prod(shape))} entries, but the model has {n_features} "
            "features"
        )
    return shape


def _draw_centre(ax: Any, centres: np.ndarray, p: int, shape: tuple[int, ...]) -> None:
    """Draw the centre of a subspace, on one scale for all."""
    low, high = float(centres.min()), float(centres.max())
    picture = centres[p].reshape(shape)
    if len(shape) == 3:
        ax.imshow((picture - low) / max(high - low, 1e-300))
    else:
        ax.imshow(picture, cmap="gray", vmin=low, vmax=high)
    _bare(ax)
    if p == 0:
        ax.set_title("centre", fontsize="small")


def _draw_direction(ax: Any, picture: np.ndarray, most: float) -> None:
    """Draw a direction, with 0 in the middle of the scale."""
    if picture.ndim == 3:
        ax.imshow(0.5 + 0.5 * picture / most)
    else:
        ax.imshow(picture, cmap="RdBu_r", vmin=-most, vmax=most)
    _bare(ax)


def _bare(ax: Any) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
