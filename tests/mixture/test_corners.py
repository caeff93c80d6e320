"""SubspaceMixture: what its parameters mean, and edge cases that failed before."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import SubspaceMixture
from polyspan.datasets import make_union_of_subspaces

DATA = make_union_of_subspaces(
    (50, 50, 50), n_features=12, subspace_dim=2, spread=0.6, noise=0.1, random_state=0
)


def holed(X, fraction=0.15):
    return np.where(np.random.RandomState(0).random_sample(X.shape) < fraction, np.nan, X)


def test_without_added_noise_the_observed_entries_come_back():
    X = holed(DATA.X)
    model = SubspaceMixture(3, 2, random_state=0).fit(X)
    seen = ~np.isnan(X)
    for noise in (0.0, 1e-6):
        assert_allclose(model.reconstruct(X, noise=noise)[seen], X[seen], atol=1e-8)
    assert np.abs(model.reconstruct(X)[seen] - X[seen]).max() > 1e-3


def test_distances_over_observed_entries():
    X = holed(DATA.X)
    model = SubspaceMixture(3, 2, random_state=0).fit(X)
    found = model.transform(X)
    for i in range(0, len(X), 17):
        seen = ~np.isnan(X[i])
        for p in range(3):
            D, m = model.bases_[p], X.shape[1]
            C = (D * model.variances_[p]) @ D.T + model.noise_variances_[p] * np.eye(m)
            off = (X[i] - model.means_[p])[seen]
            squared = off @ np.linalg.solve(C[np.ix_(seen, seen)], off)
            assert_allclose(found[i, p], np.sqrt(squared * m / seen.sum()), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "n_parameters"),
    [
        ({}, 3 - 1 + 3 * 12 + 3 * (12 * 2 - 1) + 3),
        ({"affine": False}, 3 - 1 + 12 + 3 * (12 * 2 - 1) + 3),
        ({"affine": False, "center": False, "noise": "shared"}, 3 - 1 + 3 * (12 * 2 - 1) + 1),
        ({"noise": 0.1}, 3 - 1 + 3 * 12 + 3 * (12 * 2 - 1)),
    ],
)
def test_bic_counts_what_was_learned(options, n_parameters):
    X = DATA.X
    model = SubspaceMixture(3, 2, random_state=0, **options).fit(X)
    likelihood = model.score_samples(X).sum()
    assert_allclose(model.bic(X), -2 * likelihood + n_parameters * np.log(len(X)))


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_a_warm_start_goes_on():
    X = holed(DATA.X)
    whole = SubspaceMixture(3, 2, tol=0, max_iter=12, random_state=0).fit(X)
    parts = SubspaceMixture(3, 2, tol=0, max_iter=6, random_state=0, warm_start=True).fit(X)
    first = parts.log_likelihood_history_
    second = parts.fit(X).log_likelihood_history_
    assert_allclose([*first, *second[1:]], whole.log_likelihood_history_, rtol=1e-9)
    moved = X + 5.0  # about another mean
    start = parts.log_likelihood_
    assert parts.fit(moved).log_likelihood_history_[0] < start
    louder = parts.set_params(noise=1.0).fit(X)
    assert np.diff(louder.log_likelihood_history_).min() > -1e-6
    assert_allclose(louder.noise_variances_, 1.0)


def test_the_best_of_several_starts_is_kept():
    X = holed(DATA.X)
    options = {"init": "anneal", "anneal_steps": 0, "random_state": 3}
    values = [
        SubspaceMixture(4, 2, n_init=n, **options).fit(X).log_likelihood_ for n in (1, 2, 4, 8)
    ]
    assert np.all(np.diff(values) >= 0)
    assert values[-1] > values[0]


def test_subspaces_through_the_origin_or_the_mean():
    X = DATA.X + 3.0
    through_mean = SubspaceMixture(3, 2, affine=False, random_state=0).fit(X)
    through_origin = SubspaceMixture(3, 2, affine=False, center=False, random_state=0).fit(X)
    assert_allclose(through_mean.means_, np.tile(X.mean(axis=0), (3, 1)))
    assert not through_origin.means_.any()


def test_duplicates_with_holes_and_no_shrinkage():
    rng = np.random.RandomState(0)
    for seed in range(20):
        X = rng.standard_normal((3, 8))[rng.randint(3, size=20)]
        X = np.where(np.random.RandomState(seed).random_sample(X.shape) < 0.25, np.nan, X)
        X[:, np.isnan(X).all(axis=0)] = 0.0
        model = SubspaceMixture(3, 3, closeness=0.0, random_state=seed, max_iter=20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.isfinite(model.fit(X).log_likelihood_)


@pytest.mark.parametrize(("dtype", "scale"), [("f8", 1e160), ("f8", 1e-160), ("f4", 1e19)])
def test_units_whose_squares_are_no_numbers_are_refused(dtype, scale):
    with pytest.raises(ValueError, match="scale X"):
        SubspaceMixture(3, 2).fit((DATA.X * scale).astype(dtype))
