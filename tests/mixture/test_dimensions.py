"""Subspaces of unequal dimension: padded bases, which slot is which, all methods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from polyspan import SubspaceMixture
from polyspan.datasets import mask_entries
from polyspan.geometry import range_basis
from polyspan.metrics import clustering_error
from polyspan.mixture._solve.noise import NoiseRule, fit_low_rank
from polyspan.storage.models import load_model, save_model


def draw_union(dims, n, n_features, seed, noise=0.01, spread=0.2):
    """Return samples near a chain of subspaces, as `make_union_of_subspaces`, and labels."""
    rng = np.random.RandomState(seed)
    frame, X = range_basis(rng.standard_normal((n_features, max(dims)))), []
    for dim in dims:
        c = rng.standard_normal((n, dim))
        X.append(c / np.linalg.norm(c, axis=1, keepdims=True) @ frame[:, :dim].T)
        frame = range_basis(frame + spread * rng.uniform(size=frame.shape))
    X = np.concatenate(X)
    X += rng.standard_normal(X.shape) * np.sqrt(noise / n_features)
    return X, np.repeat(np.arange(len(dims)), n)


X, LABELS = draw_union((3, 6, 12), 150, 40, seed=0)
HOLES = mask_entries(X, 0.2, random_state=0)
SMALL, SMALL_LABELS = draw_union((1, 3), 50, 8, seed=0, spread=0.8)
SMALL_HOLES = mask_entries(SMALL, 0.15, random_state=0)


def covariances(model):
    low = np.einsum("lms,ls,lns->lmn", model.bases_, model.variances_, model.bases_)
    return low + model.noise_variances_[:, None, None] * np.eye(low.shape[1])


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("dims", [(3, 6, 12), (12, 3, 6)])
def test_dimensions_find_their_samples(data, dims):
    model = SubspaceMixture(3, dims, affine=False, random_state=0).fit(data)
    assert clustering_error(LABELS, model.labels_) == 0
    assert tuple(model.subspace_dims_) == dims
    assert model.bases_.shape == (3, 40, 12)
    assert np.diff(model.log_likelihood_history_).min() > -1e-7
    sizes = [3, 6, 12]
    for p, dim in enumerate(dims):
        own = model.bases_[p][:, :dim]
        assert_allclose(own.T @ own, np.eye(dim), atol=1e-9)
        assert not model.bases_[p][:, dim:].any()
        assert not model.variances_[p][dim:].any()
        truth = LABELS[model.labels_ == p]
        assert (truth == sizes.index(dim)).all()


@pytest.mark.parametrize("data", [SMALL, SMALL_HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("noise", ["subspace", "shared", 0.1])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("closeness", [0.0, 2.0])
def test_the_likelihood_never_falls(data, noise, affine, closeness):
    model = SubspaceMixture(
        3, (0, 1, 3), noise=noise, affine=affine, closeness=closeness, random_state=0, tol=1e-7
    ).fit(data)
    assert np.diff(model.log_likelihood_history_).min() > -1e-7
    assert tuple(model.subspace_dims_) == (0, 1, 3)


@pytest.mark.parametrize("kind", ["subspace", "shared", "fixed"])
def test_the_exact_update_beats_its_neighbours(kind):
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((3, 6, 9))
    M = roots @ roots.transpose(0, 2, 1) / 9
    counts, dims = np.array([5.0, 2.0, 8.0]), (4, 0, 2)
    rule = NoiseRule(kind, 1e-3, 0.4)
    bases, variances, noise = fit_low_rank(M, counts, dims, rule)

    def value(variances, noise):
        C = np.einsum("lms,ls,lns->lmn", bases, variances, bases)
        C = C + noise[:, None, None] * np.eye(6)
        logs = np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, M), axis1=1, axis2=2)
        return -0.5 * counts @ logs

    best = value(variances, noise)
    for _ in range(50):
        steps = np.exp(0.05 * rng.standard_normal((3, 4)))
        change = np.exp(0.05 * rng.standard_normal(3 if kind == "subspace" else 1))
        if kind == "fixed":
            change = 1.0
        # What the noise gives up or takes, the variances along the basis may take or give.
        moved = (variances + noise[:, None]) * steps - (noise * change)[:, None]
        moved = np.maximum(moved, 0) * (np.arange(4) < np.array(dims)[:, None])
        assert value(moved, noise * change) <= best + 1e-9


@pytest.mark.parametrize("data", [SMALL, SMALL_HOLES], ids=["complete", "holes"])
def test_equal_dimensions_give_the_bits_of_one(data):
    one = SubspaceMixture(3, 2, random_state=0).fit(data)
    for dims in ([2, 2, 2], np.array([2, 2, 2])):
        same = SubspaceMixture(3, dims, random_state=0).fit(data)
        assert np.array_equal(same.bases_, one.bases_)
        assert same.log_likelihood_ == one.log_likelihood_


@pytest.mark.parametrize("data", [SMALL, SMALL_HOLES], ids=["complete", "holes"])
def test_methods_are_those_of_the_dense_covariances(data, tmp_path):
    model = SubspaceMixture(2, (1, 3), random_state=0).fit(data)
    C = covariances(model)
    for i in range(0, len(data), 13):
        o = ~np.isnan(data[i])
        logs, fills = [], []
        for p in range(2):
            mean, K = model.means_[p], C[p]
            seen = K[np.ix_(o, o)]
            logs.append(multivariate_normal.logpdf(data[i][o], mean[o], seen))
            clean = K - model.noise_variances_[p] * np.eye(8)
            fills.append(mean + clean[:, o] @ np.linalg.solve(seen, data[i][o] - mean[o]))
        weights = model.weights_ * np.exp(logs - np.max(logs))
        assert_allclose(
            model.score_samples(data)[i], np.log(weights.sum()) + np.max(logs), rtol=1e-8
        )
        expected = weights / weights.sum() @ np.array(fills)
        assert_allclose(model.reconstruct(data)[i], expected, atol=1e-8)
        assert_allclose(model.impute(data)[i][~o], expected[~o], atol=1e-8)
    drawn, labels = model.sample(4000, random_state=0)
    for p in range(2):
        assert_allclose(np.cov(drawn[labels == p].T), C[p], atol=0.05)
    free = 1 + 2 * 8 + (8 * 1) + (8 * 3 - 3) + 2
    log_likelihood = model.score_samples(data).sum()
    assert_allclose(model.bic(data), -2 * log_likelihood + free * np.log(len(data)))
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert tuple(loaded.subspace_dims_) == (1, 3)
    assert np.array_equal(loaded.predict(data), model.predict(data))


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_a_warm_start_keeps_the_dimensions():
    model = SubspaceMixture(2, (1, 3), random_state=0, max_iter=3, tol=0.0, warm_start=True)
    first = model.fit(SMALL_HOLES).log_likelihood_
    again = model.fit(SMALL_HOLES)
    assert_allclose(again.log_likelihood_history_[0], first, rtol=1e-9)
    assert tuple(again.subspace_dims_) == (1, 3)
    with pytest.raises(ValueError, match="warm_start goes on"):
        model.set_params(subspace_dim=(3, 1)).fit(SMALL_HOLES)


def test_labels_name_the_slots():
    model = SubspaceMixture(2, (1, 3), init=SMALL_LABELS).fit(SMALL)
    swapped = SubspaceMixture(2, (3, 1), init=1 - SMALL_LABELS).fit(SMALL)
    assert_allclose(model.log_likelihood_, swapped.log_likelihood_, rtol=1e-9)
    assert np.array_equal(model.labels_, 1 - swapped.labels_)
    assert np.mean(model.labels_ == SMALL_LABELS) > 0.8


@pytest.mark.parametrize(
    ("dims", "message"),
    [((1, 2), "one for each"), ((1, 2, 8), "smaller than n_features"), ((1, -2, 3), "0 or more"),
     ((1, 2.5, 3), "sequence of ints"), ([[1, 2, 3]], "sequence of ints"),
     ("many", "subspace_dim")],
)  # fmt: skip
def test_bad_dimensions(dims, message):
    with pytest.raises(ValueError, match=message):
        SubspaceMixture(3, dims).fit(SMALL)


@pytest.mark.parametrize("holes", [0.0, 0.15])
def test_the_dimensions_of_two_subspaces(holes):
    X, labels = draw_union((2, 5), 150, 15, seed=200, noise=0.05, spread=0.4)
    if holes:
        X = mask_entries(X, holes, random_state=0)
    model = SubspaceMixture(2, "auto", affine=False, n_init=2, random_state=0).fit(X)
    first = int(np.bincount(model.labels_[labels == 0]).argmax())
    assert model.subspace_dims_[first] == 2
    assert model.subspace_dims_[1 - first] == 5
    if not holes:
        again = SubspaceMixture(2, "auto", affine=False, n_init=2, random_state=0).fit(X)
        assert np.array_equal(again.bases_, model.bases_)


def test_auto_with_weights_groups_and_outliers():
    X, _ = draw_union((2,), 120, 8, seed=101, noise=0.02)
    X[:6] = np.random.default_rng(0).uniform(X.min(), X.max(), (6, 8))
    groups = np.where(np.arange(120) % 2, "a", "b")
    model = SubspaceMixture(1, "auto", outliers=True, random_state=0)
    model.fit(X, sample_weight=np.where(np.arange(120) < 100, 1.0, 2.0), noise_groups=groups)
    assert model.subspace_dims_.tolist() == [2]


def test_noise_alone_needs_no_directions():
    X = np.random.default_rng(0).standard_normal((200, 6))
    assert SubspaceMixture(1, "auto", random_state=0).fit(X).subspace_dims_.tolist() == [0]
