"""EM over the likely components only, and the inverses that it needs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.data.missing import find_patterns
from polyspan.engine.small_systems import invert_together
from polyspan.mixture._solve import em
from polyspan.mixture._solve.em import expect_sparse, run_em, run_sparse_em
from polyspan.mixture._solve.gaussians import Gaussians, posterior_factors
from polyspan.mixture._solve.masked import MaskedSamples, gather_factors
from polyspan.mixture._solve.noise import NoiseRule, Shrinkage

L, M, S = 4, 9, 3


def make(seed=0, n=120, apart=1.0):
    rng = np.random.default_rng(seed)
    bases, _ = np.linalg.qr(rng.standard_normal((L, M, S)))
    means = apart * rng.standard_normal((L, M))
    gaussians = Gaussians(
        np.full(L, -np.log(L)), means, bases, rng.uniform(0.5, 2, (L, S)), np.full(L, 0.3)
    )
    values = means[rng.integers(0, L, n)] + rng.standard_normal((n, M))
    observed = rng.uniform(size=values.shape) > 0.3
    observed[:20] = observed[0]  # a mask that recurs, besides those of single rows
    patterns = find_patterns(np.where(observed, values, 0), observed)
    return MaskedSamples(patterns, True, NoiseRule("shared", 1e-4)), gaussians


def fields(sums):
    return vars(sums).values()


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-3)])
@pytest.mark.parametrize("s", [1, 2, 12])
def test_inverses_and_determinants(dtype, tolerance, s):
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((40, s, s + 2))
    matrices = (roots @ np.swapaxes(roots, 1, 2) + np.eye(s)).astype(dtype)
    inverses, logs = invert_together(np.moveaxis(matrices, 0, 2).copy())
    assert inverses.dtype == dtype
    expected = np.linalg.inv(matrices.astype(np.float64))
    assert_allclose(np.moveaxis(inverses, 2, 0), expected, rtol=tolerance, atol=tolerance)
    assert_allclose(logs, np.linalg.slogdet(matrices)[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("start", ["all, unsaid", "all"])
def test_with_all_components_it_is_the_whole_expectation(monkeypatch, start):
    monkeypatch.setattr(em, "LEAST_RESPONSIBILITY", 0.0)
    samples, gaussians = make()
    n = len(samples.patterns.values)
    likely = None if start == "all, unsaid" else np.ones((n, L), dtype=bool)
    found, kept = expect_sparse(samples, gaussians, likely)
    assert kept.all()
    for ours, whole in zip(fields(found), fields(samples.expect(gaussians)[1]), strict=True):
        assert_allclose(ours, whole, rtol=1e-8, atol=1e-8)


def test_small_responsibilities_are_left_out_for_good():
    samples, gaussians = make()
    first, kept = expect_sparse(samples, gaussians, None)
    again, still = expect_sparse(samples, gaussians, kept)
    assert kept.any(axis=1).all()
    assert 1.0 < kept.sum(axis=1).mean() < 3.0
    assert not (still & ~kept).any()
    assert_allclose(first.counts.sum(), len(kept))
    # Twice the same Gaussians: what was kept says what the sums are.
    for ours, theirs in zip(fields(again), fields(first), strict=True):
        assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_the_sums_are_those_of_the_responsibilities_that_were_kept():
    samples, gaussians = make(1)
    found, kept = expect_sparse(samples, gaussians, None)
    total = None
    for group in samples.patterns.groups(L, S):
        joint, _, z = posterior_factors(group, gaussians)
        responsibilities = np.exp(joint - joint.max(axis=1, keepdims=True)) * kept[group.rows]
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
        part = gather_factors(group, gaussians, responsibilities, z)
        total = part if total is None else total + part
    for ours, theirs in zip(fields(found), fields(total), strict=True):
        assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_groups_far_apart_are_learned_as_by_em():
    samples, start = make(2, apart=30.0)
    shrinkage = Shrinkage(Gaussians(*(a[:1] for a in vars(start).values())), 3.0)
    whole = run_em(samples, start, shrinkage, max_iter=5, tol=0.0).gaussians
    found, likely = run_sparse_em(samples, start, shrinkage, n_iter=5)
    assert (likely.sum(axis=1) == 1).all()
    assert_allclose(found.means, whole.means, rtol=1e-9, atol=1e-9)
    assert_allclose(found.variances, whole.variances, rtol=1e-8)


def test_chunks_change_nothing(monkeypatch):
    samples, start = make(3, n=300)
    shrinkage = Shrinkage(Gaussians(*(a[:1] for a in vars(start).values())), 3.0)
    whole, _ = run_sparse_em(samples, start, shrinkage, n_iter=3)
    monkeypatch.setattr("polyspan.data.missing.CHUNK_BYTES", 4000)
    assert len(list(samples.patterns.groups(L, S))) > 10
    parts, _ = run_sparse_em(samples, start, shrinkage, n_iter=3)
    assert_allclose(parts.means, whole.means, rtol=1e-9, atol=1e-9)
