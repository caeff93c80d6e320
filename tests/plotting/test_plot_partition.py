"""The figure of a partition: what its artists hold."""

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from polyspan.clustering import SubspaceClustering
from polyspan.datasets import make_union_of_subspaces
from polyspan.plotting import panels, partition, plot_partition

DATA = make_union_of_subspaces(
    (30, 20), n_features=12, subspace_dim=2, spread=0.9, noise=0.05, random_state=0
)
MODEL = SubspaceClustering(2, random_state=0).fit(DATA.X)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_spectra_of_all_members_with_the_gap_marked():
    ax = plot_partition(MODEL)[0]
    spectra = [line for line in ax.get_lines() if len(line.get_xdata()) == 3]
    assert [line.get_label() for line in spectra] == MODEL.members_["graph"].tolist()
    for line, values in zip(spectra, MODEL.members_["values"], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
        assert line.get_xdata().tolist() == [1, 2, 3]
    best = int(np.argmax(MODEL.members_["gap"]))
    assert [line.get_color() for line in spectra].count("C1") == 1
    assert spectra[best].get_color() == "C1"
    gap = MODEL.members_["gap"][best]
    assert ax.get_title() == f"gap after 2 clusters: {gap:.2f} of 1"
    (named,) = ax.get_legend().get_texts()
    assert named.get_text() == MODEL.members_["graph"][best]
    (span,) = ax.patches
    assert (span.get_extents().transformed(ax.transData.inverted()).x0) == pytest.approx(2)


def test_agreement_of_the_members_and_of_the_result():
    ax = plot_partition(MODEL)[1]
    (image,) = ax.get_images()
    values = np.asarray(image.get_array())
    n = len(MODEL.members_["gap"])
    assert values.shape == (n + 1, n + 1)
    np.testing.assert_allclose(values, values.T)
    np.testing.assert_allclose(np.diag(values), 1)
    same = (MODEL.members_["labels"] == MODEL.labels_).all(axis=1)
    assert same.any()
    np.testing.assert_allclose(values[-1, :-1][same], 1)
    assert [text.get_text() for text in ax.get_yticklabels()][-1] == f"result  {n}"


def test_confidence_of_each_cluster():
    ax = plot_partition(MODEL)[2]
    sizes = np.bincount(MODEL.labels_)
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names == [f"{c}\n({sizes[c]})" for c in range(2)]
    medians = [line.get_ydata()[0] for line in ax.get_lines() if line.get_color() == "C1"]
    expected = [np.median(MODEL.confidence_[MODEL.labels_ == c]) for c in range(2)]
    np.testing.assert_allclose(medians, expected)
    assert f"{MODEL.certainty_:.2f} of 1" in ax.get_title()


def test_samples_on_their_leading_coordinates():
    ax = plot_partition(MODEL, DATA.X)[3]
    points = ax.collections[0]
    np.testing.assert_array_equal(points.get_array(), MODEL.labels_)
    offsets = np.asarray(points.get_offsets())
    U, S, _ = np.linalg.svd(DATA.X, full_matrices=False)
    np.testing.assert_allclose(np.abs(offsets), np.abs(U[:, :2] * S[:2]), atol=1e-6)
    unsure = MODEL.confidence_ < partition.UNSURE
    assert len(ax.collections) == 1 + unsure.any()


def test_unsure_samples_have_rings_and_many_are_thinned_out(monkeypatch):
    model = SubspaceClustering(2, random_state=0).fit(DATA.X)
    model.confidence_ = np.where(np.arange(50) < 3, 0.2, 0.9)
    rings = plot_partition(model, DATA.X)[3].collections[1]
    assert len(rings.get_offsets()) == 3
    monkeypatch.setattr(panels, "MOST_POINTS", 20)
    assert len(plot_partition(model, DATA.X)[3].collections[0].get_offsets()) == 20


def test_without_samples_there_are_three_panels_on_new_or_given_axes():
    axes = plot_partition(MODEL)
    assert len(axes) == 3
    assert len(axes[0].figure.axes) == 4  # with the bar of colours
    _, given = plt.subplots(1, 3)
    assert plot_partition(MODEL, axes=given) is given
    with pytest.raises(ValueError, match=r"axes has 3 axes: give 4 \(with X\)"):
        plot_partition(MODEL, DATA.X, given)


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match=r"X has shape \(49, 12\), but the model was fitted to"):
        plot_partition(MODEL, DATA.X[:-1])
    with pytest.raises(NotFittedError):
        plot_partition(SubspaceClustering(2))


def test_one_cluster_has_no_graphs():
    model = SubspaceClustering(2, random_state=0).fit(DATA.X)
    model.n_clusters_, model.labels_ = 1, np.zeros(50, dtype=int)
    model.members_ = {name: values[:0] for name, values in model.members_.items()}
    axes = plot_partition(model)
    for ax in axes[:2]:
        assert [text.get_text() for text in ax.texts] == ["no graphs: nothing was compared"]
    assert [text.get_text() for text in axes[2].get_xticklabels()] == ["0\n(50)"]
