"""Trimming of samples that are far from all others, in any unit of the data and of the weights."""

import array_api_strict
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

from polyspan import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL
from polyspan.data.missing import observed_mean
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.linear._solve.trimming import far_samples, kept_weights
from polyspan.metrics import average_subspace_distance

DATA = make_union_of_subspaces(random_state=0)
X = DATA.X[::5, :40]
N, M = X.shape
HOLES = mask_entries(X, 0.2, random_state=0)
START = np.linalg.qr(np.random.RandomState(0).standard_normal((3, M, 4)))[0]


def with_far(X, size, n=13):
    """Return the samples and some others, `size` times as large."""
    others = np.random.RandomState(0).standard_normal((n, X.shape[1])) / X.shape[1] ** 0.5
    found = np.concatenate([X, size * others]).astype(X.dtype)
    return found, np.arange(len(found)) >= len(X)


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [(np.float32, (30, 1e3, 1e4, 1e36)), (np.float64, (1e3, 1e10, 1e300))],
)
@pytest.mark.parametrize("kind", [MiCUSaL, RobustMiCUSaL])
def test_the_distance_of_outliers_does_not_matter(kind, dtype, sizes):
    clean = (X if kind is MiCUSaL else HOLES).astype(dtype)
    options = {"lam": 4.0, "init": "anneal", "center": True, "random_state": 0}
    expected = kind(3, 4, **options).fit(clean)
    for size in sizes:
        Z, outlier = with_far(clean, size)
        model = kind(3, 4, **options, trim=13 / 143).fit(Z)
        assert np.array_equal(model.trimmed_, outlier)
        assert_allclose(model.objective_, expected.objective_, rtol=1e-3)
        assert average_subspace_distance(model.bases_, expected.bases_) < 0.1
        assert_allclose(model.noise_variance_, expected.noise_variance_, rtol=1e-3)
        assert np.array_equal(model.labels_, model.predict(Z))


def test_the_alternation_goes_on_beside_a_large_sample():
    for size in (1e5, 1e9):  # the first is kept in the problem, the second left out of it
        Z = np.concatenate([np.full((1, M), size), X])
        # A part of one more sample is trimmed.
        model = MiCUSaL(3, 4, init=START, center=False, trim=1.3 / (N + 1)).fit(Z)
        twin = MiCUSaL(3, 4, init=START, center=False, trim=0.3 / N).fit(X)
        assert model.n_iter_ == twin.n_iter_ > 10
        assert_allclose(model.objective_history_, twin.objective_history_, rtol=1e-6)
        assert_allclose(model.objective_, twin.objective_, rtol=1e-6)
        assert model.trimmed_.tolist() == [True] + [False] * N


def test_a_huge_sample_does_not_set_the_scale():
    Z = np.concatenate([np.full((1, M), 9.97e36), X]).astype(np.float32)
    model = MiCUSaL(3, 4, init=START, trim=1 / (N + 1)).fit(Z)
    twin = MiCUSaL(3, 4, init=START).fit(Z[1:])
    assert np.array_equal(model.bases_, twin.bases_)
    assert np.array_equal(model.labels_[1:], twin.labels_)
    assert model.objective_ == twin.objective_ > 1.0
    assert model.noise_variance_ == twin.noise_variance_


def test_far_samples_of_weight_two_are_two():
    Z, _ = with_far(X, 1e9, n=3)
    weights = np.r_[np.ones(N), 2.0, 1.0, 1.0]
    copied = np.concatenate([Z, Z[N : N + 1]])
    weighted = MiCUSaL(3, 4, init=START, trim=0.1).fit(Z, sample_weight=weights)
    twice = MiCUSaL(3, 4, init=START, trim=0.1).fit(copied)
    assert_allclose(weighted.objective_, twice.objective_, rtol=1e-9)
    assert np.array_equal(weighted.trimmed_, twice.trimmed_[:-1])


@pytest.mark.filterwarnings("ignore:subspaces .* have at most k2")
def test_other_fits_leave_far_samples_out():
    Z, outlier = with_far(X, 1e9)
    adaptive = AdaptiveMiCUSaL(4, 4, random_state=0, trim=0.1).fit(Z)
    affine = MiCUSaL(3, 2, affine=True, random_state=0, trim=0.1).fit(Z)
    for model in (adaptive, affine):
        assert (model.trimmed_ | ~outlier).all()
        assert model.trimmed_.sum() in (14, 15)  # 14.3 of 143


