"""Plain tables: columns far from 0, and labels that the graphs contradict."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from polyspan import SubspaceClustering
from polyspan.base.arrays import unit_rows
from polyspan.clustering.coordinates import Coordinates
from polyspan.graphs.edges import all_angles
from polyspan.graphs.spectra import leading_spectrum

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")
RNG = np.random.RandomState(0)
FAR_FROM_ZERO = {
    "normal": RNG.normal(loc=100, size=(80, 5)),
    "kelvin": RNG.normal(290, 8, size=(136, 4)),
    "body sizes": RNG.normal([175, 95, 100, 80], [8, 10, 9, 7], size=(152, 4)),
    "wine": load_wine().data[RNG.permutation(178)[:164]],
}


@pytest.mark.parametrize("X", FAR_FROM_ZERO.values(), ids=FAR_FROM_ZERO)
def test_columns_far_from_zero(X):
    model = SubspaceClustering(close_subspaces=False, random_state=0).fit(X)
    assert model.labels_.shape == (len(X),)


@pytest.mark.parametrize("n", [24, 136, 164, 316, 500])
def test_the_spectrum_of_a_graph_whose_edges_all_weigh_the_same(n):
    """LAPACK finds some equal eigenvalues by bisection: it fails at some n, which ones depends."""
    X = np.random.RandomState(n).normal(loc=100, size=(n, 5))
    graph = all_angles(unit_rows(Coordinates.of(X).source[:, :1]))
    found = leading_spectrum(graph, 21, seed=0)
    expected = np.r_[1.0, np.full(20, -1 / (n - 1))]
    assert np.allclose(found.values, expected, atol=1e-9)
    assert np.allclose(found.vectors.T @ found.vectors, np.eye(21), atol=1e-9)


@pytest.mark.parametrize(
    ("load", "n_clusters", "least"),
    [(load_iris, 3, 0.85), (load_wine, 3, 0.85), (load_breast_cancer, 2, 0.6)],
)
def test_standardised_tables_are_clustered_by_the_mixture(load, n_clusters, least):
    """Angles from the mean say nothing there, so that the graphs contradict each other."""
    X, labels = load(return_X_y=True)
    model = SubspaceClustering(n_clusters, random_state=0).fit(scale(X))
    assert model.contradiction_ > 0.9
    assert model.source_.startswith("a mixture of affine subspaces")
    assert adjusted_rand_score(labels, model.labels_) >= least


def test_too_few_samples_for_a_mixture_are_not_certain():
    X = scale(load_breast_cancer().data[::10][:19])
    with pytest.warns(UserWarning, match="contradict the labels"):
        model = SubspaceClustering(2, random_state=0).fit(X)
    assert model.certainty_ <= 0.3
    assert "contradict the labels" in model.verdict_
    assert "contradict the labels" in " ".join(model.summary().split())
