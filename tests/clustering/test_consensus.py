"""Graphs, their gaps, and what members make of them together."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from polyspan.base.arrays import unit_rows
from polyspan.clustering.consensus import (
    Member,
    agreement,
    cluster_graphs,
    consensus,
    matched,
    size_entropy,
)
from polyspan.clustering.coordinates import Coordinates
from polyspan.clustering.decision import leave_one_out, paired_t
from polyspan.clustering.graphs import (
    Named,
    candidate_graphs,
    evidence,
    proximity_graphs,
    subspace_graphs,
)
from polyspan.graphs.spectra import leading_spectrum

LABELS = np.repeat(np.arange(3), (20, 30, 25))


def member(labels, gap=0.5, kind="subspace", graph=None):
    return Member("m", kind, 6, graph, np.ones(4), gap, np.asarray(labels))


def blocks(labels):
    W = (labels[:, None] == labels).astype(float)
    np.fill_diagonal(W, 0.0)
    return W


def union(seed=0, dims=(2, 3, 4), n=40, m=20, noise=0.01):
    rng = np.random.RandomState(seed)
    bases = [np.linalg.qr(rng.standard_normal((m, s)))[0] for s in dims]
    X = np.concatenate([rng.standard_normal((n, b.shape[1])) @ b.T for b in bases])
    return X + noise * rng.standard_normal(X.shape), np.repeat(np.arange(len(dims)), n)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_a_block_graph_has_a_gap_of_one_and_its_blocks_as_clusters(make):
    (found,) = cluster_graphs([Named("blocks", "subspace", 6, make(blocks(LABELS)))], 3, seed=0)
    assert 0.99 < found.gap <= 1.0
    assert adjusted_rand_score(found.labels, LABELS) == 1.0
    assert (found.graph is None) == (make is np.asarray)


def test_a_graph_with_more_components_than_clusters_counts_for_nothing():
    apart = np.repeat(np.arange(5), 12)
    (found,) = cluster_graphs([Named("apart", "subspace", 6, blocks(apart))], 3, seed=0)
    assert found.gap == pytest.approx(0.0, abs=1e-9)


def test_a_gap_does_not_depend_on_the_scale_of_a_graph():
    W = np.random.RandomState(0).uniform(size=(30, 30))
    W += W.T
    one, other = leading_spectrum(W, 4, 0), leading_spectrum(1000.0 * W, 4, 0)
    assert_allclose(one.values, other.values, atol=1e-12)
    assert one.gap(3) == pytest.approx(other.gap(3))


def test_a_member_that_splits_off_a_few_samples_counts_for_nothing():
    lonely = np.r_[np.zeros(98, dtype=int), 1, 1]
    assert size_entropy(lonely, 2) < 0.5
    (found,) = cluster_graphs([Named("lonely", "subspace", 6, blocks(lonely))], 2, seed=0)
    assert found.gap == 0.0


@pytest.mark.parametrize("gaps", [(0.5, 0.5, 0.5), (0.9, 0.1, 0.0), (0.0, 0.0, 0.0)])
def test_the_consensus_of_equal_members_is_that_member(gaps):
    renamed = [np.array(names)[LABELS] for names in ((0, 1, 2), (2, 0, 1), (1, 0, 2))]
    members = [member(labels, gap) for labels, gap in zip(renamed, gaps, strict=True)]
    assert adjusted_rand_score(consensus(members, 3, seed=0), LABELS) == 1.0
    assert_allclose(agreement(members, LABELS, 3), 1.0)


def test_a_clear_member_outweighs_two_that_are_not():
    other = np.random.RandomState(0).permutation(LABELS)
    members = [member(LABELS, 0.9), member(other, 0.2), member(other, 0.2)]
    assert adjusted_rand_score(consensus(members, 3, seed=0), LABELS) == 1.0
    assert_allclose(agreement(members, LABELS, 3)[matched(other, LABELS, 3) != LABELS], 0.81 / 0.89)


def test_matched_labels_differ_only_where_the_clusters_do():
    other = LABELS.copy()
    other[:3] = 1
    renamed = np.array([2, 0, 1])[other]
    assert np.array_equal(matched(renamed, LABELS, 3), other)


def test_rows_of_independent_subspaces_are_orthogonal():
    X, labels = union(noise=0.0)
    graphs = subspace_graphs(Coordinates.of(X), {9: True}, dense=True)
    dense, sparse = (named.graph for named in graphs)
    across = labels[:, None] != labels
    assert dense[across].max() < 1e-12
    assert abs(sparse.toarray()[across]).max() < 1e-12
    assert np.array_equal(dense, dense.T)
    assert (abs(sparse - sparse.T) > 1e-15).nnz == 0


def test_without_dense_graphs_there_are_two_sparse_ones_of_each_rank():
    Q = unit_rows(np.random.default_rng(0).standard_normal((40, 5)))
    X = Q * np.linspace(2, 1, 5)
    coordinates = Coordinates.of(X)
    graphs = list(subspace_graphs(coordinates, {4: False, 5: True}, dense=False))
    assert [named.rank for named in graphs] == [4, 4, 5, 5]
    few, more = (named.graph.toarray() for named in graphs[:2])
    cosines = np.abs(unit_rows(coordinates.U[:, :4]) @ unit_rows(coordinates.U[:, :4]).T)
    np.fill_diagonal(cosines, 0.0)
    for graph, k, power in ((few, 5, 2), (more, 15, 4)):
        smallest = np.sort(cosines, axis=1)[:, [-k]]
        one_way = np.where(cosines >= smallest, cosines**power, 0.0)
        assert_allclose(graph, one_way + one_way.T, atol=1e-12)


def test_neighbour_graphs_are_symmetric_and_have_no_loops():
    X, _ = union()
    for named in proximity_graphs(Coordinates.of(X), 3):
        dense = named.graph.toarray()
        assert_allclose(dense, dense.T, atol=1e-12)
        assert not dense.diagonal().any()
        assert (dense >= 0).all()


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_coordinates_give_the_samples_back(shape):
    X = np.random.RandomState(0).standard_normal(shape)
    found = Coordinates.of(X)
    assert_allclose((found.U * found.S) @ found.V.T, X, atol=1e-6)
    assert_allclose(found.U.T @ found.U, np.eye(found.rank), atol=1e-6)
    assert found.rank == 12


def test_the_spectra_tell_the_number_of_clusters():
    X, _ = union(dims=(2, 2, 2, 2), m=25)
    found = evidence(candidate_graphs(Coordinates.of(X), 8, dense=True), 8, seed=0)
    assert int(np.argmax(found)) + 2 == 4


def literal_residual(Z, own, i, dim):
    others = np.delete(Z[own], i, axis=0)
    _, _, Vt = np.linalg.svd(others, full_matrices=False)
    z = Z[own][i]
    return float(np.sum((z - (z @ Vt[:dim].T) @ Vt[:dim]) ** 2))


def test_leave_one_out_residuals_are_those_of_a_refit():
    # To first order: the subspace of the others turns by the residual of the one left out.
    Z, labels = union(dims=(2, 2), m=10, noise=0.05, n=30)
    found = leave_one_out(Z, labels, 2, dim=2)
    literal = np.concatenate(
        [[literal_residual(Z, labels == c, i, 2) for i in range(30)] for c in range(2)]
    )
    assert_allclose(found, literal, rtol=0.05)
    plain = leave_one_out(Z, labels, 2, dim=2) - literal
    assert abs(plain.mean()) < 0.01 * literal.mean()


def test_a_direction_of_its_own_is_not_free():
    Z = np.eye(4)
    assert_allclose(leave_one_out(Z, np.zeros(4, dtype=int), 1, dim=4), 0.0, atol=1e-12)


def test_the_better_partition_has_a_positive_t():
    Z, labels = union(dims=(2, 2), m=10)
    wrong = np.random.RandomState(0).permutation(labels)
    right, other = leave_one_out(Z, labels, 2, 2), leave_one_out(Z, wrong, 2, 2)
    assert paired_t(other, right) > 3
    assert paired_t(right, other) == pytest.approx(-paired_t(other, right))
    assert paired_t(right, right) == 0.0
