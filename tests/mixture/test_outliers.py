"""The uniform component of the mixture: learned share, better bases, monotone likelihood."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from polyspan import SubspaceMixture
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.metrics import average_subspace_distance
from polyspan.storage.models import load_model, save_model

DATA = make_union_of_subspaces(
    (100, 100, 100), n_features=20, subspace_dim=3, spread=0.5, noise=0.05, random_state=0
)
UNIFORM = np.random.default_rng(0).uniform(DATA.X.min(), DATA.X.max(), (33, 20))
X = np.concatenate([DATA.X, UNIFORM])
HOLES = mask_entries(X, 0.2, random_state=0)


def fit(data, outliers, **options):
    options = {"init": "anneal", "random_state": 0, **options}
    model = SubspaceMixture(3, 3, affine=False, outliers=outliers, **options)
    return model.fit(data)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
def test_bases_are_near_those_without_outliers(data):
    clean = average_subspace_distance(fit(data[:300], False).bases_, DATA.bases)
    without = average_subspace_distance(fit(data, False).bases_, DATA.bases)
    for outliers in (True, 0.1):
        model = fit(data, outliers)
        found = average_subspace_distance(model.bases_, DATA.bases)
        assert found < 1.15 * clean
        assert found < 0.5 * without
        probability = model.outlier_probability(data)
        assert (probability[300:] > 0.5).mean() > 0.95
        assert (probability[:300] < 0.5).mean() > 0.98
        assert np.diff(model.log_likelihood_history_).min() > -1e-7
        assert_allclose(model.weights_.sum(), 1)
        assert_allclose(model.predict_proba(data).sum(axis=1), 1)
    assert model.outlier_weight_ == 0.1
    assert_allclose(fit(data, True).outlier_weight_, 0.1, atol=0.02)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
def test_densities_by_hand(data):
    model = fit(data, True)
    ranges = np.nanmax(data, axis=0) - np.nanmin(data, axis=0)
    assert_allclose(model.outlier_ranges_, ranges)
    scores, probability = model.score_samples(data), model.outlier_probability(data)
    for i in (0, 120, 320):
        o = ~np.isnan(data[i])
        logs = [np.log(model.outlier_weight_) - np.log(ranges[o]).sum()]
        for p in range(3):
            C = (model.bases_[p] * model.variances_[p]) @ model.bases_[p].T
            C = (C + model.noise_variances_[p] * np.eye(20))[np.ix_(o, o)]
            log = multivariate_normal.logpdf(data[i][o], model.means_[p][o], C)
            logs.append(np.log1p(-model.outlier_weight_) + np.log(model.weights_[p]) + log)
        assert_allclose(scores[i], logsumexp(logs), rtol=1e-7)
        assert_allclose(probability[i], np.exp(logs[0] - logsumexp(logs)), atol=1e-7)
    assert_allclose(model.score(data), scores.mean())


@pytest.mark.parametrize("closeness", [0.0, 1.0])
@pytest.mark.parametrize("outliers", [True, 0.3])
def test_the_likelihood_never_falls_and_is_what_it_says(closeness, outliers):
    model = SubspaceMixture(2, 2, closeness=closeness, outliers=outliers, random_state=0, tol=1e-8)
    model.set_params(max_iter=400).fit(HOLES)
    assert np.diff(model.log_likelihood_history_).min() > -1e-7
    if not closeness:
        assert_allclose(model.log_likelihood_, model.score_samples(HOLES).sum(), rtol=1e-9)


def test_without_outliers_the_share_vanishes():
    model = fit(DATA.X, True)
    assert model.outlier_weight_ < 0.01
    plain = fit(DATA.X, False)
    assert not hasattr(plain, "outlier_weight_")
    assert not hasattr(plain, "outlier_probability")
    assert np.array_equal(model.labels_, plain.labels_)
    model.set_params(outliers=False).fit(DATA.X)
    assert not hasattr(model, "outlier_weight_")
    assert np.array_equal(model.bases_, plain.bases_)


def test_a_far_sample_is_an_outlier_wherever_it_is():
    model = fit(X, True)
    far = np.full((1, 20), 50.0)
    assert model.outlier_probability(far)[0] > 0.999
    assert 0 <= model.predict(far)[0] < 3


def test_constant_features_warm_starts_and_files(tmp_path):
    data = X.copy()
    data[:, 4] = 2.0
    model = fit(data, True, warm_start=True)
    assert np.isfinite(model.log_likelihood_)
    assert_allclose(model.outlier_ranges_[4], np.delete(model.outlier_ranges_, 4).mean())
    first = model.log_likelihood_
    assert_allclose(model.fit(data).log_likelihood_history_[0], first, rtol=1e-9)
    save_model(model, tmp_path / "model.skops")
    assert_allclose(
        load_model(tmp_path / "model.skops").outlier_probability(data),
        model.outlier_probability(data),
    )


@pytest.mark.parametrize("outliers", [1.0, 0.0, -0.1, "auto"])
def test_bad_shares(outliers):
    with pytest.raises(ValueError, match="outliers"):
        SubspaceMixture(outliers=outliers).fit(X)
