"""EM on low-rank Gaussians: the likelihood never falls; equal to the dense formulas."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from polyspan.base.arrays import device, to_numpy
from polyspan.data.missing import find_patterns
from polyspan.mixture._solve.complete import CompleteSamples, gather_moments, restore_empty
from polyspan.mixture._solve.em import run_em
from polyspan.mixture._solve.gaussians import (
    Gaussians,
    log_densities,
    posterior_factors,
    soft_assign,
)
from polyspan.mixture._solve.masked import MaskedSamples
from polyspan.mixture._solve.noise import NoiseRule, Shrinkage, fit_low_rank
from polyspan.mixture.starts import as_samples


def draw_gaussians(rng, L=3, m=6, s=2):
    bases, _ = np.linalg.qr(rng.standard_normal((L, m, s)))
    weights = rng.uniform(0.5, 1.5, L)
    return Gaussians(
        np.log(weights / weights.sum()),
        rng.standard_normal((L, m)),
        bases,
        np.sort(rng.uniform(0.5, 4, (L, s)))[:, ::-1].copy(),
        rng.uniform(0.1, 0.5, L),
    )


def covariance(g, p):
    C = (g.bases[p] * g.variances[p]) @ g.bases[p].T
    return C + g.noise[p] * np.eye(len(C))


def moved(gaussians, xp):
    return Gaussians(*(xp.asarray(a) for a in vars(gaussians).values()))


@pytest.mark.parametrize("holes", [0.0, 0.4])
@pytest.mark.parametrize("s", [0, 2, 5])
def test_densities_equal_the_dense_ones(holes, s):
    rng = np.random.default_rng(0)
    g = draw_gaussians(rng, s=s)
    X = rng.standard_normal((40, 6)) * 2
    observed = rng.uniform(size=X.shape) >= holes
    observed[:10] = observed[0]  # one mask that recurs
    patterns = find_patterns(np.where(observed, X, 0), observed)
    assert len(patterns.recurring) == 1
    joint = np.empty((40, 3))
    for group in patterns.groups(3, s):
        joint[group.rows] = posterior_factors(group, g)[0]
    for i, (x, o) in enumerate(zip(X, observed, strict=True)):
        for p in range(3):
            C = covariance(g, p)[np.ix_(o, o)]
            dense = multivariate_normal.logpdf(x[o], g.means[p][o], C) if o.any() else 0.0
            assert_allclose(joint[i, p], g.log_weights[p] + dense)
    if not holes:
        assert_allclose(log_densities(X, g)[0], joint)


def bare_history(samples, current, shrinkage, n_steps=15):
    """Return the values of bare steps: `run_em` would not take one that falls."""
    history = []
    for _ in range(n_steps):
        value, sums = samples.expect(current)
        history.append(value - shrinkage.penalty(current))
        current = samples.maximise(current, sums, shrinkage)
    return history


@settings(max_examples=100)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.5, 20.0]),
    st.booleans(),
    st.sampled_from(["subspace", "shared", "fixed"]),
    st.sampled_from([None, 0.2, 0.7]),
)
@example(0, 2, 0, 0.0, False, "subspace", 0.2)
def test_the_penalised_likelihood_never_falls(seed, L, s, closeness, affine, kind, holes):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 5))
    observed = None if holes is None else rng.uniform(size=X.shape) >= holes
    if observed is not None:
        X = np.where(observed, X, 0)
    samples = as_samples(X, observed, affine=affine, rule=NoiseRule(kind, 1e-3, 0.3))
    start = draw_gaussians(rng, L, 5, s)
    if not affine:
        start = Gaussians(start.log_weights, 0 * start.means, *list(vars(start).values())[2:])
    shrinkage = Shrinkage(draw_gaussians(rng, 1, 5, 2), closeness)
    # The start need not obey the rule of the noise: what counts is what EM makes of it.
    start = samples.maximise(start, samples.expect(start)[1], shrinkage)
    history = bare_history(samples, start, shrinkage)
    assert np.diff(history).min() >= -1e-8 * (1 + abs(history[-1]))


@pytest.mark.parametrize("kind", ["subspace", "shared"])
@pytest.mark.parametrize("closeness", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("holes", [False, True])
def test_it_does_not_fall_where_a_component_sees_no_feature_or_no_sample(closeness, kind, holes):
    rng = np.random.default_rng(0)
    side = np.where(np.arange(60) < 30, 20.0, -20.0)[:, None]
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 5)) + side
    X += 0.1 * rng.standard_normal(X.shape)
    observed = rng.uniform(size=X.shape) >= 0.1 if holes else None
    if observed is not None:
        observed[30:, 4] = False  # the second component never sees the last feature
        X = np.where(observed, X, 0)
    samples = as_samples(X, observed, affine=True, rule=NoiseRule(kind, 1e-3))
    drawn = draw_gaussians(rng, 3, 5, 2)
    means = np.array([20.0, -20.0, 1e3])[:, None] * np.ones((3, 5))  # the third has no sample
    start = Gaussians(drawn.log_weights, means, *list(vars(drawn).values())[2:])
    shrinkage = Shrinkage(draw_gaussians(rng, 1, 5, 2), closeness)
    history = bare_history(
        samples, samples.maximise(start, samples.expect(start)[1], shrinkage), shrinkage
    )
    assert np.diff(history).min() >= -1e-8 * (1 + abs(history[-1]))


def test_a_step_that_falls_is_not_taken():
    class Falling:
        n_entries = 10

        def expect(self, gaussians, beta=1.0):
            return -float(gaussians.noise[0]), None

        def maximise(self, gaussians, sums, shrinkage):
            return gaussians.with_noise(1.0)

    start = draw_gaussians(np.random.default_rng(0), 1, 3, 1)
    found = run_em(Falling(), start, Shrinkage(start, 0.0), max_iter=5, tol=1e-3)
    assert found.gaussians is start
    assert found.history == (found.value, found.value)
    assert found.stopped == "converged"


def test_a_monitor_ends_the_run():
    class Rising:
        n_entries = 10

        def __init__(self):
            self.value = 0.0

        def expect(self, gaussians, beta=1.0):
            self.value += 100.0
            return self.value, None

        def maximise(self, gaussians, sums, shrinkage):
            return gaussians

    start = draw_gaussians(np.random.default_rng(0), 1, 3, 1)
    seen = []
    found = run_em(
        Rising(), start, Shrinkage(start, 0.0), max_iter=50, tol=1e-3,
        monitor=lambda *step: seen.append(step) or len(seen) == 3,
    )  # fmt: skip
    assert found.stopped == "callback"
    assert found.n_iter == len(seen) == 3
    assert found.history == (100.0, 200.0, 300.0, 400.0)
    assert [step[:2] for step in seen] == [(0, 0), (0, 1), (0, 2)]


def test_a_step_that_falls_by_rounding_is_taken():
    values = iter([-1.0, -1.0 - 4e-16, -0.5, -0.5])

    class Rounding:
        n_entries = 10

        def expect(self, gaussians, beta=1.0):
            return next(values), None

        def maximise(self, gaussians, sums, shrinkage):
            return gaussians.with_noise(1.0)

    start = draw_gaussians(np.random.default_rng(0), 1, 3, 1)
    # A gain below 0 must not end the run before the monitor was asked.
    seen = []
    found = run_em(
        Rounding(), start, Shrinkage(start, 0.0), max_iter=3, tol=-1.0,
        monitor=lambda *step: seen.append(step[2]),
    )  # fmt: skip
    assert found.gaussians is not start
    assert found.history == (-1.0, -1.0 - 4e-16, -0.5, -0.5)
    assert seen == list(found.history[1:])
    assert found.stopped == "max_iter"


@pytest.mark.parametrize("kind", ["subspace", "shared", "fixed"])
def test_the_exact_update_beats_its_neighbours(kind):
    rng = np.random.default_rng(1)
    M = np.stack([a @ a.T / 4 for a in rng.standard_normal((2, 5, 8))])
    counts = np.array([10.0, 25.0])
    bases, variances, noise = fit_low_rank(M, counts, 2, NoiseRule(kind, 1e-3, 0.7))

    def value(bases, variances, noise):
        g = Gaussians(np.zeros(2), np.zeros((2, 5)), bases, variances, noise)
        dense = [covariance(g, p) for p in range(2)]
        terms = [np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, S))
                 for C, S in zip(dense, M, strict=True)]  # fmt: skip
        return -0.5 * float(counts @ np.array(terms))

    best = value(bases, variances, noise)
    for _ in range(200):
        near, _ = np.linalg.qr(bases + 0.05 * rng.standard_normal(bases.shape))
        other = noise
        if kind != "fixed":
            other = noise * np.exp(0.1 * rng.standard_normal(1 if kind == "shared" else 2))
        longer = variances * np.exp(0.1 * rng.standard_normal(variances.shape))
        assert value(near, longer, other) <= best + 1e-9


def test_shared_noise_takes_in_directions_without_variance():
    M = np.stack([np.diag([5.0, 4.0, 0.1, 0.1]), np.diag([2.0, 1.9, 1.8, 1.7])])
    _, variances, noise = fit_low_rank(M, np.array([1.0, 1.0]), 2, NoiseRule("shared", 1e-6))
    expected = (0.1 + 0.1 + 1.8 + 1.7) / 4
    assert_allclose(noise, [expected, expected])
    assert_allclose(variances, [[5 - expected, 4 - expected], [2 - expected, 1.9 - expected]])
    M[1] = np.diag([0.3, 0.2, 0.1, 0.1])
    M[0] = np.diag([5.0, 4.0, 2.0, 2.0])
    _, variances, noise = fit_low_rank(M, np.array([1.0, 1.0]), 2, NoiseRule("shared", 1e-6))
    assert_allclose(noise, [(2 + 2 + 0.3 + 0.2 + 0.1 + 0.1) / 6] * 2)
    assert_allclose(variances[1], 0)


def test_the_penalty_is_a_divergence():
    rng = np.random.default_rng(2)
    pooled = draw_gaussians(rng, 1, 6, 3)
    assert_allclose(Shrinkage(pooled, 3.0).penalty(pooled), 0, atol=1e-12)
    g = draw_gaussians(rng)
    P = covariance(pooled, 0)
    expected = 0.0
    for p in range(3):
        C = covariance(g, p)
        logs = np.linalg.slogdet(C)[1] - np.linalg.slogdet(P)[1]
        expected += 0.5 * (np.trace(np.linalg.solve(C, P)) - 6 + logs)
    assert_allclose(Shrinkage(pooled, 3.0).penalty(g), 3 * expected)
    assert_allclose(Shrinkage(pooled, 3.0).dense(), P)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["subspace", "shared", "fixed"])
@pytest.mark.parametrize("affine", [True, False])
def test_every_namespace_gives_the_same(place, holes, kind, affine):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 6))
    observed = rng.uniform(size=X.shape) >= holes
    observed[:12] = observed[0]
    start, shrinkage = draw_gaussians(rng), Shrinkage(draw_gaussians(rng, 1, 6, 3), 2.0)
    rule = NoiseRule(kind, 1e-4, 0.5)
    values = np.where(observed, X, 0)

    def run(place, complete):
        if complete:
            samples = CompleteSamples(place.asarray(X), affine, rule)
        else:
            patterns = find_patterns(place.asarray(values), place.asarray(observed))
            samples = MaskedSamples(patterns, affine, rule)
        towards = Shrinkage(moved(shrinkage.pooled, place), 2.0)
        return run_em(samples, moved(start, place), towards, max_iter=5, tol=0.0)

    for complete in (False,) if holes else (False, True):
        expected = run(np, complete)
        found = run(place, complete)
        assert_allclose(found.history, expected.history, rtol=1e-10)
        variances = found.gaussians.variances
        assert device(variances) == device(place.asarray(X))
        assert_allclose(to_numpy(variances), expected.gaussians.variances, rtol=1e-6)


def test_which_rows_share_their_systems(xp, accelerator):
    rng = np.random.default_rng(5)
    observed = rng.uniform(size=(60, 9)) > 0.4
    observed[10:30], observed[40:52] = observed[10], True
    values = np.where(observed, 1.0, 0.0)
    shared = {xp: [list(range(10, 30)), list(range(40, 52))], accelerator: [list(range(40, 52))]}
    for place, expected in shared.items():
        patterns = find_patterns(place.asarray(values), place.asarray(observed))
        assert sorted(to_numpy(rows).tolist() for rows in patterns.recurring) == expected
        groups = list(patterns.groups(2, 3))
        rows = np.concatenate([to_numpy(group.rows) for group in groups])
        assert sorted(rows.tolist()) == list(range(60))
        for group in groups:
            together = any(to_numpy(group.rows)[0] in rows for rows in expected)
            assert group.shared == together
            theirs = np.broadcast_to(to_numpy(group.observed), group.values.shape)
            assert np.array_equal(theirs, observed[to_numpy(group.rows)])


def test_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 6))
    observed = rng.uniform(size=X.shape) > 0.3
    samples = MaskedSamples(
        find_patterns(np.where(observed, X, 0), observed), True, NoiseRule("subspace", 1e-4)
    )
    start, shrinkage = draw_gaussians(rng), Shrinkage(draw_gaussians(rng, 1, 6, 3), 2.0)
    whole = run_em(samples, start, shrinkage, max_iter=4, tol=0.0)
    monkeypatch.setattr("polyspan.data.missing.CHUNK_BYTES", 4000)
    assert len(list(samples.patterns.groups(3, 2))) > 10
    parts = run_em(samples, start, shrinkage, max_iter=4, tol=0.0)
    assert_allclose(parts.history, whole.history, rtol=1e-11)


def test_responsibilities_at_a_temperature():
    joint = np.array([[0.0, -2.0], [-1000.0, -1001.0]])
    responsibilities, logs = soft_assign(joint, 0.5)
    assert_allclose(responsibilities[0], np.exp([0, -1]) / np.exp([0, -1]).sum())
    assert_allclose(logs[0], 2 * np.log(1 + np.exp(-1)))
    assert np.isfinite(soft_assign(joint)[1]).all()


def test_a_component_without_samples_keeps_what_it_had():
    rng = np.random.default_rng(0)
    new, old = draw_gaussians(rng, 3, 6, 2), draw_gaussians(rng, 3, 6, 2)
    for kind in ("subspace", "shared"):
        found = restore_empty(new, old, np.array([5.0, 0.0, 2.0]), NoiseRule(kind, 1e-3))
        for name in ("means", "bases", "variances"):
            mixed = [getattr(source, name)[p] for p, source in enumerate((new, old, new))]
            assert np.array_equal(getattr(found, name), mixed)
        assert np.array_equal(found.log_weights, new.log_weights)


@pytest.mark.parametrize("weight", [0.0, 4.0])
def test_an_update_of_a_component_without_samples(weight):
    """It stays as it was, or takes the parameters towards which all components are shrunk."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    old, towards = draw_gaussians(rng, 2, 6, 2), draw_gaussians(rng, 1, 6, 2)
    samples = CompleteSamples(X, True, NoiseRule("subspace", 1e-6))
    responsibilities = np.zeros((40, 2))
    responsibilities[:, 0] = 1.0
    sums = gather_moments(X, responsibilities)
    found = samples.maximise(old, sums, Shrinkage(towards, weight))
    assert_allclose(found.means[0], X.mean(axis=0), atol=1e-12)
    kept = np.allclose(covariance(found, 1), covariance(old, 1))
    assert kept == (weight == 0.0)
    if weight:
        assert_allclose(covariance(found, 1), covariance(towards, 0), atol=1e-10)


