"""Whole solver runs in every namespace, and on a device that is not the CPU, equal NumPy's."""

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose

import polyspan.linear._solve.sums as sums
from polyspan.base.arrays import is_host, to_numpy
from polyspan.geometry import draw_bases
from polyspan.linear._solve.alternation import Rules, alternate
from polyspan.linear._solve.annealing import anneal
from polyspan.linear._solve.observation import energies
from polyspan.linear._solve.problem import prepare
from support import require_torch

RNG = np.random.RandomState(0)
X = RNG.standard_normal((50, 12)) * np.linspace(2, 0.5, 12)
BASES = draw_bases((2, 3, 12, 2), RNG)
LABELS = RNG.randint(3, size=50)


@pytest.fixture(params=["numpy", "strict", "torch", "accelerator"])
def place(request, accelerator):
    """Return where arrays are made: a namespace, or a device that is not the CPU."""
    if request.param == "torch":
        return require_torch()
    return {"numpy": np, "strict": array_api_strict, "accelerator": accelerator}[request.param]


def test_which_arrays_are_on_the_host(place, accelerator):
    moved = place.asarray(X)
    assert is_host(moved) == (place is not accelerator)
    assert np.array_equal(to_numpy(moved), X)


def test_members_are_summed_three_ways(place):
    projections = RNG.standard_normal((2, 3, 2, 50))
    labels = RNG.randint(2, size=(2, 50))  # the third subspace has no member
    coefficients, products = np.zeros((2, 3, 2)), np.zeros((2, 3, 12, 2))
    for r in range(2):
        for p in range(3):
            own = labels[r] == p
            coefficients[r, p] = projections[r, p][:, own].sum(axis=1)
            products[r, p] = (projections[r, p][:, own] @ X[own]).T
    ways = (sums.gathered_sums, sums.sorted_sums, sums.member_sums)
    for way in ways:
        found = way(*(place.asarray(a) for a in (X, projections, labels)))
        assert_allclose(to_numpy(found[0]), coefficients, atol=1e-12)
        assert_allclose(to_numpy(found[1]), products, atol=1e-12)


def test_many_columns_are_sorted_and_few_masked(accelerator, monkeypatch):
    called = []
    monkeypatch.setattr(sums, "sorted_sums", lambda *a: called.append("sorted"))
    monkeypatch.setattr(sums, "weighted_sums", lambda *a: called.append("masked"))
    for s in (1, 60):
        shapes = accelerator.asarray(X), accelerator.asarray(np.zeros((1, 3, s, 50)))
        sums.member_sums(*shapes, accelerator.asarray(LABELS[None, :]))
    assert called == ["masked", "sorted"]


def test_energies(place):
    projections = RNG.standard_normal((2, 3, 4, 7))
    found = to_numpy(energies(place.asarray(projections)))
    assert_allclose(found, np.sum(projections**2, axis=2), rtol=1e-13)


@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("loo", [False, True])
def test_linear_runs(place, solver, affine, loo):
    rules = Rules(solver, max_iter=6, leave_one_out=loo)
    bases = BASES
    if affine:
        bases = np.concatenate([BASES, RNG.standard_normal((2, 3, 12, 1))], axis=3)

    def run(there):
        problem, _ = prepare(there.asarray(X), 3.0, center=True, affine=affine)
        start, free = anneal(problem, there.asarray(bases), [0.5, 0.2], leave_one_out=loo)
        return alternate(problem, start, rules), to_numpy(free)

    expected, free = run(np)
    found, other = run(place)
    assert_allclose(other, free, rtol=1e-9)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a.history, b.history, rtol=1e-8)
        assert np.array_equal(to_numpy(a.labels), b.labels)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("loo", [False, True])
def test_runs_with_holes(place, shared, solver, affine, loo):
    patterns = RNG.uniform(size=(3, 12)) < 0.3
    patterns[0] = False  # so that every feature is observed somewhere
    holes = patterns[LABELS] if shared else RNG.uniform(size=X.shape) < 0.3
    incomplete = np.where(holes, np.nan, X)
    rules = Rules(solver, max_iter=6, leave_one_out=loo)
    frames = BASES
    if affine:
        frames = np.concatenate([BASES, RNG.standard_normal((2, 3, 12, 1))], axis=3)

    def run(there):
        problem, _ = prepare(
            there.asarray(incomplete), 3.0, center=True, affine=affine, holes=True, prior=0.02
        )
        start, free = anneal(problem, there.asarray(frames), [0.5, 0.2], leave_one_out=loo)
        return alternate(problem, start, rules), to_numpy(free)

    expected, free = run(np)
    found, other = run(place)
    assert_allclose(other, free, rtol=1e-9)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a.history, b.history, rtol=1e-9)
        assert np.array_equal(to_numpy(a.labels), b.labels)
