"""SubspaceMixture: its limits are PCA and GaussianMixture; missing entries are exact."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from polyspan import SubspaceMixture
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.metrics import average_subspace_distance

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 6)) @ RNG.standard_normal((6, 6)) + RNG.uniform(-5, 5, 6)


def covariances(model):
    low = np.einsum("lms,ls,lns->lmn", model.bases_, model.variances_, model.bases_)
    return low + model.noise_variances_[:, None, None] * np.eye(low.shape[1])


@pytest.mark.parametrize("s", [0, 1, 3, 5])
@pytest.mark.parametrize("affine", [True, False])
def test_one_subspace_is_pca(s, affine):
    model = SubspaceMixture(1, s, closeness=0.0, affine=affine).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, ddof=0))
    values, vectors = values[::-1], vectors[:, ::-1]
    assert_allclose(model.noise_variances_[0], values[s:].mean())
    assert_allclose(model.variances_[0] + model.noise_variances_[0], values[:s])
    if s:
        pca = PCA(s).fit(X)
        assert_allclose(np.abs(np.sum(model.bases_[0].T * pca.components_, axis=1)), 1)
        scale = (len(X) - 1) / len(X)  # PCA's likelihood is that of the variances over N-1
        assert_allclose(pca.explained_variance_ * scale, values[:s])
    C = vectors[:, :s] * (values[:s] - values[s:].mean()) @ vectors[:, :s].T
    C += values[s:].mean() * np.eye(6)
    best = -0.5 * (6 * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + 6)
    assert_allclose(model.score(X), best)
    assert_allclose(model.log_likelihood_, best * len(X))


def test_full_rank_is_a_gaussian_mixture():
    rng = np.random.default_rng(0)
    centres = 12 * np.eye(4)[:3]
    X = np.concatenate(
        [
            c + rng.standard_normal((60, 4)) @ (np.eye(4) + rng.uniform(0, 0.5, (4, 4)))
            for c in centres
        ]
    )
    theirs = GaussianMixture(3, tol=1e-12, max_iter=5000, reg_covar=0.0, random_state=0).fit(X)
    model = SubspaceMixture(3, 3, closeness=0.0, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    assert_allclose(model.score_samples(X), theirs.score_samples(X), rtol=1e-6)
    order = np.argsort(theirs.means_[:, 0])
    own = np.argsort(model.means_[:, 0])
    assert_allclose(covariances(model)[own], theirs.covariances_[order], atol=1e-6)
    assert_allclose(model.bic(X), theirs.bic(X))


def test_as_many_features_as_products_are_for():
    data = make_union_of_subspaces((60, 60), n_features=600, subspace_dim=3, random_state=0)
    model = SubspaceMixture(1, 3, closeness=0.0, tol=1e-9, max_iter=500).fit(data.X)
    pca = PCA(3).fit(data.X)
    cosines = np.linalg.svd(model.bases_[0].T @ pca.components_.T)[1]
    assert_allclose(cosines, 1, atol=1e-4)
    model = SubspaceMixture(2, 3, anneal_steps=1, random_state=0).fit(data.X)
    assert (np.diff(model.log_likelihood_history_) > -1e-3).all()
    assert model.score(data.X) > SubspaceMixture(1, 3).fit(data.X).score(data.X)


def test_a_fit_that_is_cut_short_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = SubspaceMixture(3, 2, max_iter=2, tol=0.0, random_state=0).fit(X)
    assert model.n_iter_ == 2
    assert not model.converged_


@pytest.mark.parametrize("holes", [0.0, 0.25])
def test_a_fit_of_drawn_samples_finds_the_subspaces(holes):
    data = make_union_of_subspaces(
        (60,) * 3, n_features=20, subspace_dim=3, spread=0.8, noise=0.1, random_state=1
    )
    first = SubspaceMixture(3, 3, affine=False, closeness=0.0, n_init=3, random_state=0).fit(data.X)
    drawn, labels = first.sample(3000, random_state=1)
    if holes:
        drawn = mask_entries(drawn, holes, random_state=0)
    again = SubspaceMixture(3, 3, affine=False, closeness=0.0, n_init=3, random_state=2).fit(drawn)
    assert average_subspace_distance(again.bases_, first.bases_) < 0.15
    match = [np.bincount(again.labels_[labels == p], minlength=3).argmax() for p in range(3)]
    assert sorted(match) == [0, 1, 2]
    assert np.mean(np.array(match)[labels] == again.labels_) > 0.9
    assert_allclose(again.noise_variances_[match], first.noise_variances_, rtol=0.1)


def test_closeness_brings_the_covariances_together():
    spread = []
    for closeness in (0.0, 30.0, 1e6):
        C = covariances(SubspaceMixture(3, 3, closeness=closeness, random_state=0).fit(X))
        spread.append(np.abs(C - C.mean(axis=0)).max())
    assert spread[0] > spread[1] > spread[2]
    assert spread[2] < 1e-2


@pytest.mark.parametrize("noise", ["subspace", "shared", 0.7])
def test_posterior_means_are_the_dense_ones(noise):
    holes = mask_entries(X, 0.3, random_state=0)
    model = SubspaceMixture(2, 2, noise=noise, random_state=0).fit(holes)
    C, responsibilities = covariances(model), model.predict_proba(holes)
    assert_allclose(responsibilities.sum(axis=1), 1)
    for extra in (None, 0.8):
        found = model.reconstruct(holes, noise=extra)
        for i in (0, 3, 77):
            o = ~np.isnan(holes[i])
            means, logs = [], []
            for p in range(2):
                clean, own = C[p], model.noise_variances_[p] * np.eye(6)
                noisy = clean if extra is None else clean + extra**2 * np.eye(6)
                cross = clean - own if extra is None else clean
                off = holes[i][o] - model.means_[p][o]
                solved = np.linalg.solve(noisy[np.ix_(o, o)], off)
                means.append(model.means_[p] + cross[:, o] @ solved)
                log_det = np.linalg.slogdet(noisy[np.ix_(o, o)])[1]
                logs.append(np.log(model.weights_[p]) - 0.5 * (log_det + off @ solved))
            w = np.exp(np.array(logs) - max(logs))
            assert_allclose(found[i], (w / w.sum()) @ np.array(means))
    filled = model.impute(holes)
    seen = ~np.isnan(holes)
    assert np.array_equal(filled[seen], holes[seen])
    assert_allclose(filled[~seen], model.reconstruct(holes)[~seen])
    assert np.array_equal(model.predict(holes), responsibilities.argmax(axis=1))
    if noise == "shared":
        assert len(set(model.noise_variances_)) == 1
    if noise == 0.7:
        assert_allclose(model.noise_variances_, 0.49)


def test_distances_are_mahalanobis():
    model = SubspaceMixture(2, 2, random_state=0).fit(X)
    for p, C in enumerate(covariances(model)):
        off = X - model.means_[p]
        expected = np.sqrt(np.einsum("nm,nm->n", off, np.linalg.solve(C, off.T).T))
        assert_allclose(model.transform(X)[:, p], expected)


def test_shrinkage_denoises_better_than_projection():
    data = make_union_of_subspaces(
        (200, 200), n_features=20, subspace_dim=4, noise=0.0, random_state=0
    )
    noisy = data.X + 0.1 * np.random.default_rng(0).standard_normal(data.X.shape)
    for model, given in (
        (SubspaceMixture(2, 4, random_state=0).fit(noisy), None),
        (SubspaceMixture(2, 4, random_state=0).fit(data.X), 0.1),
    ):
        error = np.linalg.norm(model.reconstruct(noisy, noise=given) - data.X)
        assert error < 0.6 * np.linalg.norm(noisy - data.X)


def test_bic_finds_the_number_of_blobs():
    rng = np.random.default_rng(0)
    blobs = np.concatenate([rng.standard_normal((80, 3)) + c for c in ([0, 0, 9], [9, 0, 0])])
    scores = [
        SubspaceMixture(L, 0, closeness=0.0, random_state=0).fit(blobs).bic(blobs)
        for L in (1, 2, 3, 4)
    ]
    assert np.argmin(scores) == 1
    assert_allclose(
        scores[0], GaussianMixture(1, covariance_type="spherical").fit(blobs).bic(blobs), rtol=1e-4
    )


def test_float32_and_scale():
    single = SubspaceMixture(2, 2, random_state=0).fit(X.astype(np.float32))
    assert single.bases_.dtype == np.float32
    assert single.reconstruct(X.astype(np.float32)).dtype == np.float32
    model = SubspaceMixture(2, 2, random_state=0).fit(X)
    assert_allclose(single.score(X), model.score(X), rtol=1e-3)
    scaled = SubspaceMixture(2, 2, random_state=0).fit(1000 * X)
    assert np.array_equal(scaled.labels_, model.labels_)
    assert_allclose(scaled.score(1000 * X), model.score(X) - 6 * np.log(1000), rtol=1e-6)


def test_odd_input():
    holes = mask_entries(X, 0.3, random_state=0)
    holes[3] = np.nan  # teaches nothing
    model = SubspaceMixture(2, 2, random_state=0).fit(holes)
    assert model.score_samples(holes)[3] == pytest.approx(0.0, abs=1e-9)
    assert_allclose(model.impute(holes)[3], model.weights_ @ model.means_)
    with pytest.raises(ValueError, match="never observed"):
        SubspaceMixture().fit(np.where(np.arange(6) == 2, np.nan, X))
    with pytest.raises(ValueError, match="too few for n_subspaces=9"):
        SubspaceMixture(9, 1).fit(X[:5])
    with pytest.raises(ValueError, match="smaller than n_features=6"):
        SubspaceMixture(1, 6).fit(X)
    with pytest.raises(ValueError, match="'noise' parameter of reconstruct"):
        model.reconstruct(X, noise=-1)
    with pytest.raises(ValueError, match="'n_samples' parameter of sample must be an int"):
        model.sample(0)
    constant = SubspaceMixture(2, 1, random_state=0).fit(np.ones((20, 3)))
    assert np.isfinite(constant.score(np.ones((4, 3))))
    assert_allclose(constant.reconstruct(np.ones((4, 3))), 1)


def test_it_works_in_a_search_and_with_frames():
    frame = pd.DataFrame(mask_entries(X, 0.1, random_state=0), columns=list("abcdef"))
    search = GridSearchCV(SubspaceMixture(2, random_state=0), {"subspace_dim": [1, 4]}, cv=3)
    assert search.fit(frame).best_params_["subspace_dim"] == 4
    table = search.best_estimator_.set_output(transform="pandas").transform(frame)
    assert list(table.columns) == ["subspacemixture0", "subspacemixture1"]
    assert search.best_estimator_.fit_predict(frame).shape == (150,)
