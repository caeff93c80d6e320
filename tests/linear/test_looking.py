"""Coordinates and memberships of samples, and the variance of the noise."""

import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

from polyspan import (
    AdaptiveMiCUSaL,
    MCKUSaL,
    MiCUSaL,
    RobustMiCUSaL,
    SubspaceClustering,
    SubspaceMixture,
    baselines,
)
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.linear.looking import noise_variance

DATA = make_union_of_subspaces(
    (40, 40, 40), n_features=16, subspace_dim=3, spread=0.3, noise=0.05, random_state=0
)
X = DATA.X + 0.3  # with a mean to subtract
HOLES = mask_entries(X, 0.3, random_state=0)
MODELS = [
    (MiCUSaL(3, 3, random_state=0), X),
    (MiCUSaL(3, 3, center=False, random_state=0), X.astype(np.float32)),
    (MiCUSaL(3, 2, affine=True, n_init=2, random_state=0), X),
    (MiCUSaL(3, 0, affine=True, n_init=2, lam=float("inf"), random_state=0), X),
    (AdaptiveMiCUSaL(4, 4, random_state=0), X),
    (RobustMiCUSaL(3, 3, random_state=0), HOLES),
    (RobustMiCUSaL(3, 2, affine=True, n_init=2, random_state=0), HOLES),
    (baselines.KSubspaces(3, 3, random_state=0), X),
    (baselines.SparseSubspaceClustering(3, 3, random_state=0), X),
    (baselines.BlockSparseDictionary(3, 3, n_init=1, max_iter=5, random_state=0), X),
    (baselines.GROUSE(3, random_state=0), HOLES),
    (baselines.KGROUSE(3, 3, n_init=1, random_state=0), HOLES),
    (SubspaceClustering(3, random_state=0), X),
]


def centres(model, labels):
    return model.anchors_[labels] if hasattr(model, "anchors_") else model.mean_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "data"), MODELS, ids=lambda value: str(value)[:30])
def test_every_linear_model(model, data):
    model.fit(data)
    labels, found = model.predict(data), model.coordinates(data)
    assert (labels >= 0).all()
    assert found.shape == (len(data), model.bases_.shape[2])
    assert found.dtype == data.dtype
    rebuilt = centres(model, labels) + np.einsum("nms,ns->nm", model.bases_[labels], found)
    atol = 1e-5 if data.dtype == np.float32 else 1e-12
    assert_allclose(rebuilt, model.reconstruct(data), atol=atol)
    shares = model.memberships(data)
    assert shares.shape == (len(data), len(model.bases_))
    assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert np.array_equal(shares.argmax(axis=1), labels)
    residual = np.where(np.isnan(data), 0.0, data - model.reconstruct(data))
    freedom = (~np.isnan(data)).sum(axis=1) - model.subspace_dims_[labels]
    assert model.noise_variance_ == pytest.approx((residual**2).sum() / freedom.sum(), rel=1e-5)


def test_memberships_are_those_of_white_noise():
    model = MiCUSaL(3, 3, random_state=0).fit(X)
    logits = -(model.transform(X) ** 2) / (2 * model.noise_variance_)
    assert_allclose(model.memberships(X), softmax(logits, axis=1), rtol=1e-9)
    loud = MiCUSaL(3, 3, random_state=0).fit(X)
    loud.noise_variance_ = 1e6 * model.noise_variance_
    assert_allclose(loud.memberships(X), 1 / 3, atol=1e-3)


def test_the_noise_that_was_added_is_found():
    more = make_union_of_subspaces(
        (300, 300), n_features=16, subspace_dim=3, spread=0.6, noise=0.05, random_state=0
    )
    # λ=∞ does not pull at the subspaces.
    model = baselines.KSubspaces(2, 3, center=False, random_state=0).fit(more.X)
    assert model.noise_variance_ == pytest.approx(0.05 / 16, rel=0.05)
    holes = mask_entries(more.X, 0.2, random_state=0)
    robust = RobustMiCUSaL(2, 3, lam=float("inf"), random_state=0).fit(holes)
    assert robust.noise_variance_ == pytest.approx(0.05 / 16, rel=0.1)


def test_a_case_by_hand():
    model = MiCUSaL(2, 1, center=False, lam=float("inf"), random_state=0)
    model.fit(np.array([[1.0, 0], [2, 0], [0, 1], [0, 2]]))
    line = int(model.predict([[1.0, 0.0]])[0])
    assert np.abs(model.coordinates([[3.0, 1.0], [0.5, 2.0]])).tolist() == [[3.0], [2.0]]
    model.noise_variance_ = 2.0
    wanted = np.exp([-1 / 4, -9 / 4]) / np.exp([-1 / 4, -9 / 4]).sum()
    found = model.memberships([[3.0, 1.0]])[0]
    assert_allclose([found[line], found[1 - line]], wanted)
    model.noise_variance_ = 0.0  # what lies in the subspaces has no noise: labels are certain
    assert model.memberships([[3.0, 1.0]])[0, line] == 1.0


