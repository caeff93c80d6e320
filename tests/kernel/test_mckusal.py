"""MCKUSaL and RobustMCKUSaL: fits, predictions, pre-images, and errors for bad input."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, make_circles
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from polyspan import MCKUSaL, MiCUSaL, RobustMCKUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.kernels import Kernel
from polyspan.metrics import clustering_error, subspace_distance

CIRCLES, SIDES = make_circles(120, factor=0.3, noise=0.03, random_state=0)
DIGITS = load_digits(n_class=2)
X2 = DIGITS.data[:120] / np.linalg.norm(DIGITS.data[:120], axis=1, keepdims=True)
Y2 = DIGITS.target[:120]

K2 = Kernel("rbf")(X2)


def fitted(**kw):
    return MCKUSaL(**{"n_subspaces": 2, "subspace_dim": 8, "random_state": 0, **kw}).fit(X2)


def test_circles_and_digits():
    model = MCKUSaL(2, 4, gamma=2.0, random_state=0).fit(CIRCLES)
    assert clustering_error(SIDES, model.labels_) == 0
    assert clustering_error(SIDES, model.predict(CIRCLES)) == 0
    assert model.converged_
    assert model.objective_ == model.objective_history_[-1]
    assert clustering_error(Y2, fitted().labels_) < 0.02
    assert clustering_error(Y2, fitted(residual="loo").labels_) < 0.02
    assert clustering_error(Y2, fitted(low_rank=60, gamma=1.0).labels_) < 0.02
    assert clustering_error(Y2, fitted(low_rank=60, gamma=1.0, residual="loo").labels_) < 0.02


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_labels_and_residuals_of_a_fit(kernel):
    model = fitted(kernel=kernel, gamma=1.0)
    assert np.array_equal(model.predict(X2), model.labels_)
    distances = model.transform(X2)
    assert np.array_equal(distances.argmin(axis=1), model.labels_)
    residual = np.sum(distances.min(axis=1) ** 2)
    closeness = np.sum(model.subspace_distances_**2)
    assert_allclose(model.objective_, closeness + model.lam_ * residual, rtol=1e-7)
    assert_allclose(model.score(X2), -residual / len(X2))
    assert_allclose(model.score_samples(X2), -(distances.min(axis=1) ** 2))
    K = Kernel(kernel, gamma=1.0)(X2)
    given = MCKUSaL(2, 8, kernel="precomputed", random_state=0).fit(K)
    assert np.array_equal(given.labels_, model.labels_)
    assert np.array_equal(given.predict(K), model.labels_)
    assert_allclose(given.fit_transform(K), distances, atol=1e-6)


def test_a_linear_kernel_is_the_linear_model():
    """With one subspace both are PCA; with two both reach the same subspaces."""
    data = make_union_of_subspaces(
        (60, 60), n_features=15, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
    )
    linear = MiCUSaL(2, 2, solver="exact", random_state=0).fit(data.X)
    kernel = MCKUSaL(2, 2, kernel="linear", init=linear.labels_, tol=0).fit(data.X)
    assert np.array_equal(kernel.labels_, linear.labels_)
    centred = data.X - data.X.mean(axis=0)
    for p, (c, E) in enumerate(zip(kernel.members_, kernel.coefs_, strict=True)):
        basis = centred[c].T @ E
        assert_allclose(basis.T @ basis, np.eye(2), atol=1e-8)
        # Confined to the span of its own samples, which here is nearly all of the space.
        assert subspace_distance(basis, linear.bases_[p]) < 0.05
    assert_allclose(kernel.transform(data.X_test), linear.transform(data.X_test), atol=0.02)
    rebuilt = kernel.reconstruct(data.X_test)
    assert_allclose(rebuilt, linear.reconstruct(data.X_test), atol=0.05)


def test_one_subspace_is_kernel_pca():
    model = fitted(n_subspaces=1, gamma=1.0)
    pca = KernelPCA(8, kernel="rbf", gamma=1.0).fit(X2)
    energy = np.sum(pca.transform(X2[:10]) ** 2, axis=1)
    norms = model.transform(X2[:10])[:, 0] ** 2 + energy
    kernel = Kernel("rbf", gamma=1.0)
    K = kernel(X2)
    expected = 1 - 2 * K[:10].mean(axis=1) + K.mean()
    assert_allclose(norms, expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("cls", [MCKUSaL, RobustMCKUSaL])
def test_samples_in_their_subspace_are_their_own_preimage(cls, kernel):
    """With as many directions as a cluster has samples, each sample is in its subspace."""
    X = np.random.RandomState(0).standard_normal((12, 6))
    labels = np.repeat([0, 1], 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cls(2, 6, kernel=kernel, gamma=0.2, init=labels, random_state=0).fit(X)
    assert_allclose(model.reconstruct(X), X, atol=1e-6)


def test_preimages_denoise_and_polishing_changes_them():
    rng = np.random.RandomState(0)
    noisy = X2 + rng.standard_normal(X2.shape) * np.sqrt(0.4 / 64)
    for kw in ({"gamma": 0.5}, {"kernel": "poly", "gamma": 1.0}, {"gamma": 0.5, "low_rank": 60}):
        model = fitted(subspace_dim=15, **kw)
        denoised = model.reconstruct(noisy)
        assert np.sum((denoised - X2) ** 2) < 0.6 * np.sum((noisy - X2) ** 2)
    plain = fitted(gamma=2.0, subspace_dim=15).reconstruct(noisy)
    polished = fitted(gamma=2.0, subspace_dim=15, preimage="fixed_point").reconstruct(noisy)
    assert not np.allclose(plain, polished)
    assert np.sum((polished - X2) ** 2) < 0.6 * np.sum((noisy - X2) ** 2)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_robust_equals_plain_where_nothing_is_missing(kernel):
    plain = fitted(kernel=kernel, gamma=0.5)
    robust = RobustMCKUSaL(2, 8, kernel=kernel, gamma=0.5, random_state=0).fit(X2)
    assert np.array_equal(robust.labels_, plain.labels_)
    assert robust.objective_ == plain.objective_
    Z = DIGITS.data[120:160] / 40
    assert_allclose(robust.transform(Z), plain.transform(Z), atol=1e-6)
    assert_allclose(robust.reconstruct(Z), plain.reconstruct(Z), atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_holes_in_training_and_in_new_data(kernel):
    holes = mask_entries(X2, 0.2, random_state=0)
    model = RobustMCKUSaL(2, 8, kernel=kernel, gamma=1.0, random_state=0).fit(holes)
    assert clustering_error(Y2, model.labels_) < 0.05
    # Values of new samples are mended as those of the training samples were.
    assert np.array_equal(model.predict(holes), model.labels_)
    assert np.isfinite(model.transform(holes)).all()
    filled = model.impute(holes)
    seen = ~np.isnan(holes)
    assert np.array_equal(filled[seen], X2[seen])
    if kernel == "rbf":
        mean = np.broadcast_to(np.nanmean(holes, axis=0), X2.shape)
        assert np.mean((filled - X2)[~seen] ** 2) < 0.7 * np.mean((mean - X2)[~seen] ** 2)
    elif kernel == "poly":
        paper = RobustMCKUSaL(2, 8, kernel=kernel, gamma=1.0, random_state=0, preimage="paper").fit(
            holes
        )
        worse = np.sum((paper.reconstruct(holes) - X2) ** 2)
        assert np.sum((model.reconstruct(holes) - X2) ** 2) < worse


def test_pairs_without_common_entries_are_reported():
    X = np.random.RandomState(0).standard_normal((20, 4))
    X[0, :2] = X[1, 2:] = np.nan
    with pytest.warns(UserWarning, match="1 of 190 pairs"):
        RobustMCKUSaL(2, 2, random_state=0).fit(X)


def test_starts():
    one = fitted(init="gkiop", gkiop_seeds=[0, 1], gamma=1.0)
    assert len(one.runs_) == 1
    many = fitted(init="gkiop", n_init=5, gamma=1.0)
    assert len(many.runs_) == 5
    assert many.objective_ == min(run.objective for run in many.runs_)
    assert len(fitted(init="gkiop", gamma=1.0).runs_) == 8
    assert len(fitted().runs_) == 1
    again = fitted(init=one.labels_, gamma=1.0)
    assert again.n_iter_ == 0
    with pytest.warns(RuntimeWarning, match="n_init=3 is not used"):
        fitted(init=one.labels_, n_init=3)
    loo = fitted(init="gkiop", residual="loo", n_init=2)
    assert loo.runs_[0].criterion != loo.runs_[0].objective


def test_starts_of_low_rank():
    low = {"low_rank": 60, "gamma": 1.0, "max_iter": 300}
    for init in ("spectral", Y2):
        assert clustering_error(Y2, fitted(init=init, **low).labels_) < 0.1
    # Seeds of one digit twice, or of both: other starts, and so other first objectives.
    zeros, ones = np.flatnonzero(Y2 == 0), np.flatnonzero(Y2 == 1)
    values = [
        fitted(init="gkiop", gkiop_seeds=seeds, **low).objective_history_[0]
        for seeds in ([zeros[0], zeros[1]], [zeros[0], ones[0]])
    ]
    assert values[0] != values[1]
    many = fitted(init="gkiop", n_init=6, subspace_dim=3, **low)
    assert many.objective_ == min(run.objective for run in many.runs_)
    assert len({run.objective for run in many.runs_}) > 1


def test_starts_with_leave_one_out_are_compared_by_its_residuals():
    rng = np.random.RandomState(3)
    X = rng.standard_normal((60, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MCKUSaL(
            3, 3, init="gkiop", n_init=8, residual="loo", gamma=0.3, random_state=0
        ).fit(X)
    best = min(model.runs_, key=lambda run: run.criterion)
    assert np.array_equal(best.labels, model.labels_)
    assert best.objective > min(run.objective for run in model.runs_)


def test_leave_one_out_says_when_labels_did_not_settle():
    X = np.random.RandomState(0).standard_normal((60, 6))
    with pytest.warns(ConvergenceWarning, match="did not settle in 30 steps"):
        model = MCKUSaL(3, 3, residual="loo", random_state=0).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 30


def test_bits_repeat_whatever_n_jobs():
    fits = [fitted(init="gkiop", n_init=4, gamma=1.0, n_jobs=n) for n in (None, 1, 2)]
    for other in fits[1:]:
        assert np.array_equal(fits[0].labels_, other.labels_)
        assert fits[0].objective_ == other.objective_
        assert all(np.array_equal(a, b) for a, b in zip(fits[0].coefs_, other.coefs_, strict=True))


def test_low_rank_with_all_landmarks_measures_the_same_residuals():
    model = fitted(low_rank=120, gamma=1.0, n_subspaces=1)
    full = fitted(gamma=1.0, n_subspaces=1)
    assert_allclose(model.objective_, full.objective_, rtol=1e-5)
    assert_allclose(model.transform(X2), full.transform(X2), atol=1e-3)
    assert_allclose(model.reconstruct(X2), full.reconstruct(X2), atol=1e-3)
    for c, E in zip(model.members_, model.coefs_, strict=True):
        K = Kernel("rbf", gamma=1.0)(X2[c])
        assert_allclose(E.T @ K @ E, np.eye(8), atol=1e-8)


def test_low_rank_counts_what_the_landmarks_do_not_span():
    exact = MCKUSaL(2, 8, gamma=5.0, random_state=0).fit(X2[:100])
    scores = []
    for low_rank in (100, 40, 15):
        model = MCKUSaL(2, 8, gamma=5.0, low_rank=low_rank, random_state=0).fit(X2[:100])
        far = model.transform(np.full((1, 64), 30.0))
        # A far sample has κ̃(z, z) = 1 - 0 + the mean of all values.
        assert_allclose(far, exact.transform(np.full((1, 64), 30.0)), rtol=0.1)
        scores.append(model.score(X2[100:]))
        residual = np.sum(model.transform(X2[:100]).min(axis=1) ** 2)
        closeness = np.sum(model.subspace_distances_**2)
        assert_allclose(model.objective_, closeness + model.lam_ * residual, rtol=1e-6)
    assert scores[0] > scores[1] > scores[2]


@pytest.mark.parametrize("scale", [1e-80, 1e80])
def test_low_rank_objective_is_in_the_units_of_the_data(scale):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 5)) * np.linspace(1, 0.2, 5)
    values = [
        MCKUSaL(2, 2, kernel="linear", lam=float("inf"), low_rank=30, random_state=0)
        .fit(X * a)
        .objective_
        / a**2
        for a in (1.0, scale)
    ]
    assert_allclose(values[1], values[0], rtol=1e-8)


def test_low_rank_keeps_as_many_directions_as_there_are():
    X = np.random.RandomState(0).standard_normal((60, 5))
    with pytest.warns(UserWarning, match="fewer than subspace_dim=8"):
        model = MCKUSaL(2, 8, kernel="linear", low_rank=30, random_state=0).fit(X)
    assert model.coefs_[0].shape == (30, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flat = MCKUSaL(2, 1, kernel="linear", low_rank=5, random_state=0).fit(np.zeros((10, 3)))
    assert np.isfinite(flat.transform(np.zeros((2, 3)))).all()


@pytest.mark.parametrize("residual", ["plain", "loo"])
def test_as_many_subspaces_as_samples(residual):
    X = np.random.RandomState(0).standard_normal((3, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert MCKUSaL(residual=residual, random_state=0).fit(X).labels_.shape == (3,)


def test_a_fitted_model_does_not_follow_its_parameters():
    model = fitted(gamma=1.0)
    rebuilt, distances = model.reconstruct(X2), model.transform(X2)
    model.set_params(n_subspaces=5, kernel="poly")
    assert np.array_equal(model.reconstruct(X2), rebuilt)
    assert np.array_equal(model.transform(X2), distances)
    assert len(model.get_feature_names_out()) == 2


def test_incomplete_samples_are_judged_one_by_one():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 4))
    for row in X:
        row[rng.choice(4, 2, replace=False)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobustMCKUSaL(2, 3, gamma=0.3, random_state=0).fit(X)
        together = model.transform(X)
        alone = np.concatenate([model.transform(X[i : i + 1]) for i in range(40)])
    assert_allclose(alone, together, atol=1e-10)
    with pytest.warns(UserWarning, match="of new and training samples have no common"):
        model.predict(X)


def test_a_sample_that_shares_an_entry_with_one_other_only():
    X = np.random.RandomState(0).standard_normal((20, 3))
    X[1:, 2] = np.nan
    X[1] = [np.nan, np.nan, 1.0]
    with pytest.warns(UserWarning, match="18 of 190 pairs"):
        model = RobustMCKUSaL(2, 2, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="of new and training samples"):
        assert np.isfinite(model.reconstruct(X)).all()
    with pytest.raises(ValueError, match="have no observed entry"):
        model.predict(np.full((1, 3), np.nan))


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_scaling_samples_with_holes(scale):
    data = make_union_of_subspaces(
        (60, 60), n_features=10, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
    )
    X = data.X.copy()
    X[3, 4] = np.nan
    fits = [
        RobustMCKUSaL(2, 2, kernel="linear", lam=4.0 / a**2, random_state=0).fit(X * a)
        for a in (1.0, scale)
    ]
    assert_allclose(fits[1].objective_, fits[0].objective_, rtol=1e-6)
    assert np.array_equal(fits[1].labels_, fits[0].labels_)


def test_the_robust_model_refuses_what_the_plain_one_refuses():
    with pytest.raises(ValueError, match="not positive semidefinite"):
        RobustMCKUSaL(2, 8, kernel="poly", coef0=-5.0, gamma=1.0).fit(X2)


def test_pickles_and_callables():
    model = fitted(kernel=_dot, gamma=None, kernel_params={"scale": 2.0})
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X2), model.predict(X2))
    with pytest.raises(ValueError, match="has no pre-image"):
        model.reconstruct(X2)


def _dot(x, y, scale=1.0):
    return scale * (x @ y)


def test_a_small_cluster_keeps_what_it_has_and_says_so():
    labels = np.zeros(120, dtype=int)
    labels[:3] = 1
    with pytest.warns(UserWarning, match="fewer than subspace_dim=8"):
        MCKUSaL(2, 8, init=labels, max_iter=1, tol=1.0).fit(X2)


def test_identical_samples():
    X = np.ones((20, 3))
    with pytest.warns(UserWarning, match="fewer than subspace_dim=2"):
        model = MCKUSaL(2, 2, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert_allclose(model.transform(X), 0, atol=1e-6)
    assert_allclose(model.reconstruct(X), X, atol=1e-6)
    for kernel in ("linear", "poly", "rbf"):  # these do not centre to exact zeros
        with pytest.warns(UserWarning, match="fewer than subspace_dim=2"):
            same = MCKUSaL(2, 2, kernel=kernel).fit(np.tile([0.1, 0.2, 0.3], (23, 1)))
        assert max(np.abs(E).max(initial=0.0) for E in same.coefs_) < 1e6
    doubled = np.repeat(X2[:30], 2, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(MCKUSaL(2, 5, random_state=0).fit(doubled).reconstruct(doubled)).all()


def test_max_iter_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        MCKUSaL(2, 8, init="gkiop", n_init=1, max_iter=1, tol=0, random_state=3).fit(X2)


@pytest.mark.parametrize(
    ("params", "X", "words"),
    [
        ({"gamma": 0.0}, X2, "gamma"),
        ({"gamma": -1.0}, X2, "gamma"),
        ({"lam": 0.0}, X2, "lam"),
        ({"lam": float("nan")}, X2, "lam"),
        ({"kernel": "nonsense"}, X2, "kernel"),
        ({"subspace_dim": 61}, X2, "fewer than n_subspaces"),
        ({"init": np.zeros(5, dtype=int)}, X2, r"shape \(5,\)"),
        ({"init": np.full(120, 2)}, X2, "between 0 and n_subspaces - 1 = 1"),
        ({"init": np.zeros(120)}, X2, "float64"),
        ({"init": "gkiop", "gkiop_seeds": [0, 0]}, X2, "different samples"),
        ({"init": "gkiop", "gkiop_seeds": [0]}, X2, "different samples"),
        ({"init": "gkiop", "gkiop_seeds": [0, 120]}, X2, "different samples"),
        ({"gkiop_seeds": [0, 1]}, X2, "init='gkiop'"),
        ({"kernel": "precomputed"}, K2[:, :50], "needs a square one"),
        ({"kernel": "precomputed"}, K2 + np.eye(120, k=1), "not symmetric"),
        ({"kernel": "precomputed"}, K2 - 2 * np.eye(120), "eigenvalues go from"),
        ({"kernel": "precomputed", "low_rank": 5}, K2, "low_rank needs the samples"),
        ({"low_rank": 8}, X2, "gives 8 landmarks"),
        ({"low_rank": 60, "kernel": "poly", "coef0": -5.0, "gamma": 1.0}, X2, "not positive semi"),
        ({"low_rank": 60, "kernel": "poly", "degree": 200, "gamma": 1e9}, X2, "not finite"),
        ({"kernel": "precomputed"}, np.where(K2 > 0.99999, np.nan, K2), "must be complete"),
        ({"kernel": "poly", "coef0": -5.0, "gamma": 1.0}, X2, "not positive semidefinite"),
        ({"kernel": "poly", "degree": 200, "gamma": 1e9}, X2, "not finite"),
        ({}, np.where(np.eye(120, 64) > 0, np.nan, X2), "RobustMCKUSaL"),
    ],
)
def test_bad_input(params, X, words):
    before = X.copy()
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=words):
        MCKUSaL(**{"n_subspaces": 2, "subspace_dim": 8, "random_state": 0, **params}).fit(X)
    assert np.array_equal(before, X, equal_nan=True)


def test_bad_input_after_fit():
    with pytest.raises(NotFittedError):
        MCKUSaL().predict(X2)
    with pytest.raises(NotFittedError):
        MCKUSaL().reconstruct(X2)
    with pytest.raises(ValueError, match="degree=2"):
        fitted(kernel="poly", degree=2).reconstruct(X2)
    given = MCKUSaL(2, 8, kernel="precomputed", random_state=0).fit(K2)
    with pytest.raises(ValueError, match="50 features"):
        given.predict(K2[:, :50])
    with pytest.raises(ValueError, match="samples are not known"):
        given.reconstruct(K2)
    linear = MCKUSaL(2, 8, kernel="precomputed", random_state=0).fit(DIGITS.data @ DIGITS.data.T)
    with pytest.raises(ValueError, match="κ\\(z, z\\)"):
        linear.transform(DIGITS.data @ DIGITS.data.T)


@pytest.mark.parametrize(("rows", "words"), [(True, "no observed entry"), (False, "columns")])
def test_bad_holes(rows, words):
    X = X2.copy()
    if rows:
        X[3] = np.nan
    else:
        X[:, 3] = np.nan
    with pytest.raises(ValueError, match=words):
        RobustMCKUSaL(2, 8, random_state=0).fit(X)


@pytest.mark.parametrize("low_rank", [None, 3])
def test_a_sample_whose_norm_overflows_is_named_as_a_cause(low_rank):
    """Its kernel values with small samples are finite, that with itself is not."""
    X = np.random.default_rng(0).standard_normal((12, 4))
    model = MCKUSaL(2, 1, kernel="linear", low_rank=low_rank, random_state=0)
    large = np.concatenate([X, np.full((1, 4), 1e180)])
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="not finite: scale X"):
        model.fit(large)
    model.fit(X)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="not finite: scale X"):
        model.transform(large)
