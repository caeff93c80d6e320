"""Whole solver runs in every namespace, and on a device that is not the CPU, equal NumPy's."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import KernelCenterer

import polyspan.solvers.member_sums as sums
from polyspan.arrays import is_host, to_numpy
from polyspan.geometry import draw_bases, is_orthonormal
from polyspan.geometry.bases import cholesky_orthonormal
from polyspan.kernels import Kernel
from polyspan.kernels.low_rank import NystromMap
from polyspan.kernels.preimages import Expansion, combination_weights, polish, preimages
from polyspan.solvers.annealing import anneal
from polyspan.solvers.kernel import KernelRules, gkiop, learn_kernel_subspaces, refill_empty
from polyspan.solvers.kernel_leave_one_out import leave_one_out_labels
from polyspan.solvers.masked_preparation import Holes, observed_mean, prepare_masked
from polyspan.solvers.micusal import Rules, learn_subspaces
from polyspan.solvers.preparation import prepare
from polyspan.solvers.projections import energies

RNG = np.random.RandomState(0)
X = RNG.standard_normal((50, 12)) * np.linspace(2, 0.5, 12)
BASES = draw_bases((2, 3, 12, 2), RNG)
LABELS = RNG.randint(3, size=50)


@pytest.fixture
def where(xp, accelerator):
    return SimpleNamespace(xp=xp, accelerator=accelerator)


def both(where):
    return where.xp, where.accelerator


def test_which_arrays_are_on_the_host(where):
    assert is_host(where.xp.asarray(X))
    assert not is_host(where.accelerator.asarray(X))
    assert np.array_equal(to_numpy(where.accelerator.asarray(X)), X)


def test_members_are_summed_three_ways(where):
    projections = RNG.standard_normal((2, 3, 2, 50))
    labels = RNG.randint(2, size=(2, 50))  # the third subspace has no member
    coefficients, products = np.zeros((2, 3, 2)), np.zeros((2, 3, 12, 2))
    for r in range(2):
        for p in range(3):
            own = labels[r] == p
            coefficients[r, p] = projections[r, p][:, own].sum(axis=1)
            products[r, p] = (projections[r, p][:, own] @ X[own]).T
    ways = (sums.gathered_sums, sums.sorted_sums, sums.member_sums)
    for place in both(where):
        for way in ways:
            found = way(*(place.asarray(a) for a in (X, projections, labels)), 3)
            assert_allclose(to_numpy(found[0]), coefficients, atol=1e-12)
            assert_allclose(to_numpy(found[1]), products, atol=1e-12)


def test_many_columns_are_sorted_and_few_masked(accelerator, monkeypatch):
    called = []
    monkeypatch.setattr(sums, "sorted_sums", lambda *a: called.append("sorted"))
    monkeypatch.setattr(sums, "weighted_sums", lambda *a: called.append("masked"))
    for s in (1, 60):
        shapes = accelerator.asarray(X), accelerator.asarray(np.zeros((1, 3, s, 50)))
        sums.member_sums(*shapes, accelerator.asarray(LABELS[None, :]), 3)
    assert called == ["masked", "sorted"]


def test_energies(where):
    projections = RNG.standard_normal((2, 3, 4, 7))
    for place in both(where):
        found = to_numpy(energies(place.asarray(projections)))
        assert_allclose(found, np.sum(projections**2, axis=2), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_orthonormal_by_cholesky(where, dtype):
    a = RNG.standard_normal((2, 4, 30, 5)) * np.array([1e4, 1.0, 1e-2, 1.0, 3.0])
    a[0, 1] = 0.0
    a[0, 2, :, 3] = a[0, 2, :, 0]  # dependent
    a[1, 0] *= 1e-150  # its squares have no digits
    a[1, 1] *= 1e140
    if dtype == "float32":
        a = np.clip(a, -1e15, 1e15)
    a = a.astype(dtype)
    for place in both(where):
        q = to_numpy(cholesky_orthonormal(place.asarray(a)))
        assert q.dtype == dtype
        assert is_orthonormal(q, 1e-13 if dtype == "float64" else 1e-5)
        for i, j in [(0, 0), (0, 3), (1, 2), (1, 3)]:
            inside = q[i, j] @ (q[i, j].T @ a[i, j])
            assert_allclose(inside, a[i, j], atol=(1e-9 if dtype == "float64" else 1e-1))


@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("loo", [False, True])
def test_linear_runs(where, solver, affine, loo):
    rules = Rules(solver, max_iter=6, leave_one_out=loo)
    bases = BASES
    if affine:
        bases = np.concatenate([BASES, RNG.standard_normal((2, 3, 12, 1))], axis=3)

    def run(place):
        problem = prepare(place.asarray(X), 3.0, center=True, affine=affine).problem
        start, free = anneal(problem, place.asarray(bases), [0.5, 0.2], leave_one_out=loo)
        return learn_subspaces(problem, start, rules), to_numpy(free)

    expected, free = run(np)
    for place in both(where):
        found, other = run(place)
        assert_allclose(other, free, rtol=1e-9)
        for a, b in zip(found, expected, strict=True):
            assert_allclose(a.history, b.history, rtol=1e-8)
            assert np.array_equal(to_numpy(a.labels), b.labels)


@pytest.mark.parametrize("shared", [False, True])
def test_runs_with_holes(where, shared):
    patterns = RNG.uniform(size=(3, 12)) < 0.3
    patterns[0] = False  # so that every feature is observed somewhere
    holes = patterns[LABELS] if shared else RNG.uniform(size=X.shape) < 0.3
    incomplete = np.where(holes, np.nan, X)

    def run(place):
        data = place.asarray(incomplete)
        where_ = Holes.of(data)
        mean = observed_mean(data, where_.missing)
        problem = prepare_masked(data, where_, mean, 3.0, prior=0.02).problem
        start, _ = anneal(problem, place.asarray(BASES), [0.5, 0.2])
        return learn_subspaces(problem, start, Rules(max_iter=6))

    expected = run(np)
    for place in both(where):
        for a, b in zip(run(place), expected, strict=True):
            assert_allclose(a.history, b.history, rtol=1e-9)
            assert np.array_equal(to_numpy(a.labels), b.labels)


@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_kernel_runs(where, name):
    kernel = Kernel(name, gamma=0.1)
    G = KernelCenterer().fit_transform(kernel(X))
    rules = KernelRules(3, 5.0, max_iter=4, floor=1e-12)
    empty = np.minimum(LABELS, 1)

    def run(place):
        moved = place.asarray(G)
        assert_allclose(to_numpy(kernel(place.asarray(X))), kernel(X), atol=1e-12)
        assert_allclose(
            to_numpy(kernel(place.asarray(X), place.asarray(X[:9]))), kernel(X, X[:9]), atol=1e-12
        )
        assert_allclose(to_numpy(kernel.diagonal(place.asarray(X))), kernel.diagonal(X))
        starts = (gkiop(moved, 3, 3, np.array([0, 1, 2])), LABELS, empty)
        runs = [learn_kernel_subspaces(moved, start, 3, rules) for start in starts]
        runs[2] = refill_empty(moved, runs[2], 3, rules)
        loo = leave_one_out_labels(place.asarray(X), LABELS, 3, 2)
        return runs, to_numpy(loo.labels), loo.criterion

    expected, labels, criterion = run(np)
    for place in both(where):
        found, other, value = run(place)
        assert np.array_equal(other, labels)
        assert_allclose(value, criterion, rtol=1e-8)
        for a, b in zip(found, expected, strict=True):
            assert_allclose(a.history, b.history, rtol=1e-8)
            assert np.array_equal(to_numpy(a.labels), b.labels)


def test_preimages_and_low_rank(where):
    weights = RNG.uniform(size=(7, 50)) / 25
    for kernel in (Kernel("rbf", gamma=0.1), Kernel("poly", gamma=0.1, degree=3)):

        def run(place, kernel=kernel):
            Y, chi = place.asarray(X), place.asarray(weights)
            G = kernel(Y)
            point = Expansion.of(chi, G)
            e = combination_weights(kernel, point, place.asarray(np.diag(to_numpy(G)).copy()))
            z = preimages(kernel, e, Y, place.asarray(X > -1))
            map_ = NystromMap.of(kernel, place.asarray(X[:20]))
            Z = map_(Y)
            lost = to_numpy(map_.lost(Y, Z))
            return [to_numpy(a) for a in (z, polish(kernel, z, chi, Y), Z @ Z.mT, lost)]

        expected = run(np)
        for place in both(where):
            for a, b in zip(run(place), expected, strict=True):
                assert_allclose(a, b, rtol=1e-5, atol=1e-9)


def test_a_kernel_that_is_a_function_needs_numpy(accelerator):
    with pytest.raises(ValueError, match="needs NumPy arrays"):
        Kernel(lambda x, y: x @ y)(accelerator.asarray(X))
