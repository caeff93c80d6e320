"""Plain tables: columns far from 0, and labels that the graphs contradict."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
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


CONTRADICTED = [
    (load_iris, 3), (load_wine, 3), (load_wine, None), (load_breast_cancer, 2),
    (load_breast_cancer, None),
]  # fmt: skip


@pytest.mark.parametrize(("load", "n_clusters"), CONTRADICTED)
def test_labels_that_the_graphs_contradict_are_not_certain(load, n_clusters):
    X = scale(load().data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SubspaceClustering(n_clusters, random_state=0).fit(X)
    assert model.contradiction_ > 0.9
    assert model.certainty_ <= 0.3
    assert not model.separates_
    said = f"raphs with {model.contradiction_:.0%} of the weight contradict the labels"
    assert said in model.verdict_
    assert said in " ".join(model.summary().split())
    assert any(said in str(warning.message) for warning in caught)
