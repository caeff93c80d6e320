"""Figures of fitted models: what their artists hold."""

import itertools

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from polyspan import MCKUSaL, MiCUSaL, SubspaceMixture
from polyspan.baselines import KernelKMeans
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import principal_angles
from polyspan.plotting import (
    panels,
    plot_basis_images,
    plot_loadings,
    plot_residuals,
    plot_samples,
    plot_subspaces,
)
from polyspan.plotting.directions import short_names

DATA = make_union_of_subspaces(
    (40, 30, 20), n_features=12, subspace_dim=3, spread=0.25, noise=0.15, random_state=0
)
X = DATA.X
MODEL = MiCUSaL(3, 3, random_state=0).fit(X)
MIXTURE = SubspaceMixture(3, 2, random_state=0).fit(X)
KERNEL = MCKUSaL(3, 2, kernel="linear", random_state=0).fit(X)


def uneven():
    """Return a model of dimensions 3, 1 and 0."""
    model = MiCUSaL(3, 3, affine=True, n_init=2, random_state=0).fit(X)
    model.bases_ = model.bases_.copy()
    model.bases_[1, :, 1:] = model.bases_[2] = 0.0
    return model


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def scatter_of(ax, k=0):
    return np.asarray(ax.collections[k].get_offsets())


def test_angles_between_all_pairs():
    (ax,) = plot_subspaces(MODEL)
    values = np.ma.filled(ax.get_images()[0].get_array(), np.nan)
    assert np.isnan(np.diag(values)).all()
    texts = {tuple(text.get_position()): text.get_text() for text in ax.texts}
    assert len(texts) == 6
    for a in range(3):
        for b in range(a):
            angles = np.degrees(principal_angles(MODEL.bases_[a], MODEL.bases_[b]))
            assert_allclose(values[b, a], angles.min())
            assert_allclose(values[a, b], angles.max())
            assert texts[a, b] == f"{angles.min():.0f}"
            assert texts[b, a] == f"{angles.max():.0f}"


def test_spectra_of_the_samples():
    spectra = plot_subspaces(MODEL, X)[1]
    for p, line in enumerate(spectra.get_lines()[:3]):
        coordinates = (X - MODEL.mean_)[MODEL.labels_ == p] @ MODEL.bases_[p]
        wanted = np.linalg.svd(coordinates, compute_uv=False) ** 2 / len(coordinates)
        assert_allclose(line.get_ydata(), wanted)
        assert line.get_xdata().tolist() == [1, 2, 3]
        assert line.get_label() == str(p)
    assert_allclose(spectra.get_lines()[3].get_ydata(), MODEL.noise_variance_)
    names = [text.get_text() for text in spectra.get_legend().get_texts()]
    assert names == ["0", "1", "2", "noise"]


def test_a_mixture_has_spectra_of_its_own_and_a_kernel_model_distances():
    spectra = plot_subspaces(MIXTURE)[1]
    each = zip(MIXTURE.variances_, MIXTURE.noise_variances_, strict=True)
    for line, (variances, noise) in zip(spectra.get_lines(), each, strict=False):
        assert_allclose(line.get_ydata(), variances + noise)
    assert spectra.get_ylabel() == "variance, noise included"
    noise = [line.get_ydata()[0] for line in spectra.get_lines()[3:]]
    assert_allclose(noise, np.unique(MIXTURE.noise_variances_))
    matrix, spectra = plot_subspaces(KERNEL, X)
    values = np.ma.filled(matrix.get_images()[0].get_array(), 0.0)
    assert_allclose(values, KERNEL.subspace_distances_)
    assert len(spectra.get_lines()) == 3


def test_subspaces_of_unequal_dimension():
    matrix, spectra = plot_subspaces(uneven(), X)
    values = np.ma.filled(matrix.get_images()[0].get_array(), np.nan)
    assert np.isfinite(values[0, 1])
    assert values[0, 1] == pytest.approx(values[1, 0])  # one angle alone
    assert np.isnan(values[2]).all()  # a point has no angles
    assert [len(line.get_xdata()) for line in spectra.get_lines()[:3]] == [3, 1, 0]


def test_the_spectra_say_what_they_are():
    shifted = 5.0 + 0.1 * np.random.RandomState(0).standard_normal((60, 6))
    model = MiCUSaL(1, 2, random_state=0).fit(shifted)
    spectra = plot_subspaces(model, shifted)[1]
    energies = model.coordinates(shifted) ** 2
    assert_allclose(spectra.get_lines()[0].get_ydata().sum(), energies.sum(axis=1).mean())
    assert spectra.get_ylabel() == "mean squared coordinate"  # and not a variance