def test_far_samples_by_hand():
    values = np.array([[1.0], [-1.0], [2.0], [-2.0], [1e9]])
    assert far_samples(values, None, 0.2, center=True).tolist() == [False] * 4 + [True]
    assert far_samples(values, None, 0.2, center=False).tolist() == [False] * 4 + [True]
    assert not far_samples(values, None, 0.1, center=True).any()  # a part of it is kept
    assert not far_samples(np.minimum(values, 1e5), None, 0.2, center=True).any()
    single = values.astype(np.float32)
    assert far_samples(np.minimum(single, 1e5), None, 0.2, center=True).any()
    # Where nearly all samples are one point, the others are not outliers by their size alone.
    assert not far_samples(np.array([[0.0], [0.0], [0.0], [1.0]]), None, 0.25, center=False).any()
    huge = np.array([[1.0], [-1.0], [1.7e308], [-1.7e308], [0.5], [0.0]])
    found = far_samples(huge, None, 0.4, center=True)
    assert found.tolist() == [False, False, True, True, False, False]


def test_far_samples_of_other_arrays():
    Z, outlier = with_far(X, 1e9)
    expected = MiCUSaL(3, 4, init=START, trim=0.1).fit(Z)
    with sklearn.config_context(array_api_dispatch=True):
        strict = MiCUSaL(3, 4, init=START, trim=0.1).fit(array_api_strict.asarray(Z))
    assert np.array_equal(np.asarray(strict.trimmed_), expected.trimmed_)
    assert np.array_equal(np.asarray(strict.labels_), expected.labels_)
    assert (expected.trimmed_ | ~outlier).all()


@pytest.mark.parametrize("size", [3.0, 50.0])
def test_a_column_observed_only_in_trimmed_rows_keeps_its_mean(size):
    Z = HOLES.copy()
    Z[:, 0] = np.nan
    Z[:5] = size * np.random.RandomState(0).standard_normal((5, M))
    Z[:5, 0] = 3.0
    model = RobustMiCUSaL(3, 2, center=True, trim=0.1, random_state=0).fit(Z)
    assert model.trimmed_[:5].all()
    assert model.mean_[0] == 3.0
    assert np.isfinite(model.bases_).all()
    assert np.isfinite(model.objective_)


def test_a_column_observed_only_in_far_rows_is_refused():
    Z = HOLES.copy()
    Z[:, 0] = np.nan
    Z[:5] = 1e9
    with pytest.raises(ValueError, match=r"never observed but in rows far .* trim=0.1 .*columns 0"):
        RobustMiCUSaL(3, 2, trim=0.1).fit(Z)


def test_the_mean_of_samples_without_weight_is_used_where_there_is_no_other():
    values = np.array([[1.0, np.nan], [3.0, np.nan], [9.0, 5.0]])
    found = observed_mean(values, np.isnan(values), np.array([1.0, 1.0, 0.0]))
    assert found.tolist() == [2.0, 5.0]


@pytest.mark.parametrize("trim", [0.1, 0.2, 0.35])
def test_the_unit_of_weights_does_not_change_what_is_trimmed(trim):
    plain = MiCUSaL(3, 4, init=START, trim=trim, lam=np.inf).fit(X)
    assert plain.trimmed_.sum() == np.floor(trim * N + 1e-9)
    for unit in (0.1, 0.2, 1 / 3, 7.0, 1e-6):
        model = MiCUSaL(3, 4, init=START, trim=trim, lam=np.inf)
        model.fit(X, sample_weight=np.full(N, unit))
        assert np.array_equal(model.trimmed_, plain.trimmed_)


def test_kept_weights_have_no_rounding_size_parts():
    values = np.random.RandomState(0).standard_normal((1, 130))
    for unit in (0.1, 0.2, 0.3, 1e-5, 3e7):
        for n_trimmed in (1, 13, 26, 99):
            kept = kept_weights(values, np.full((1, 130), unit), n_trimmed / 130)
            assert set(kept[0].tolist()) == {0.0, unit}
            assert (kept == 0).sum() == n_trimmed
