"""Groups of noise: two sensors, learned levels, monotone likelihood."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from polyspan import SubspaceMixture
from polyspan.datasets import mask_entries
from polyspan.geometry import range_basis
from polyspan.metrics import average_subspace_distance
from polyspan.storage.models import load_model, save_model

LEVELS = {"fine": 0.05, "rough": 0.5}


def two_sensors(L, n=200, m=15, s=3, seed=0):
    rng = np.random.default_rng(seed)
    bases = np.stack([range_basis(rng.standard_normal((m, s))) for _ in range(L)])
    X = np.concatenate([rng.standard_normal((n, s)) @ basis.T for basis in bases])
    groups = np.where(rng.uniform(size=len(X)) < 0.5, "fine", "rough")
    spread = np.array([LEVELS[group] for group in groups])
    return X + spread[:, None] * rng.standard_normal(X.shape), groups, bases


@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("L", [1, 2])
def test_levels_and_subspaces_of_two_sensors(L, holes):
    X, groups, bases = two_sensors(L)
    if holes:
        X = mask_entries(X, holes, random_state=0)
    options = {"n_init": 3 if L > 1 else 1, "random_state": 0}
    model = SubspaceMixture(L, 3, **options).fit(X, noise_groups=groups)
    assert model.noise_groups_.tolist() == ["fine", "rough"]
    levels = np.sqrt(model.noise_factors_[:, None] * model.noise_variances_)
    assert_allclose(levels, [[0.05] * L, [0.5] * L], rtol=0.1)
    assert np.diff(model.log_likelihood_history_).min() > -1e-7
    found = average_subspace_distance(model.bases_, bases)
    plain = SubspaceMixture(L, 3, **options).fit(X)
    assert found < 0.5 * average_subspace_distance(plain.bases_, bases)
    fine = groups == "fine"
    clean = SubspaceMixture(L, 3, **options).fit(X[fine])
    assert found < 1.1 * average_subspace_distance(clean.bases_, bases)
    weights = np.where(fine, 1 / 0.05**2, 1 / 0.5**2)
    weighted = SubspaceMixture(L, 3, **options).fit(X, sample_weight=weights)
    found = average_subspace_distance(weighted.bases_, bases)
    assert found < 1.1 * average_subspace_distance(clean.bases_, bases)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("noise", ["subspace", "shared"])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("closeness", [0.0, 5.0])
@pytest.mark.parametrize("outliers", [False, True])
def test_the_likelihood_never_falls(holes, noise, affine, closeness, outliers):
    X, groups, _ = two_sensors(2, n=40, m=8, s=2)
    X = mask_entries(X, holes, random_state=0) if holes else X
    model = SubspaceMixture(
        2, (1, 2), noise=noise, affine=affine, closeness=closeness, outliers=outliers,
        random_state=0, tol=1e-6,
    )  # fmt: skip
    third = np.where(np.arange(len(X)) % 5, groups, "third")
    model.set_params(max_iter=400).fit(X, noise_groups=third)
    assert np.diff(model.log_likelihood_history_).min() > -1e-7
    assert len(model.noise_factors_) == 3
    if closeness == 0:
        parts = [
            model.for_noise_group(group).score_samples(X[third == group]).sum()
            for group in ("fine", "rough", "third")
        ]
        assert_allclose(model.log_likelihood_, sum(parts), rtol=1e-9)
    entries = [(~np.isnan(X[third == group])).sum() for group in model.noise_groups_]
    assert_allclose(entries @ np.log(model.noise_factors_), 0, atol=1e-6 * X.size)


def test_one_group_is_no_group():
    X, _, _ = two_sensors(2, n=60)
    labels = np.repeat([0, 1], 60)
    options = {"init": labels, "tol": 1e-12, "max_iter": 3000, "closeness": 0.0}
    plain = SubspaceMixture(2, 3, **options).fit(X)
    one = SubspaceMixture(2, 3, **options).fit(X, noise_groups=np.zeros(len(X)))
    assert_allclose(one.log_likelihood_, plain.log_likelihood_, rtol=1e-5)
    assert_allclose(one.noise_factors_, 1)
    assert np.mean(one.labels_ == plain.labels_) > 0.98


def test_methods_of_a_group(tmp_path):
    X, groups, _ = two_sensors(1, n=80, m=6, s=2)
    model = SubspaceMixture(1, 2, closeness=0.0).fit(X, noise_groups=groups)
    for g, group in enumerate(model.noise_groups_):
        own = model.for_noise_group(group)
        C = (model.bases_[0] * model.variances_[0]) @ model.bases_[0].T
        C += model.noise_factors_[g] * model.noise_variances_[0] * np.eye(6)
        expected = multivariate_normal.logpdf(X, model.means_[0], C)
        assert_allclose(own.score_samples(X), expected, rtol=1e-8)
        assert not hasattr(own, "noise_groups_")
    # The rough sensor's samples are shrunk more.
    change = [np.abs(model.for_noise_group(g).reconstruct(X) - X).sum() for g in LEVELS]
    assert change[1] > change[0]
    with pytest.raises(ValueError, match="unknown"):
        model.for_noise_group("none")
    with pytest.raises(ValueError, match="pass noise_groups"):
        SubspaceMixture(1, 2).fit(X).for_noise_group("fine")
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert_allclose(
        loaded.for_noise_group("fine").score_samples(X),
        model.for_noise_group("fine").score_samples(X),
    )
    free = 6 + (6 * 2 - 1) + 1 + 1
    log_likelihood = model.score_samples(X).sum()
    assert_allclose(model.bic(X), -2 * log_likelihood + free * np.log(len(X)))


def test_labels_take_the_noise_of_their_group():
    X, groups, _ = two_sensors(2, n=60)
    model = SubspaceMixture(2, 3, random_state=0).fit(X, noise_groups=groups)
    for group in model.noise_groups_:
        own = groups == group
        assert np.array_equal(model.for_noise_group(group).predict(X[own]), model.labels_[own])


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        (["a"] * 5, {}, "shape"),
        (["a"] * 79 + [None], {}, "every sample needs a group"),
        ([1.0] * 79 + [np.nan], {}, "every sample needs a group"),
        (np.array(["a"] * 79 + [2], dtype=object), {}, "several types"),
        (["a", "b"] * 40, {"noise": 0.1}, "noise=0.1 is known"),
    ],
)
def test_bad_groups(groups, options, message):
    X, _, _ = two_sensors(1, n=80, m=6, s=2)
    with pytest.raises(ValueError, match=message):
        SubspaceMixture(1, 2, **options).fit(X, noise_groups=groups)


def test_a_group_needs_a_sample_that_counts():
    X, groups, _ = two_sensors(1, n=80, m=6, s=2)
    with pytest.raises(ValueError, match="'rough'"):
        SubspaceMixture(1, 2).fit(X, noise_groups=groups, sample_weight=groups == "fine")
