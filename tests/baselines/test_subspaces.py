"""Ensembles of K-subspaces: runs, how often they agree, and what that graph finds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import unit_rows
from polyspan.baselines import EnsembleKSubspaces
from polyspan.baselines import subspaces as module
from polyspan.baselines.subspaces import co_association, ensemble_labels
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import clustering_error

DATA = make_union_of_subspaces(
    (30, 30), n_features=20, subspace_dim=2, spread=0.8, noise=0.01, random_state=0
)


def together(labels):
    """Return how often samples share a label, all pairs, the diagonal without."""
    share = np.mean([run[:, None] == run for run in labels], axis=0)
    np.fill_diagonal(share, 0.0)
    return share


def test_runs_do_not_depend_on_how_many_are_worked_on_together(monkeypatch):
    X = unit_rows(DATA.X)
    whole = ensemble_labels(X, 2, 2, 9, n_iter=3, seed=1)
    monkeypatch.setattr(module, "CHUNK_MAX_BYTES", 8 * 60 * 2 * 2 * 2)  # two runs
    assert_array_equal(ensemble_labels(X, 2, 2, 9, n_iter=3, seed=1), whole)
    assert_array_equal(ensemble_labels(X, 2, 2, 4, n_iter=3, seed=1), whole[:4])
    assert not np.array_equal(ensemble_labels(X, 2, 2, 9, n_iter=3, seed=2), whole)


def test_steps_lower_the_residuals():
    X = unit_rows(DATA.X)

    def residual(labels):
        total = 0.0
        for run in labels:
            for label in range(2):
                values = np.linalg.svd(X[run == label], compute_uv=False)
                total += np.sum(values[2:] ** 2)
        return total

    values = [residual(ensemble_labels(X, 2, 2, 20, n_iter=k, seed=0)) for k in (0, 2, 10)]
    assert values[0] > values[1] > values[2]


def test_co_association_of_given_labels():
    labels = np.random.RandomState(0).randint(3, size=(7, 20))
    share = together(labels)
    assert_allclose(co_association(labels, None).toarray(), 2 * share, atol=1e-12)
    graph = co_association(labels, 4).toarray()
    assert_allclose(graph, graph.T)
    # Ties may go either way, so only what every row keeps is certain: its four largest.
    largest = np.sort(share, axis=1)[:, -4:].sum(axis=1)
    assert np.all(graph.sum(axis=1) >= largest - 1e-12)
    assert_allclose(graph.sum(), 2 * largest.sum())


def test_blocks_of_rows_make_no_difference(monkeypatch):
    labels = np.random.RandomState(0).randint(3, size=(7, 20))
    whole = co_association(labels, 4)
    monkeypatch.setattr("polyspan.graphs.edges.chunk_rows", lambda *_: 3)
    assert abs(co_association(labels, 4) - whole).max() == 0


def test_runs_together_are_better_than_one():
    X = unit_rows(DATA.X)
    single = ensemble_labels(X, 2, 2, 50, n_iter=2, seed=0)
    errors = [clustering_error(DATA.labels, run) for run in single]
    model = EnsembleKSubspaces(2, 2, n_runs=50, n_iter=2, random_state=0).fit(DATA.X)
    assert clustering_error(DATA.labels, model.labels_) <= np.median(errors)
    share = together(single)
    apart = DATA.labels[:, None] != DATA.labels
    assert share[apart].mean() < share[~apart].mean()


def test_every_sample_keeps_the_neighbours_asked_for():
    X = unit_rows(DATA.X)
    graph = co_association(ensemble_labels(X, 2, 2, 40, n_iter=10, seed=0), 3)
    assert graph.nnz <= 6 * len(X)
    assert np.diff(graph.indptr).min() >= 3
    assert EnsembleKSubspaces(2, 2, n_runs=5, random_state=0).fit(X).q_ == 6
    assert EnsembleKSubspaces(2, 2, n_runs=5, q=500, random_state=0).fit(X).q_ == 59


def test_more_dimensions_than_the_samples_span():
    X = np.outer(np.arange(1.0, 13), np.ones(5))
    labels = ensemble_labels(X, 2, 3, 4, n_iter=2, seed=0)
    assert labels.shape == (4, 12)
    assert set(labels.ravel()) <= {0, 1}


@pytest.mark.parametrize("options", [{"n_runs": 0}, {"n_iter": -1}, {"q": 0}], ids=str)
def test_bad_parameters(options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        EnsembleKSubspaces(**options).fit(DATA.X)