@pytest.mark.parametrize("kind", ["subspace", "shared", "fixed"])
@pytest.mark.parametrize("closeness", [0.0, 4.0])
@pytest.mark.parametrize("affine", [True, False])
def test_the_optimum_of_complete_samples_is_one_of_the_steps_for_holes(kind, closeness, affine):
    """Two different steps, exact and by factors; where no entry is missing both end alike."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 6)) * [4, 3, 2, 1, 1, 1]
    rule = NoiseRule(kind, 1e-4, 0.5)
    drawn = draw_gaussians(rng, 1)
    start = Gaussians(drawn.log_weights, drawn.means * affine, *list(vars(drawn).values())[2:])
    shrinkage = Shrinkage(draw_gaussians(rng, 1, 6, 3), closeness)
    exact = CompleteSamples(X, affine, rule)
    best = run_em(exact, start, shrinkage, max_iter=50, tol=0.0).gaussians
    masked = MaskedSamples(find_patterns(X, np.ones(X.shape, dtype=bool)), affine, rule)
    after = masked.maximise(best, masked.expect(best)[1], shrinkage)
    assert_allclose(covariance(after, 0), covariance(best, 0), atol=1e-8)
    assert_allclose(after.means, best.means, atol=1e-8)
    assert_allclose(after.noise, best.noise, atol=1e-8)


@pytest.mark.parametrize("extra", [None, 0.3])
def test_degrees_of_freedom_are_the_trace_of_the_posterior_mean(extra):
    g = draw_gaussians(np.random.default_rng(0))
    for p, found in enumerate(g.degrees_of_freedom(extra)):
        noise = g.noise[p] if extra is None else extra
        signal = covariance(g, p) - (noise if extra is None else 0) * np.eye(6)
        expected = np.trace(signal @ np.linalg.inv(signal + noise * np.eye(6)))
        assert_allclose(found, expected)
