"""Kernel subspaces: every quantity equals the explicit one, F3 never rises inside the update."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.preprocessing import KernelCenterer

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import literal_kernel
from polyspan.geometry import draw_bases, pairwise_subspace_distances
from polyspan.graphs.edges import neighbour_graph
from polyspan.kernel._solve.alternation import (
    KernelRules,
    alternate,
    fit_bases,
    objective,
    refill_empty,
)
from polyspan.kernel._solve.leave_one_out import (
    _residuals,
    explicit_coordinates,
    leave_one_out_labels,
)
from polyspan.kernel._solve.subspaces import (
    Factor,
    KernelSubspaces,
    gkiop,
    leading_directions,
    squared_distance,
    updated_directions,
)
from polyspan.kernel.functions import Kernel, feature_distances
from polyspan.kernel.options import spectral_labels
from polyspan.linear._solve.shape import ObjectiveWeights


def centred(G):
    return KernelCenterer().fit_transform(G)


def explicit(name, X):
    """Return the features of a kernel whose feature space is small."""
    if name == "linear":
        return Kernel("linear"), X
    n = len(X)
    ones = np.ones((n, 1))
    wide = np.concatenate([X, ones], axis=1)  # (⟨x, y⟩ + 1)²: products of two entries of (x, 1)
    features = np.einsum("ni,nj->nij", wide, wide).reshape(n, -1)
    return Kernel("poly", gamma=1, coef0=1, degree=2), features


@pytest.mark.parametrize("name", ["linear", "poly"])
def test_every_quantity_equals_the_explicit_one(name):
    X = np.random.RandomState(0).standard_normal((40, 6))
    kernel, phi = explicit(name, X)
    G = centred(kernel(X))
    phi = phi - phi.mean(axis=0)
    assert_allclose(G, phi @ phi.T, atol=1e-10)
    labels = np.random.RandomState(1).randint(3, size=40)
    subspaces, _ = fit_bases(G, labels, KernelRules(3, 2, 3.0))
    D = np.stack([phi[c].T @ E for c, E in zip(subspaces.members, subspaces.coefs, strict=True)])
    for basis in D:
        assert_allclose(basis.T @ basis, np.eye(2), atol=1e-10)
    energies = np.stack([np.sum((phi @ basis) ** 2, axis=1) for basis in D], axis=1)
    assert_allclose(subspaces.energies(G), energies, atol=1e-9)
    assert_allclose(subspaces.distances(G), pairwise_subspace_distances(D), atol=1e-7)
    between = G[np.ix_(subspaces.members[0], subspaces.members[1])]
    squared = squared_distance(subspaces.coefs[0], between, subspaces.coefs[1])
    assert_allclose(squared, 2 - np.sum((D[0].T @ D[1]) ** 2), atol=1e-10)
    residual = np.sum(phi**2) - energies[np.arange(40), labels].sum()
    f3 = np.sum(pairwise_subspace_distances(D) ** 2) + 3.0 * residual
    assert_allclose(objective(G, subspaces, labels, 3.0), f3, rtol=1e-9)
    assert_allclose(objective(G, subspaces, labels, np.inf), residual, rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["rbf", "poly", "linear"]),
    st.integers(1, 4),
    st.integers(1, 5),
    st.floats(0.01, 300),
    st.integers(0, 10**6),
)
def test_f3_never_rises_inside_the_update_and_bases_stay_orthonormal(name, L, s, lam, seed):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((30, 4))
    G = centred(Kernel(name)(X))
    labels = rng.randint(L, size=30)
    subspaces, history = fit_bases(G, labels, KernelRules(L, s, lam, update_tol=0.0))
    # Where the fit is exact F3 is rounding: of the closeness L²s, and of the data.
    rounding = 1e-10 * (L * L * s + lam * np.trace(G))
    assert (np.diff(history) <= rounding).all()
    for c, E in zip(subspaces.members, subspaces.coefs, strict=True):
        gram = E.T @ G[np.ix_(c, c)] @ E
        assert_allclose(gram, np.eye(E.shape[1]), atol=1e-8)
    assert_allclose(history[-1], objective(G, subspaces, labels, lam), rtol=1e-7, atol=rounding)


@pytest.mark.parametrize("n", [12, 90])
def test_update_is_the_generalised_eigenproblem(n):
    """Dense and by products: the span of the leading eigenvectors of A b = ζ G b."""
    rng = np.random.RandomState(2)
    G = centred(Kernel("rbf", gamma=0.3)(rng.standard_normal((2 * n, 5))))
    own, between = G[:n, :n], G[:n, n:]
    other = leading_directions(Factor.of(G[n:, n:]), 4)
    E = Factor.of(G[n:, n:]).coefficients(other)
    lam = 3.0
    A = lam / 2 * own @ own + between @ E @ E.T @ between.T
    _, vectors = scipy.linalg.eigh(A, own)
    expected = vectors[:, ::-1][:, :4]
    factor = Factor.of(own)
    start = leading_directions(factor, 4)
    U = updated_directions(
        factor, [factor.whiten(between @ E)], ObjectiveWeights(2 / lam, 1.0), start
    )
    found = factor.coefficients(U)
    assert_allclose(np.trace(found.T @ A @ found), np.trace(expected.T @ A @ expected), rtol=1e-9)


def test_labels_and_objectives_equal_the_literal_algorithm():
    rng = np.random.RandomState(3)
    X = rng.standard_normal((80, 6))
    G = centred(Kernel("rbf", gamma=0.2)(X))
    for seeds in ([0, 1], [5, 40]):
        labels, history = literal_kernel.mckusal(literal_kernel.centred(G), seeds, 2, 6, 20.0)
        found = alternate(G, gkiop(G, 2, 6, np.array(seeds)), KernelRules(2, 6, 20.0))
        assert np.array_equal(found.labels, labels)
        assert_allclose(found.history, history, rtol=1e-9)


def test_gkiop_gathers_greedily():
    G = centred(Kernel("rbf", gamma=0.2)(np.random.RandomState(4).standard_normal((20, 3))))
    found = gkiop(G, 2, 5, np.array([3, 7]))
    members, _ = literal_kernel.gkiop(G, 2, 5, [3, 7])
    assert [c.tolist() for c in found.members] == [c.tolist() for c in members]
    assert not set(found.members[0]) & set(found.members[1])
    # A seed that an earlier subspace has taken is replaced by the first sample left.
    taken = gkiop(G, 2, 5, np.array([3, int(found.members[0][1])]))
    left = sorted(set(range(20)) - set(taken.members[0].tolist()))
    assert taken.members[1][0] == left[0]


def test_singular_clusters_keep_what_they_span():
    """Identical samples, and a linear kernel with more members than features."""
    X = np.repeat(np.random.RandomState(5).standard_normal((4, 3)), 6, axis=0)
    G = centred(Kernel("linear")(X))
    labels = np.arange(24) % 2
    subspaces, history = fit_bases(G, labels, KernelRules(2, 5, 4.0))
    assert subspaces.dimensions.tolist() == [3, 3]
    assert np.isfinite(history).all()
    for c, E in zip(subspaces.members, subspaces.coefs, strict=True):
        assert np.isfinite(E).all()
        assert_allclose(E.T @ G[np.ix_(c, c)] @ E, np.eye(3), atol=1e-8)
    assert np.isfinite(subspaces.distances(G)).all()


def two_lines(seed=0, n=30):
    rng = np.random.RandomState(seed)
    bases = draw_bases((2, 8, 1), rng)
    X = np.concatenate([rng.standard_normal((n, 1)) @ basis.T for basis in bases])
    return X + 0.01 * rng.standard_normal(X.shape), np.repeat([0, 1], n)


def test_an_empty_cluster_is_refilled_where_that_helps():
    X, truth = two_lines()
    G = Kernel("linear")(X)
    rules = KernelRules(2, 1, 50.0)
    alone = alternate(G, np.zeros(60, dtype=int), rules)
    assert np.bincount(alone.labels, minlength=2)[1] == 0
    found = refill_empty(G, alone, rules)
    assert len(found.history) == found.n_iter + 2  # of two runs, each with its start
    assert found.objective < alone.objective
    assert min((found.labels == truth).mean(), (found.labels != truth).mean()) == 0
    assert (np.diff(found.history) <= 1e-9).all()
    # What does not help is not kept: one line in two subspaces is as good as it gets.
    line = Kernel("linear")(X[:30])
    single = alternate(line, np.zeros(30, dtype=int), KernelRules(2, 1, 1e-6))
    assert refill_empty(line, single, KernelRules(2, 1, 1e-6)).objective <= single.objective


def test_stopping_rules():
    X, _ = two_lines()
    G = Kernel("rbf", gamma=1.0)(X)
    start = gkiop(G, 2, 3, np.array([0, 1]))
    once = alternate(G, start, KernelRules(2, 3, 4.0, max_iter=1, tol=0.0))
    assert once.n_iter == 1
    settled = alternate(G, start, KernelRules(2, 3, 4.0, tol=0.0))
    assert settled.stopped == "converged"
    nearest = settled.subspaces.energies(G).argmax(axis=1)
    assert np.array_equal(nearest, settled.labels)
    asked = alternate(
        G, start, KernelRules(2, 3, 4.0), monitor=lambda start, i, value, subspaces: True
    )
    assert (asked.n_iter, asked.stopped) == (0, "callback")
    _, inner = fit_bases(
        G, settled.labels, KernelRules(2, 3, 4.0, max_update_iter=2, update_tol=0.0)
    )
    assert len(inner) <= 3


def test_leave_one_out_labels_where_plain_ones_fail():
    """Few samples for their dimension: leave-one-out repairs a start with a fifth wrong."""
    rng = np.random.RandomState(6)
    bases = draw_bases((2, 40, 4), rng)
    Z = np.concatenate([rng.standard_normal((20, 4)) @ basis.T for basis in bases])
    Z += 0.02 * rng.standard_normal(Z.shape)
    truth = np.repeat([0, 1], 20)
    start = truth.copy()
    start[::5] = 1 - start[::5]
    found = leave_one_out_labels(Z, start, 2, 4)
    wrong = min((found.labels != truth).mean(), (found.labels == truth).mean())
    assert wrong == 0
    assert np.isfinite(found.criterion)
    flat = leave_one_out_labels(np.zeros((6, 2)), np.arange(6) % 2, 2, 1)
    assert np.isfinite(flat.criterion)


def test_leave_one_out_repairs_labels_of_three_subspaces():
    rng = np.random.RandomState(7)
    bases = draw_bases((3, 40, 3), rng)
    Z = np.concatenate([rng.standard_normal((20, 3)) @ basis.T for basis in bases])
    Z += 0.02 * rng.standard_normal(Z.shape)
    truth = np.repeat([0, 1, 2], 20)
    Z += rng.standard_normal((3, 40))[truth]  # they are affine
    start = truth.copy()
    start[::5] = (start[::5] + 1) % 3
    found = leave_one_out_labels(Z, start, 3, 3)
    assert np.array_equal(found.labels, truth)
    assert found.settled


def test_coordinates_of_a_kernel_that_is_zero():
    assert np.array_equal(explicit_coordinates(np.zeros((4, 4)), 1.0), np.zeros((4, 1)))


def test_leave_one_out_counts_the_mean_of_an_affine_cluster():
    """A sample alone in its cluster is its mean: without it nothing is left, so 1-h is floored."""
    Z = np.array([[5.0, 5.0], [0.0, 0.1], [0.0, -0.1], [0.4, 0.0], [-0.4, 0.0]])
    weights = np.array([[1.0, 1e-12], *([[1e-12, 1.0]] * 4)])
    residuals, _ = _residuals(Z, weights, [None, None], 1)
    assert residuals[0, 0] < 1e-12  # it is its own mean
    spread = Z[1:] - Z[1:].mean(axis=0)
    values, vectors = np.linalg.eigh(spread.T @ spread)
    inside = (spread @ vectors[:, -1:]) ** 2
    h = inside[:, 0] / values[-1] + 0.25
    r = np.sum(spread**2, axis=1) - inside[:, 0]
    assert_allclose(residuals[1:, 1], r / np.clip(1 - h, 0.05, 1) ** 2, atol=1e-7)


def test_the_graph_has_no_unit_of_length():
    rng = np.random.RandomState(8)
    X = np.concatenate([np.zeros((15, 2)), rng.standard_normal((45, 2))])
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    expected = neighbour_graph(distances, 10).toarray()
    for scale in (1e-3, 1e3):
        assert_allclose(neighbour_graph(scale * distances, 10).toarray(), expected, rtol=1e-9)


def test_tol_ends_the_outer_loop():
    X, _ = two_lines()
    G = Kernel("rbf", gamma=1.0)(X)
    start = gkiop(G, 2, 3, np.array([0, 30]))
    full = alternate(G, start, KernelRules(2, 3, 4.0, tol=0.0))
    early = alternate(G, start, KernelRules(2, 3, 4.0, tol=100.0))
    assert early.n_iter == 1 < full.n_iter


def test_spectral_start_finds_what_a_graph_shows():
    rng = np.random.RandomState(7)
    angle = rng.uniform(0, 2 * np.pi, 120)
    radius = np.repeat([1.0, 3.0], 60)
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    G = Kernel("rbf", gamma=1.0)(X)
    distances = feature_distances(G)
    assert_allclose(distances**2, 2 - 2 * G, atol=1e-12)
    labels = spectral_labels(distances, 2, 8, seed=0)
    assert len(set(labels[:60])) == len(set(labels[60:])) == 1
    assert labels[0] != labels[60]
    assert spectral_labels(distances, 1, 8, seed=0).tolist() == [0] * 120


def test_the_graph_treats_duplicates_as_neighbours():
    X = np.repeat(np.arange(4.0)[:, None], 3, axis=0)
    distances = np.abs(X - X.T)
    graph = neighbour_graph(distances, 2).toarray()
    assert_allclose(graph, graph.T)
    assert (graph.sum(axis=1) > 0).all()
    assert np.isfinite(graph).all()


def test_dimensions_of_an_empty_subspace():
    empty = KernelSubspaces([np.array([], dtype=int)], [np.empty((0, 0))])
    assert empty.dimensions.tolist() == [0]
    assert empty.energies(np.eye(3)).tolist() == [[0.0]] * 3


def test_the_lowest_iterate_of_a_kernel_run_is_returned():
    """New bases for new labels may be worse than those before: 4.0 was returned after 5e-15."""
    rises = 0
    for seed in range(40):
        rng = np.random.RandomState(seed)
        Z = rng.standard_normal((12, 5))
        G = Z @ Z.T
        found = alternate(G, rng.randint(3, size=12), KernelRules(3, 2, 0.05, tol=0.0))
        assert_allclose(found.objective, min(found.history), rtol=1e-9)
        labels = np.argmax(found.subspaces.energies(G), axis=1)
        assert np.array_equal(labels, found.labels)
        rises += found.history[-1] > found.objective * (1 + 1e-6)
    assert rises > 0  # some of these runs end above their lowest


@pytest.mark.parametrize("max_iter", [0, 1])
def test_every_update_is_followed_by_an_assignment(max_iter):
    """No update is made whose bases no sample would be assigned to."""
    X = np.random.RandomState(0).standard_normal((60, 6))
    G = centred(Kernel("poly", gamma=1, coef0=1, degree=2)(X))
    labels = np.random.RandomState(1).randint(3, size=60)
    found = alternate(G, labels, KernelRules(3, 2, 3.0, max_iter=max_iter, tol=0.0))
    assert (found.stopped, found.n_iter) == ("max_iter", max_iter)
    assert len(found.history) == len(found.update_histories) == max_iter + 1


@pytest.mark.parametrize("exponent", [-4, -6, -8, -14])
def test_a_factor_leaves_out_what_is_rounding(exponent):
    """Directions whose energy is below 1e-10 of the largest do not count, all others do."""
    V = scipy.linalg.qr(np.random.RandomState(0).standard_normal((5, 5)))[0]
    G = V * np.array([1.0, 0.5, 0.2, 0.1, 10.0**exponent]) @ V.T
    factor = Factor.of((G + G.T) / 2)
    assert factor.rank == (5 if exponent >= -8 else 4)
    assert_allclose(factor.R @ factor.R.T, G, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-16, 1.0, 1e16])
@pytest.mark.parametrize("pivot", [1e-4, 1e-7])
def test_a_factor_is_judged_by_the_squares_of_its_pivots(pivot, unit):
    factor = Factor.of(unit * np.diag([1.0, pivot**2]))
    assert factor.rank == (2 if pivot == 1e-4 else 1)