def test_memberships_do_not_depend_on_scale():
    one, other = (MiCUSaL(3, 3, lam=4 / a**2, random_state=0).fit(a * X) for a in (1.0, 1e3))
    assert_allclose(one.memberships(X), other.memberships(1e3 * X), atol=1e-9)
    assert other.noise_variance_ == pytest.approx(1e6 * one.noise_variance_)


def test_samples_that_cannot_be_judged_belong_to_all():
    model = RobustMiCUSaL(3, 3, random_state=0).fit(HOLES)
    few = HOLES[:2].copy()
    few[0, 2:] = np.nan
    shares = model.memberships(few)
    assert shares[0].tolist() == [1 / 3] * 3
    assert model.predict(few)[0] == -1
    assert shares[1].max() > 0.4
    variance = noise_variance(model, np.concatenate([few[:1], HOLES]))
    assert variance == pytest.approx(noise_variance(model, HOLES))


def test_unequal_dimensions():
    model = MiCUSaL(3, 3, random_state=0).fit(X)
    model.bases_ = model.bases_.copy()
    model.bases_[1, :, 1:] = 0.0
    labels, found = model.predict(X), model.coordinates(X)
    assert model.subspace_dims_.tolist() == [3, 1, 3]
    assert np.any(labels == 1)
    assert not found[labels == 1, 1:].any()
    rebuilt = model.mean_ + np.einsum("nms,ns->nm", model.bases_[labels], found)
    assert_allclose(rebuilt, model.reconstruct(X), atol=1e-12)
    freedom = 16 - np.array([3, 1, 3])[labels]
    wanted = (-model.score_samples(X)).sum() / freedom.sum()
    assert noise_variance(model, X) == pytest.approx(wanted)


def test_weights_of_the_noise_are_repeats():
    model = MiCUSaL(3, 3, random_state=0).fit(X)
    weights = np.arange(len(X)) % 3
    repeated = noise_variance(model, np.repeat(X, weights, axis=0))
    assert noise_variance(model, X, sample_weight=weights) == pytest.approx(repeated)


def test_rows_elsewhere():
    stored = zarr.array(X, chunks=(25, 16))
    model = MiCUSaL(3, 3, random_state=0).fit(stored)
    assert model.noise_variance_ == pytest.approx(noise_variance(model, X))
    assert_allclose(model.coordinates(stored), model.coordinates(X))
    import dask.array as dask

    lazy = dask.from_array(X, chunks=(25, 16))
    again = MiCUSaL(3, 3, random_state=0).fit(lazy)
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=1e-6)
    assert_allclose(again.coordinates(lazy).compute(), again.coordinates(X))
    assert_allclose(again.memberships(lazy).compute(), again.memberships(X))


def test_a_stream_knows_the_noise_of_its_batch():
    model = MiCUSaL(3, 3, random_state=0)
    for batch in np.split(np.random.RandomState(0).permutation(X), 3):
        model.partial_fit(batch)
    assert model.noise_variance_ == pytest.approx(noise_variance(model, batch))
    assert_allclose(model.memberships(batch).sum(axis=1), 1)


def test_mixture():
    model = SubspaceMixture(3, 3, random_state=0).fit(X)
    for data in (X, HOLES):
        assert np.array_equal(model.memberships(data), model.predict_proba(data))
        assert model.coordinates(data).shape == (len(data), 3)
    labels, found = model.predict(X), model.coordinates(X)
    plain = np.einsum("nms,nm->ns", model.bases_[labels], X - model.means_[labels])
    v, noise = model.variances_[labels], model.noise_variances_[labels][:, None]
    assert_allclose(found, plain * v / (v + noise), atol=1e-10)
    sure = model.memberships(X).max(axis=1) > 1 - 1e-9
    assert sure.any()
    rebuilt = model.means_[labels] + np.einsum("nms,ns->nm", model.bases_[labels], found)
    assert_allclose(rebuilt[sure], model.reconstruct(X)[sure], atol=1e-6)


def test_kernel_models():
    linear = MCKUSaL(3, 3, kernel="linear", random_state=0).fit(X)
    found, distances = linear.coordinates(X), linear.transform(X).min(axis=1)
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    assert_allclose((found**2).sum(axis=1) + distances**2, total)
    assert not hasattr(linear, "memberships")
    with pytest.raises(AttributeError, match=r"'memberships': .* MCKUSaL are not known, since the"):
        linear.memberships(X)
    for options in ({"kernel": "rbf"}, {"kernel": "rbf", "low_rank": 40}):
        model = MCKUSaL(3, 3, random_state=0, **options).fit(X)
        assert model.coordinates(X).shape == (len(X), 3)


def test_what_is_refused():
    with pytest.raises(NotFittedError):
        MiCUSaL(2, 1).coordinates(X)
    model = MiCUSaL(3, 3, random_state=0).fit(X)
    del model.noise_variance_
    with pytest.raises(ValueError, match="has no noise_variance_, which memberships need"):
        model.memberships(X)
    model.noise_variance_ = float("inf")
    with pytest.raises(ValueError, match="noise_variance_ is inf: residuals are too large"):
        model.memberships(X)
