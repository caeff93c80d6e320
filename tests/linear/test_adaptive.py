"""AdaptiveMiCUSaL: Algorithm 2 on hand-made cases, bad input, the paper's setting."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import AdaptiveMiCUSaL, MiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.linear._solve.alternation import Rules, alternate
from polyspan.linear._solve.merging import learn_adaptively
from polyspan.linear._solve.problem import prepare
from polyspan.metrics import estimate_dimension

RULES = Rules(max_iter=50, tol=1e-9)
THRESHOLDS = {"merge_threshold": 0.2, "k1": 6, "k2": 10}
DATA = make_union_of_subspaces(
    (60, 60), n_features=12, subspace_dim=3, spread=0.8, noise=0.001, random_state=0
)


def brute_force(Y, k1, k2):
    """The paper's formulas, sample by sample."""
    distances = np.sort(np.linalg.norm(Y[:, None] - Y[None], axis=2), axis=1)[:, 1:]
    means = []
    for k in range(k1, k2 + 1):
        each = [
            1 / (sum(np.log(row[k - 1] / row[a - 1]) for a in range(1, k)) / (k - 2))
            for row in distances
        ]
        means.append(np.mean(each))
    return np.mean(means)


@pytest.mark.parametrize(("k1", "k2"), [(3, 3), (6, 10), (5, 20)])
def test_estimate_equals_the_formula(k1, k2):
    Y = np.random.RandomState(0).standard_normal((60, 4))
    assert_allclose(estimate_dimension(Y, k1, k2), brute_force(Y, k1, k2), rtol=1e-10)


def test_estimate_finds_low_dimensions():
    rng = np.random.RandomState(0)
    for s in (1, 2, 3):
        Y = rng.uniform(size=(1500, s)) @ rng.standard_normal((s, 10))
        assert abs(estimate_dimension(Y, 6, 10) - s) < 0.3


def test_estimate_in_corners():
    rng = np.random.RandomState(0)
    Y = rng.standard_normal((30, 3))
    assert_allclose(estimate_dimension(np.vstack([Y, Y, Y[:5]])), estimate_dimension(Y))
    with pytest.warns(UserWarning, match="9 distinct samples have only 8 neighbours"):
        few = estimate_dimension(Y[:9], 3, 10)
    assert_allclose(few, brute_force(Y[:9], 3, 8))
    with pytest.warns(UserWarning, match="only 3 neighbours"):
        assert np.isnan(estimate_dimension(Y[:4], 6, 10))
    assert np.isnan(estimate_dimension(np.eye(12), 3, 5))  # all at one distance
    for arguments, message in (((Y, 2, 5), "'k1' parameter of"), ((Y, 5, 4), "k2=4 must")):
        with pytest.raises(ValueError, match=message):
            estimate_dimension(*arguments)


def test_empty_subspaces_are_pruned_and_copies_merged():
    problem, _ = prepare(DATA.X, 20.0, center=True)
    far = np.linalg.qr(np.concatenate([*DATA.bases, np.eye(12)], axis=1))[0][:, 6:9]
    start = np.stack([DATA.bases[0], far, DATA.bases[1], DATA.bases[1]])
    found = learn_adaptively(problem, start, RULES, **THRESHOLDS)
    assert len(found.frames) == 2
    kinds = [step.kind for step in found.merges]
    assert len(kinds) == 2
    assert [step.n_left for step in found.merges] == [3, 2]
    assert all(step.distance <= 0.2 for step in found.merges if step.kind == "merge")
    # Trimmed to 2 of 3 directions (the samples lie on a sphere), inside the true subspaces.
    for basis in found.frames:
        outside = [np.linalg.norm(basis - true @ (true.T @ basis)) for true in DATA.bases]
        assert min(outside) < 0.3