def test_spectra_keep_their_scale_where_samples_are_few():
    some = np.concatenate([X[MODEL.labels_ == 0], X[MODEL.labels_ == 1][:2]])
    spectra = plot_subspaces(MODEL, some)[1]
    assert spectra.get_yscale() == "log"
    names = [text.get_text() for text in spectra.get_legend().get_texts()]
    assert names == ["0", "1 (2 of 3 directions)", "2 (no samples)", "noise"]
    drawn = [np.isfinite(line.get_ydata()).sum() for line in spectra.get_lines()[:3]]
    assert drawn == [3, 2, 0]


def test_what_has_no_angles_says_so():
    matrix, spectra = plot_subspaces(MiCUSaL(1, 2, random_state=0).fit(X), X)
    assert [text.get_text() for text in matrix.texts] == ["one subspace: there is no other"]
    assert spectra.get_yscale() == "log"
    points = MiCUSaL(3, 0, affine=True, random_state=0).fit(X)
    matrix, spectra = plot_subspaces(points, X)
    assert [text.get_text() for text in matrix.texts] == ["points have no angles"]
    assert [text.get_text() for text in spectra.texts] == ["no directions to draw"]


@pytest.mark.filterwarnings("ignore:no sample is assigned")
def test_many_subspaces_have_a_bar_of_colours():
    model = MiCUSaL(12, 1, n_init=1, random_state=0).fit(X)
    for axes in (plot_subspaces(model, X), plot_residuals(model, X)):
        bars = [ax for ax in axes[0].figure.axes if ax.get_ylabel() == "subspace"]
        bar = [ax for ax in bars if ax not in list(axes)]
        assert len(bar) == 1
        assert bar[0].get_yticks().tolist() == list(range(12))
    spectra = plot_subspaces(model, X)[1]
    assert [text.get_text() for text in spectra.get_legend().get_texts()] == ["noise"]
    title = spectra.get_legend().get_title().get_text()
    empty = np.flatnonzero(np.bincount(model.predict(X), minlength=12) == 0)
    assert len(empty)
    assert title == "too few samples: " + ", ".join(map(str, empty))


def test_long_names_stay_within_their_panels():
    long = "the mean of the concave points of the nucleus, over all cells of a sample, nr."
    names = [f"{long} {j}" if j % 2 else f"concentration_of_total_phenols_{j}" for j in range(12)]
    frame = pd.DataFrame(X, columns=names)
    axes = plot_loadings(MiCUSaL(3, 3, random_state=0).fit(frame), 0, frame, n_features=12)
    figure = axes[0].figure
    figure.canvas.draw()
    extents = [ax.get_tightbbox().extents for ax in axes]  # with names and titles
    width, height = figure.canvas.get_width_height()
    for left, right in itertools.pairwise(extents):
        assert left[2] <= right[0]
    assert min(one[0] for one in extents) >= 0
    assert min(one[1] for one in extents) >= 0
    assert max(one[2] for one in extents) <= width
    assert max(one[3] for one in extents) <= height
    for ax in axes:
        assert ax.get_window_extent().width > 150
        labels = [text.get_window_extent() for text in ax.get_yticklabels()]
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(labels))


def test_shortened_names_stay_apart():
    found = short_names(["a" * 40 + mark + "b" * 40 for mark in "xy"] + ["c", "a" * 30])
    assert len(set(found)) == 4
    assert found[2] == "c"
    assert found[3].replace("\n", "") == "a" * 30
    assert short_names(["total phenols of the wine nr 7"]) == ["total phenols of\nthe wine nr 7"]


def test_loadings_by_name_with_fixed_signs():
    names = [f"column {j}" for j in range(12)]
    model = MiCUSaL(3, 3, random_state=0).fit(pd.DataFrame(X, columns=names))
    axes = plot_loadings(model, 1, pd.DataFrame(X, columns=names), n_features=4)
    assert len(axes) == 3
    samples = (X - model.mean_)[model.labels_ == 1] @ model.bases_[1]
    turned = model.bases_[1] @ np.linalg.svd(samples)[2].T
    energies = (((X - model.mean_)[model.labels_ == 1] @ turned) ** 2).sum(axis=0)
    for k, ax in enumerate(axes):
        direction = turned[:, k] * np.sign(turned[np.abs(turned[:, k]).argmax(), k])
        order = np.argsort(-np.abs(direction))[:4]
        assert_allclose([bar.get_width() for bar in ax.patches], direction[order])
        assert [text.get_text() for text in ax.get_yticklabels()] == [names[j] for j in order]
        assert ax.patches[0].get_width() > 0
        assert f"{energies[k] / energies.sum():.0%} of the energy" in ax.get_title()
        assert ax.yaxis_inverted()  # the largest is on top


