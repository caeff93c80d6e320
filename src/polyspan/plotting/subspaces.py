"""A figure of the subspaces of a model: the angles between them, and the spectrum of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.base.arrays import to_numpy
from polyspan.base.checks import first_ten
from polyspan.linear.portrait import (
    Axes,
    Portrait,
    dimensions_of,
    extreme_angles,
    principal_axes,
)
from polyspan.plotting.panels import colour_key, colours, flat, panels, say

#: Beyond so many subspaces the numbers are not written into the matrix.
MOST_NUMBERED = 15
#: Beyond so many subspaces a bar of colours replaces the legend.
MOST_NAMED = 10


def plot_subspaces(model: Any, X: Any = None, axes: Any = None) -> Any:
    """Plot the angles between the subspaces of a model, and the spectrum of each.

    Parameters
    ----------
    model : fitted linear model, mixture or kernel model
        The model whose subspaces are compared.
    X : array-like of shape (n_samples, n_features), default=None
        Samples, such as those of the fit, for the spectra. A linear or kernel model does not keep
        them, and has no second panel without them. A mixture has learned its spectra.
    axes : one matplotlib axes, or two where there are spectra, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of matplotlib axes
        1. Angles between all pairs of subspaces, in degrees: above the diagonal the smallest
           principal angle, below it the largest. 0 above: two subspaces share a direction; 0
           below: one holds the other. Angles compare directions alone: affine subspaces with
           small angles may be far apart (see `summary`). Of kernel models the distances d_u.
        2. Mean squared coordinate of the samples of a subspace along its directions, largest
           first: their variance where the centre of the subspace is their mean. Of a mixture the
           variances that it has learned, noise included. Dashed lines are variances of the noise:
           a direction near them says little. Directions in which no sample of a subspace lies,
           as where it has fewer samples than dimensions, are left out.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.plotting import plot_subspaces
    >>> X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    >>> angles, spectra = plot_subspaces(MiCUSaL(2, 2, random_state=0).fit(X), X)
    >>> spectra.get_xlabel()
    'direction'
    """
    dimensions_of(model)  # says that a model is not fitted
    portrait = None if X is None else Portrait.of(model, X)
    found = principal_axes(model, portrait)
    n_panels = 1 if found.energies is None else 2
    why = "without X" if n_panels == 1 else "angles and spectra"
    axes = panels(axes, n_panels, 2, (5.0, 4.2), why)
    each = flat(axes)
    _draw_matrix(each[0], model)
    if found.energies is not None:
        _draw_spectra(each[1], model, found, portrait)
    return axes


def _draw_matrix(ax: Any, model: Any) -> None:
    """Draw the smallest and largest angles of all pairs, or their distances."""
    angles, n = extreme_angles(model), len(dimensions_of(model))
    if angles is None:
        values = to_numpy(model.subspace_distances_).astype(np.float64)
        values[np.diag_indices(n)] = np.nan
        most, digits = max(float(np.nanmax(values)), 1e-12) if n > 1 else 1.0, 2
        title, label = "distances between subspaces", "distance"
    else:
        values = np.where(np.tri(n, dtype=bool), angles[1], angles[0])
        values[np.diag_indices(n)] = np.nan
        most, digits = 90.0, 0
        title, label = "above: smallest angle; below: largest angle", "degrees"
    if not np.isfinite(values).any():
        say(ax, "one subspace: there is no other" if n == 1 else "points have no angles")
        return
    image = ax.imshow(values, vmin=0.0, vmax=most, cmap="viridis")
    ax.set(title=title, xlabel="subspace", ylabel="subspace")
    if n <= MOST_NUMBERED:
        ax.set_xticks(range(n))
        ax.set_yticks(range(n))
        for (a, b), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if value < 0.6 * most else "black"
                ax.text(
                    b, a, f"{value:.{digits}f}", ha="center", va="center", color=colour,
                    fontsize="small" if n > 8 else "medium",
                )  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label=label)


def _draw_spectra(ax: Any, model: Any, found: Axes, portrait: Portrait | None) -> None:
    """Draw the energy along every direction, one line per subspace."""
    assert found.energies is not None
    dims, energies = dimensions_of(model), found.energies
    mixture = hasattr(model, "variances_")
    if mixture:  # which are those beyond the noise
        energies = energies + to_numpy(model.noise_variances_).astype(np.float64)[:, None]
    # Zeros, up to rounding, have no place on an axis of logarithms.
    least = 1e-12 * np.nanmax(energies, initial=0.0)
    energies = np.where(energies > least, energies, np.nan)
    n_samples = None
    if portrait is not None and not mixture:
        n_samples = np.bincount(portrait.labels, minlength=len(dims))
    for p, colour in enumerate(colours(len(dims))):
        note = _why_short(int(dims[p]), None if n_samples is None else int(n_samples[p]))
        ax.plot(
            np.arange(1, dims[p] + 1), energies[p, : dims[p]], marker=".", color=colour,
            label=f"{p}{note}",
        )  # fmt: skip
    for k, variance in enumerate(np.unique(_noise(model))):
        name = "noise" if k == 0 else None
        ax.axhline(variance, color="gray", linestyle="--", linewidth=0.8, label=name)
    label = "variance, noise included" if mixture else "mean squared coordinate"
    ax.set(xlabel="direction", ylabel=label, title="spectra")
    if np.isfinite(energies).any():
        ax.set_yscale("log")
    else:
        why = "no directions to draw" if not dims.any() else "no sample along any direction"
        ax.text(0.5, 0.5, why, ha="center", transform=ax.transAxes)
    ax.xaxis.get_major_locator().set_params(integer=True)
    _draw_key(ax, len(dims))


def _draw_key(ax: Any, n: int) -> None:
    """Say which line is which: in a legend, or by a bar of colours where there are many."""
    handles, names = ax.get_legend_handles_labels()
    if n <= MOST_NAMED:
        ax.legend(title="subspace", ncols=2 if n > 5 else 1, fontsize="small")
        return
    colour_key(ax, n)
    short = [name.partition(" ")[0] for name in names if "(" in name]
    title = f"too few samples: {first_ten(short)}" if short else None
    noise = [k for k, name in enumerate(names) if name == "noise"]
    if noise or short:
        shown = [handles[k] for k in noise]
        ax.legend(shown, ["noise"] * len(noise), title=title, title_fontsize="small")


def _why_short(dim: int, n_samples: int | None) -> str:
    """Say why the line of a subspace is short or not there."""
    if dim == 0:
        return " (a point)"
    if n_samples is None or n_samples >= dim:
        return ""
    return " (no samples)" if n_samples == 0 else f" ({n_samples} of {dim} directions)"


def _noise(model: Any) -> np.ndarray:
    """Return the variances of the noise that are positive; kernel models have none."""
    known = getattr(model, "noise_variances_", getattr(model, "noise_variance_", ()))
    values = np.atleast_1d(to_numpy(known).astype(np.float64))
    return np.asarray(values[np.isfinite(values) & (values > 0)])
