"""Which partition is kept."""

import numpy as np
import pytest

from polyspan.clustering import decision
from polyspan.clustering.consensus import Member
from polyspan.clustering.coordinates import Coordinates
from polyspan.clustering.decision import Judge, best_rung, by_graphs, close_subspaces, decide
from polyspan.metrics import clustering_error

LABELS = np.repeat([0, 1], 60)


def close_pair(angle=0.15, noise=0.02):
    """Draw samples of two subspaces of dimension 3, each direction turned by the angle."""
    rng = np.random.RandomState(0)
    Q = np.linalg.qr(rng.standard_normal((20, 6)))[0]
    turned = np.cos(angle) * Q[:, :3] + np.sin(angle) * Q[:, 3:]
    X = np.concatenate([rng.standard_normal((60, 3)) @ b.T for b in (Q[:, :3], turned)])
    return X + noise * rng.standard_normal(X.shape)


X = close_pair()
COORDINATES = Coordinates.of(X)
JUDGE = Judge.of(COORDINATES, 2)
WRONG = np.random.RandomState(1).permutation(LABELS)


def member(labels, gap, kind="subspace", rank=6):
    return Member(f"{kind} {gap}", kind, rank, None, np.array([1.0, 0.9, 0.5]), gap, labels)


@pytest.fixture
def one_dimension(monkeypatch):
    monkeypatch.setattr(decision, "CLOSE_DIMS", (3,))


def test_close_subspaces_are_annealed(one_dimension):
    found = close_subspaces(WRONG, JUDGE, X)
    assert clustering_error(LABELS, found.labels) < 0.1
    assert found.certainty > 0.8
    assert "dimension 3" in found.source


def test_annealing_must_be_clearly_better(one_dimension):
    assert close_subspaces(LABELS, JUDGE, X) is None


def test_annealing_is_tried_only_where_nothing_separates(one_dimension):
    unclear = [member(WRONG, 0.2), member(WRONG, 0.1, "neighbours")]
    found = decide(unclear, JUDGE, X, close=True)
    assert "annealed" in found.source
    assert "annealed" not in decide(unclear, JUDGE, X, close=False).source
    clear = [member(WRONG, 0.9), member(WRONG, 0.1, "neighbours")]
    assert "annealed" not in decide(clear, JUDGE, X, close=True).source


def test_a_member_with_clearly_lower_residuals_wins_where_nothing_separates():
    members = [member(WRONG, 0.2), member(LABELS, 0.1, "neighbours")]
    labels, source = by_graphs(members, JUDGE, 3)
    assert clustering_error(LABELS, labels) == 0
    assert source == "the graph 'neighbours 0.1'"


def test_only_the_subspace_graphs_may_overrule_a_clear_consensus():
    members = [member(LABELS, 0.2), *[member(WRONG, 0.5, "neighbours")] * 3]
    labels, source = by_graphs(members, JUDGE, 3)
    assert clustering_error(LABELS, labels) == 0
    assert source == "the consensus of the subspace graphs"
    members = [member(WRONG, 0.5), *[member(LABELS, 0.2, "neighbours")] * 3]
    assert by_graphs(members, JUDGE, 3)[1] == "the consensus of all graphs"


def test_certainty_is_agreement_times_the_largest_gap():
    members = [member(LABELS, 0.8), member(LABELS, 0.4, "neighbours")]
    found = decide(members, JUDGE, X, close=True)
    assert found.certainty == pytest.approx(0.8)


def test_contradicted_labels_are_not_certain(monkeypatch):
    # Nets of no weight win against graphs that separate clearly.
    nets = [member(LABELS, 0.01, "elastic net")] * 5
    monkeypatch.setattr(decision, "angles_suffice", lambda *others: False)
    monkeypatch.setattr(decision, "elastic_choice", lambda *others: (nets, LABELS, "the nets"))
    for others, expected in (([], 0.0), ([member(LABELS, 0.3)], 0.09 / 0.58)):
        found = decide([member(WRONG, 0.7), *others], JUDGE, X, close=True)
        assert found.source == "the nets"
        assert found.contradiction == pytest.approx(1 - expected, abs=2e-3)
        assert found.certainty == pytest.approx(expected, abs=2e-3)
    equal = [member(WRONG, 0.7), member(LABELS, 0.7)]
    found = decide(equal, JUDGE, X, close=True)
    assert found.contradiction == pytest.approx(0.5, abs=0.01)
    assert found.certainty > 0.5


def test_graphs_that_do_not_separate_contradict_nothing(one_dimension):
    unclear = [member(WRONG, 0.2), member(WRONG, 0.1, "neighbours")]
    found = decide(unclear, JUDGE, X, close=True)
    assert found.contradiction == 0
    assert found.certainty > 0.8


def test_the_dimension_is_that_of_the_clearest_subspace_graph():
    members = [member(LABELS, 0.3, rank=4), member(LABELS, 0.7, rank=12), member(LABELS, 0.5)]
    assert best_rung(members, 2) == 6
    assert best_rung([member(LABELS, 0.9, "neighbours")], 2) == 1
