"""Sizes by BIC, the floor of the noise, and subspaces with too few rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_blobs

from polyspan import SubspaceMixture
from polyspan.datasets import mask_entries
from polyspan.geometry import draw_bases
from polyspan.metrics import clustering_error
from polyspan.mixture._solve.em import Solution
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture.auto_starts import with_enough_rows
from polyspan.mixture.problem import Problem, rounding_variance


def union(seed, sizes, m, dims, noise=0.02):
    rng = np.random.RandomState(seed)
    bases = [draw_bases((m, dim), rng) for dim in dims]
    rows = [
        rng.standard_normal((n, basis.shape[1])) @ basis.T / np.sqrt(basis.shape[1])
        + noise * rng.standard_normal((n, m)) / np.sqrt(m)
        for n, basis in zip(sizes, bases, strict=True)
    ]
    return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)


PLANES = union(0, [60] * 3, 6, [2] * 3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("sizes", "m", "dims"),
    [([60] * 3, 3, [2] * 3), ([120, 40, 30], 12, [3] * 3), ([60] * 3, 12, [1, 2, 4])],
    ids=["planes in R3", "unequal sizes", "unequal dimensions"],
)
def test_both_sizes_are_found(seed, sizes, m, dims):
    X, labels = union(seed, sizes, m, dims)
    model = SubspaceMixture("auto", "auto", random_state=seed).fit(X)
    assert sorted(model.subspace_dims_.tolist()) == sorted(dims)
    assert clustering_error(labels, model.labels_) <= 0.12  # planes cross


def test_round_blobs_have_no_directions():
    X, labels = make_blobs(200, 6, centers=4, random_state=2)
    model = SubspaceMixture("auto", "auto", random_state=0).fit(X)
    assert model.subspace_dims_.tolist() == [0] * 4
    assert clustering_error(labels, model.labels_) == 0


def test_one_cluster_is_one():
    X = np.random.default_rng(0).standard_normal((150, 5))
    assert SubspaceMixture("auto", 0, random_state=0).fit(X).weights_.shape == (1,)


def test_missing_entries_weights_outliers_and_groups():
    X, labels = PLANES
    holes = mask_entries(X, 0.15, random_state=0)
    model = SubspaceMixture((2, 4), "auto", random_state=0).fit(holes)
    assert model.subspace_dims_.tolist() == [2, 2, 2]
    assert clustering_error(labels, model.labels_) <= 0.05
    X = X[::2]
    weights = np.where(np.arange(len(X)) % 2, 1.0, 2.0)
    groups = np.where(np.arange(len(X)) % 3, "fine", "rough")
    model = SubspaceMixture((3, 4), 2, outliers=True, random_state=0)
    model.fit(X, sample_weight=weights, noise_groups=groups)
    assert model.subspace_dims_.tolist() == [2, 2, 2]


def test_the_table_holds_every_size_and_the_chosen_one_is_the_lowest():
    X, _ = PLANES
    model = SubspaceMixture((1, 4), "auto", closeness=0.0, random_state=0).fit(X)
    table = model.candidates_
    assert {len(column) for column in table.values()} == {len(table["bic"])}
    best = int(np.argmin(table["bic"]))
    assert (table["n_subspaces"][best], table["subspace_dims"][best]) == (3, "2")
    assert_allclose(table["bic"][best], model.bic(X), rtol=1e-3)
    m, s, n = 6, 2, 3  # the number of parameters, counted by hand
    assert table["n_parameters"][best] == n * (m + m * s - s * (s + 1) // 2 + s + 1) + n - 1
    expected = table["n_parameters"] * np.log(len(X)) - 2 * table["log_likelihood"]
    finite = np.isfinite(table["bic"])
    assert_allclose(table["bic"][finite], expected[finite])
    again = SubspaceMixture((1, 4), "auto", closeness=0.0, random_state=0).fit(X)
    assert np.array_equal(again.bases_, model.bases_)
    assert not hasattr(model.set_params(n_subspaces=3, subspace_dim=2).fit(X), "candidates_")


def test_given_sizes_and_labels_are_kept():
    X, labels = PLANES
    assert SubspaceMixture(2, "auto", random_state=0).fit(X).weights_.shape == (2,)
    one = SubspaceMixture((2, 5), 2, random_state=0).fit(X)
    assert one.subspace_dims_.tolist() == [2, 2, 2]
    started = SubspaceMixture(3, "auto", init=labels).fit(X)
    assert np.mean(started.labels_ == labels) > 0.95


def test_a_warm_start_keeps_the_sizes():
    X, _ = PLANES
    model = SubspaceMixture("auto", "auto", warm_start=True, random_state=0).fit(X)
    first = model.log_likelihood_
    again = model.fit(X)
    assert again.subspace_dims_.tolist() == [2, 2, 2]
    assert_allclose(again.log_likelihood_history_[0], first, rtol=1e-9)


def test_sizes_of_many_rows_are_compared_on_a_sample(monkeypatch):
    X, labels = union(1, [400] * 3, 6, [2] * 3)
    monkeypatch.setattr("polyspan.mixture.sizes.MOST_ROWS", 200)
    monkeypatch.setattr("polyspan.mixture.sizes.LEAST_ROWS", 200)
    model = SubspaceMixture((1, 5), "auto", random_state=0).fit(X)
    assert model.subspace_dims_.tolist() == [2, 2, 2]
    assert clustering_error(labels, model.labels_) <= 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_subspaces": (3, 2)}, "1 <= least <= most"),
        ({"n_subspaces": (0, 2)}, "1 <= least <= most"),
        ({"n_subspaces": (1, 2, 3)}, "two numbers"),
        ({"n_subspaces": "many"}, "n_subspaces"),
        ({"n_subspaces": (1, 3), "subspace_dim": (1, 2)}, "which needs their number"),
        ({"n_subspaces": "auto", "init": PLANES[1]}, "give n_subspaces"),
        ({"n_subspaces": (200, 300)}, "too few for n_subspaces=200"),
    ],
)
def test_sizes_that_cannot_be(parameters, message):
    with pytest.raises(ValueError, match=message):
        SubspaceMixture(**parameters).fit(PLANES[0])


def test_the_floor_is_the_rounding_of_the_columns():
    rng = np.random.default_rng(0)
    smooth = rng.standard_normal((400, 3))
    assert rounding_variance(smooth, None) == 0
    rounded = np.round(smooth, 1)
    assert_allclose(rounding_variance(rounded, None), 0.1**2 / 12, rtol=1e-6)
    assert_allclose(rounding_variance(50 * rounded, None), 5.0**2 / 12, rtol=1e-6)
    # Noise of the computer between values that are the same is no finer step.
    shaken = rounded + 1e-12 * rng.standard_normal(rounded.shape)
    assert_allclose(rounding_variance(shaken, None), 0.1**2 / 12, rtol=1e-6)
    observed = rng.uniform(size=rounded.shape) > 0.2
    holes = np.where(observed, rounded, 0.0)
    assert_allclose(rounding_variance(holes, observed), 0.1**2 / 12, rtol=1e-6)
    # Two values: a third of the variance; a constant column has none.
    table = np.column_stack([rng.uniform(size=400) < 0.02, np.zeros(400)]).astype(float)
    assert_allclose(rounding_variance(table, None), table[:, 0].var() / 6)


def test_the_noise_does_not_vanish_where_columns_have_few_values():
    rng = np.random.default_rng(1)
    X = np.round(2 * rng.standard_normal((300, 5))) / 2
    X[:, 4] = rng.uniform(size=300) < 0.5
    floor = rounding_variance(X - X.mean(axis=0), None)
    for parameters in ({}, {"noise": "shared"}, {"closeness": 0.0}):
        model = SubspaceMixture(3, 3, random_state=0, **parameters).fit(X)
        assert model.noise_variances_.min() >= floor * (1 - 1e-12) > 0.01
    known = SubspaceMixture(3, 3, noise=0.01, random_state=0).fit(X)
    assert_allclose(known.noise_variances_, 1e-4)


def test_a_subspace_of_few_rows_does_not_win():
    X, _ = union(2, [40] * 2, 5, [1, 1])
    samples = Problem.of(X, "subspace", affine=True).samples

    def run(shares, value):
        zeros = np.zeros((2, 5, 1))
        found = Gaussians(np.log(shares), zeros[:, :, 0], zeros, zeros[:, 0], np.ones(2))
        return Solution(found, value, (value,), 0, "converged")

    likely, sound = run([0.99, 0.01], 10.0), run([0.5, 0.5], 5.0)
    assert with_enough_rows([likely, sound], samples) == [sound]
    assert with_enough_rows([likely], samples) == [likely]
