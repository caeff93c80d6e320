"""Elastic nets as members: who wins by the association with graphs of other kinds."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

from polyspan.clustering.consensus import (
    Member,
    angles_suffice,
    association,
    best_associated,
    elastic_choice,
    elastic_nets_fit,
)
from polyspan.clustering.coordinates import Coordinates
from polyspan.clustering.graphs import elastic_net_graphs

LABELS = np.repeat([0, 1], 15)


def noisy_blocks(labels, seed, across=0.1):
    W = np.random.RandomState(seed).uniform(size=(len(labels), len(labels)))
    W = np.where(labels[:, None] == labels, W, across * W)
    np.fill_diagonal(W, 0.0)
    return scipy.sparse.csr_array(W + W.T)


def member(name, kind, labels, graph=None, gap=0.5, rank=6):
    return Member(name, kind, rank, graph, np.ones(3), gap, labels)


def lines(noise=0.02, n=30, m=15):
    rng = np.random.RandomState(0)
    bases = [np.linalg.qr(rng.standard_normal((m, 3)))[0] for _ in range(2)]
    X = np.concatenate([rng.standard_normal((n, 3)) @ b.T for b in bases])
    return X + noise * rng.standard_normal(X.shape), np.repeat([0, 1], n)


def test_association_by_hand():
    W = np.array([[0, 3, 1, 0], [3, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0.0]])
    found = association(scipy.sparse.csr_array(W), np.array([0, 0, 1, 1]), 2)
    assert found == pytest.approx(min(6 / 7, 2 / 3))


def test_association_is_one_for_components_and_zero_for_an_empty_cluster():
    graph = noisy_blocks(LABELS, 0, across=0.0)
    assert association(graph, LABELS, 2) == 1.0
    assert association(graph, np.zeros(30, dtype=int), 2) == 0.0


def test_graphs_of_other_kinds_decide():
    wrong = np.random.RandomState(3).permutation(LABELS)
    members = [
        member("angles", "subspace", wrong, noisy_blocks(LABELS, 0)),
        member("near", "neighbours", wrong, noisy_blocks(LABELS, 1)),
        member("overlap", "overlap", wrong, noisy_blocks(LABELS, 2)),
        member("net", "elastic net", LABELS, noisy_blocks(wrong, 3)),
    ]
    # Its own graph speaks against the net, but is not asked about it.
    assert best_associated(members, 2).name == "net"


def test_clear_angles_suffice():
    X, _ = lines(noise=0.3)
    full = Coordinates.of(X)
    assert full.rank_at(0.999) > 8
    cases = {(0.8, 0.9): True, (0.6, 0.3): True, (0.6, 0.5): False, (0.5, 0.0): False}
    for (angles, near), enough in cases.items():
        members = [
            member("angles", "subspace", LABELS, gap=angles),
            member("near", "neighbours", LABELS, gap=near),
        ]
        assert angles_suffice(members, full, 2) == enough


def test_samples_of_low_rank_need_no_net():
    X, _ = lines(noise=0.0)
    assert angles_suffice([], Coordinates.of(X), 2)


def test_nets_are_for_few_clusters_and_samples():
    assert elastic_nets_fit(200, 5)
    assert not elastic_nets_fit(200, 6)
    assert not elastic_nets_fit(10**6, 2)


def test_nets_of_two_subspaces():
    X, labels = lines()
    coordinates = Coordinates.of(X)
    graphs = list(elastic_net_graphs(coordinates))
    assert len({named.name for named in graphs}) == 5
    for named in graphs:
        assert (abs(named.graph - named.graph.T) > 1e-12).nnz == 0
        assert association(named.graph, labels, 2) > 0.7
    wrong = np.random.RandomState(0).permutation(labels)
    known = [member("near", "neighbours", wrong, noisy_blocks(labels, 0))]
    nets, found, source = elastic_choice(known, wrong, coordinates, 2)
    assert len(nets) == 5
    assert adjusted_rand_score(found, labels) == 1.0
    assert "elastic net" in source
    again, found, source = elastic_choice([*known, *nets], labels, coordinates, 2)
    assert again == []
    assert adjusted_rand_score(found, labels) == 1.0