def test_loadings_without_samples_are_the_basis_as_it_is():
    axes = plot_loadings(MODEL, 0, n_features=12, n_directions=2)
    for k, ax in enumerate(axes):
        widths = np.abs([bar.get_width() for bar in ax.patches])
        assert_allclose(np.sort(widths), np.sort(np.abs(MODEL.bases_[0][:, k])))
        assert ax.get_title() == f"subspace 0, basis vector {k}"
        assert ax.get_yticklabels()[0].get_text().startswith("feature ")
    (ax,) = plot_loadings(MIXTURE, 2, n_directions=1)
    assert ax.get_title().startswith("subspace 2, direction 1\n")


def test_distances_to_the_own_and_to_the_nearest_other_subspace():
    boxes, pairs = plot_residuals(MODEL, X)
    distances = MODEL.transform(X)
    sizes = np.bincount(MODEL.labels_)
    names = [text.get_text() for text in boxes.get_xticklabels()]
    assert names == [f"{p}\n({sizes[p]})" for p in range(3)]
    for p in range(3):
        drawn = [line for line in boxes.get_lines() if len(line.get_xdata())]
        own = [line for line in drawn if np.round(np.mean(line.get_xdata())) == p]
        levels = [line.get_ydata() for line in own]
        wanted = np.median(distances[MODEL.labels_ == p, p])
        assert any(len(y) == 2 and np.allclose(y, wanted) for y in levels)
    ordered = np.sort(distances, axis=1)
    for p in range(3):
        assert_allclose(scatter_of(pairs, p), ordered[MODEL.labels_ == p, :2])
    assert pairs.get_lines()[0].get_xdata().tolist() == [0.0, distances.min(axis=1).max()]


def test_one_subspace_has_no_other():
    _, pairs = plot_residuals(MiCUSaL(1, 2, random_state=0).fit(X), X)
    assert [text.get_text() for text in pairs.texts] == ["one subspace: there is no other"]


def test_many_samples_are_thinned_out(monkeypatch):
    monkeypatch.setattr(panels, "MOST_POINTS", 20)
    pairs = plot_residuals(MODEL, X)[1]
    assert sum(len(scatter_of(pairs, p)) for p in range(3)) == 20


def test_samples_on_the_leading_directions_of_their_subspace():
    axes = plot_samples(MODEL, X)
    unsure = MODEL.memberships(X).max(axis=1) < 0.9
    assert unsure.any()
    for p, ax in enumerate(axes):
        own = MODEL.labels_ == p
        coordinates = (X - MODEL.mean_)[own] @ MODEL.bases_[p]
        turned = coordinates @ np.linalg.svd(coordinates)[2].T
        assert_allclose(np.abs(scatter_of(ax)), np.abs(turned[:, :2]), atol=1e-9)
        assert ax.get_title() == f"subspace {p}: {own.sum()} samples"
        energies = (turned**2).sum(axis=0)
        assert ax.get_xlabel() == f"direction 1 ({energies[0] / energies.sum():.0%})"
        assert len(ax.collections) == 1 + unsure[own].any()
        if unsure[own].any():
            assert_allclose(scatter_of(ax, 1), scatter_of(ax)[unsure[own]])


def test_samples_of_lines_and_points():
    model = uneven()
    axes = plot_samples(model, X)
    labels = model.predict(X)
    assert axes[1].get_ylabel() == "distance to the subspace"
    wanted = model.transform(X)[labels == 1, 1]
    assert_allclose(scatter_of(axes[1])[:, 1], wanted)
    assert [text.get_text() for text in axes[2].texts] == ["dimension 0: a point"]


@pytest.mark.parametrize("model", [MIXTURE, KERNEL], ids=["mixture", "kernel"])
def test_samples_of_other_models(model):
    axes = plot_samples(model, X)
    found = model.coordinates(X)[model.predict(X) == 0]
    assert_allclose(
        (scatter_of(axes[0]) ** 2).sum(axis=1), (found**2).sum(axis=1)
    )  # both directions are drawn
    assert len(plot_residuals(model, X)) == 2


def test_pictures_of_basis_vectors():
    grid = plot_basis_images(MODEL, (3, 4), X)
    assert grid.shape == (3, 3)
    for p in range(3):
        coordinates = (X - MODEL.mean_)[MODEL.labels_ == p] @ MODEL.bases_[p]
        turned = MODEL.bases_[p] @ np.linalg.svd(coordinates)[2].T
        for k in range(3):
            (image,) = grid[p, k].get_images()
            drawn = np.asarray(image.get_array())
            assert drawn.shape == (3, 4)
            assert_allclose(np.abs(drawn).ravel(), np.abs(turned[:, k]), atol=1e-9)
            assert drawn.flat[np.abs(drawn).argmax()] > 0
            assert image.get_clim()[0] == -image.get_clim()[1]
        assert grid[p, 0].get_ylabel() == f"subspace {p}"
    assert grid[0, 1].get_title() == "direction 2"
    plain = plot_basis_images(MODEL, (3, 4), n_directions=1)
    drawn = np.asarray(plain[0, 0].get_images()[0].get_array()).ravel()
    assert_allclose(np.abs(drawn), np.abs(MODEL.bases_[0][:, 0]))
    assert plain[0, 0].get_title() == "vector 0"