def test_a_merged_subspace_is_the_exact_one_of_all_its_samples():
    """Two halves of one cluster merge into its principal subspace."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((80, 3)) @ np.eye(3, 8) + 0.01 * rng.standard_normal((80, 8))
    problem, _ = prepare(X, float("inf"), center=True)
    start = np.stack([np.eye(8)[:, :3]] * 2)
    start[1] = np.linalg.qr(start[1] + 0.01 * rng.standard_normal((8, 3)))[0]
    rules, thresholds = Rules(max_iter=20, tol=1e-9), {**THRESHOLDS, "merge_threshold": 0.1}
    found = learn_adaptively(problem, start, rules, **thresholds)
    assert len(found.frames) == 1
    assert [step.kind for step in found.merges] == ["merge"]
    s = found.frames.shape[2]
    leading = np.linalg.svd(X - X.mean(axis=0))[2][:s].T
    assert subspace_distance(found.frames[0], leading) < 1e-6
    assert s == round(found.dimensions[0])


def test_nothing_to_prune_or_merge_is_micusal_from_the_trimmed_start():
    problem, _ = prepare(DATA.X, 4.0, center=True)
    rules, thresholds = Rules(max_iter=100, tol=1e-9), {**THRESHOLDS, "merge_threshold": 0.0}
    found = learn_adaptively(problem, DATA.bases, rules, **thresholds)
    assert found.merges == ()
    assert found.frames.shape[2] == max(1, min(3, round(max(found.dimensions))))
    again = Rules("exact", 100, 1e-9)
    (same,) = alternate(problem, found.frames[None], again)
    assert_allclose(same.objective, found.objective, rtol=1e-6)


def test_filled_samples_are_what_the_majoriser_sees():
    X = mask_entries(DATA.X, 0.2, random_state=0)
    problem, _ = prepare(X, 4.0, center=False, holes=True, prior=0.02)
    assigned, sums = problem.assign(DATA.bases[None], with_products=True)
    labels = assigned[:, 0]
    completed, weights = problem.rows.block.completed(DATA.bases, None, labels)
    for p in range(2):
        own = completed.X[labels == p] * np.sqrt(weights[labels == p])[:, None]
        assert_allclose(own.T @ (own @ DATA.bases[p]), sums.products[0, p], atol=1e-9)
    whole, _ = prepare(DATA.X, 4.0, center=False)
    block = whole.rows.block
    assert block.completed(DATA.bases, None, labels) == (block, None)


@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize("init", ["random", "anneal"])
def test_fit(fraction, init):
    X = mask_entries(DATA.X, fraction, random_state=0)
    model = AdaptiveMiCUSaL(4, 4, lam=20.0, merge_threshold=0.3, init=init, random_state=0).fit(X)
    n, s = model.n_subspaces_, model.subspace_dim_
    assert 1 <= n <= 4
    assert 1 <= s <= 4
    assert model.bases_.shape == (n, 12, s)
    assert is_orthonormal(model.bases_, 1e-8)
    assert len(model.merge_history_) == 4 - n
    assert len(model.dimension_estimates_) == n
    assert model.labels_.max() < n
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.isfinite(model.reconstruct(X)).all()


def test_repeatable_and_final_run_is_converged_micusal():
    fits = [AdaptiveMiCUSaL(4, 4, lam=20.0, random_state=3).fit(DATA.X) for _ in range(2)]
    assert np.array_equal(fits[0].bases_, fits[1].bases_)
    model = fits[0]
    again = MiCUSaL(
        model.n_subspaces_, model.subspace_dim_, lam=20.0, init=model.bases_, solver="exact"
    ).fit(DATA.X)
    assert again.objective_ <= model.objective_ * (1 + 1e-9)
    assert again.objective_ > 0.95 * model.objective_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k1": 2}, "k1=2 must be at least 3"),
        ({"k1": 8, "k2": 7}, "k2=7 must not be smaller than k1=8"),
        ({"merge_threshold": 1.0}, "merge_threshold"),
        ({"merge_threshold": -0.1}, "merge_threshold"),
        ({"max_subspaces": 0}, "max_subspaces"),
        ({"max_dim": 0}, "max_dim"),
        ({"init": draw_bases((3, 12, 1), np.random.RandomState(0))}, "init"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveMiCUSaL(**options).fit(DATA.X)


def test_small_clusters_are_told():
    X = np.vstack([DATA.X[:40], DATA.X[60:65]])
    with pytest.warns(UserWarning, match="at most k2=10 samples"):
        AdaptiveMiCUSaL(4, 3, lam=20.0, merge_threshold=0.0, random_state=0, n_init=1).fit(X)


def test_max_dim_is_only_a_bound():
    model = AdaptiveMiCUSaL(2, 50, n_init=1, random_state=0).fit(DATA.X)
    assert model.subspace_dim_ <= 11


def test_paper_setting():
    """The formula gives 9 to 11 where the true dimension is 13: that is tested here."""
    data = make_union_of_subspaces(random_state=0)
    model = AdaptiveMiCUSaL(
        8, 20, merge_threshold=0.095, random_state=0, n_init=1, tol=1e-4, max_iter=100
    ).fit(data.X)
    assert 3 <= model.n_subspaces_ <= 7
    assert 9 <= model.subspace_dim_ <= 11


@pytest.mark.parametrize(("holes", "solver"), [(False, "exact"), (True, "power")])
def test_the_last_alternation_is_exact_where_samples_are_complete(holes, solver, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "polyspan.linear._solve.merging.alternate",
        lambda problem, frames, rules: seen.append(rules) or alternate(problem, frames, rules),
    )
    X = mask_entries(DATA.X, 0.1, random_state=0) if holes else DATA.X
    problem, _ = prepare(X, 4.0, center=False, holes=holes)
    learn_adaptively(problem, draw_bases((3, 12, 4), np.random.RandomState(0)), RULES, **THRESHOLDS)
    assert seen == [Rules(solver, RULES.max_iter, RULES.tol)]


def test_a_monitor_ends_the_first_alternation():
    problem, _ = prepare(DATA.X, 4.0, center=False)
    start = draw_bases((2, 12, 3), np.random.RandomState(0))
    values = []

    def monitor(run, iteration, value, bases):
        values.append((iteration, value))
        return iteration == 2

    learn_adaptively(problem, start, RULES, **THRESHOLDS, monitor=monitor)
    assert [iteration for iteration, _ in values] == [0, 1, 2]
    assert np.all(np.diff([value for _, value in values]) <= 0)