def test_pictures_in_colour_with_centres():
    grid = plot_basis_images(MIXTURE, (2, 2, 3))
    assert grid.shape == (3, 3)
    assert [ax.get_title() for ax in grid[0]] == ["centre", "direction 1", "direction 2"]
    low, high = MIXTURE.means_.min(), MIXTURE.means_.max()
    centre = np.asarray(grid[1, 0].get_images()[0].get_array())
    assert_allclose(centre.ravel(), (MIXTURE.means_[1] - low) / (high - low))
    direction = np.asarray(grid[1, 1].get_images()[0].get_array())
    most = np.abs(MIXTURE.bases_[1]).max()
    assert_allclose(np.abs(direction.ravel() - 0.5) * 2 * most, np.abs(MIXTURE.bases_[1][:, 0]))
    grey = np.asarray(plot_basis_images(MIXTURE, (3, 4))[2, 0].get_images()[0].get_array())
    assert_array_equal(grey.ravel(), MIXTURE.means_[2])


def test_smaller_subspaces_have_fewer_pictures():
    grid = plot_basis_images(uneven(), (3, 4), X)
    assert grid.shape == (3, 4)
    assert [[len(ax.get_images()) for ax in row] for row in grid] == [
        [1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0],
    ]  # fmt: skip


def test_models_on_another_device(accelerator):
    with sklearn.config_context(array_api_dispatch=True):
        moved = accelerator.asarray(X)
        model = MiCUSaL(3, 3, random_state=0).fit(moved)
        spectra = plot_subspaces(model, moved)[1]
        samples = plot_samples(model, moved)
        plot_residuals(model, moved)
        plot_loadings(model, 0, moved)
        plot_basis_images(model, (3, 4), moved)
        assert str(model.summary(moved)).startswith("MiCUSaL: 3 subspaces")
    wanted = plot_subspaces(MODEL, X)[1].get_lines()[0].get_ydata()
    assert_allclose(spectra.get_lines()[0].get_ydata(), wanted, rtol=1e-6)
    assert_allclose(scatter_of(samples[0]), scatter_of(plot_samples(MODEL, X)[0]), atol=1e-6)


@pytest.mark.parametrize(
    ("plot", "n"),
    [
        (lambda axes: plot_subspaces(MODEL, X, axes), 2),
        (lambda axes: plot_loadings(MODEL, 0, X, axes=axes), 3),
        (lambda axes: plot_residuals(MODEL, X, axes), 2),
        (lambda axes: plot_samples(MODEL, X, axes), 3),
        (lambda axes: plot_basis_images(MODEL, (3, 4), X, axes=axes), 9),
    ],
    ids=["subspaces", "loadings", "residuals", "samples", "basis images"],
)
def test_given_axes_are_drawn_on(plot, n):
    _, given = plt.subplots(1, n)
    drawn = plot(given)
    assert [ax.has_data() for ax in given] == [True] * n
    assert np.ravel(drawn)[0] is given[0]
    assert len(plt.get_fignums()) == 1
    with pytest.raises(ValueError, match=rf"axes has {n + 1} axes: give {n} "):
        plot(plt.subplots(1, n + 1)[1])


def test_what_cannot_be_drawn():
    with pytest.raises(NotFittedError):
        plot_subspaces(MiCUSaL(2, 1))
    with pytest.raises(ValueError, match="those of a MCKUSaL are in the feature space"):
        plot_loadings(KERNEL)
    with pytest.raises(ValueError, match="those of a MCKUSaL are in the feature space"):
        plot_basis_images(KERNEL, (3, 4))
    with pytest.raises(ValueError, match="subspace == 3, must be <= 2"):
        plot_loadings(MODEL, 3)
    with pytest.raises(ValueError, match="subspace 2 is a point"):
        plot_loadings(uneven(), 2)
    with pytest.raises(ValueError, match=r"\(3, 5\) has 15 entries, but the model has 12 features"):
        plot_basis_images(MODEL, (3, 5))
    for shape in ((3, 2, 2), 12, "12", (3.5, 4)):
        with pytest.raises(ValueError, match=r"must be \(height, width\) or \(height, width, 3\)"):
            plot_basis_images(MODEL, shape)
    for other in (KMeans(2, n_init=1, random_state=0), KernelKMeans(2, random_state=0)):
        name = type(other).__name__
        other.fit(X)
        for plot in (plot_samples, plot_residuals, plot_subspaces):
            with pytest.raises(TypeError, match=f"a {name} has no subspaces to look at"):
                plot(other, X)
