"""Input of `partial_fit`: missing entries, names, scales, namespaces, a fit before the stream."""

import array_api_strict
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from polyspan import MiCUSaL, RobustMiCUSaL, load_model, save_model
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.linear import streaming

DATA = make_union_of_subspaces(
    (80, 80, 80), n_features=20, subspace_dim=2, spread=0.4, noise=0.02, random_state=0
)
X = DATA.X[np.random.default_rng(0).permutation(240)]
FITTED = ("bases_", "mean_", "labels_", "objective_", "objective_history_", "n_iter_")


def batches(rows, size):
    return [rows[k : k + size] for k in range(0, len(rows), size)]


def stream(model, rows, size):
    for batch in batches(rows, size):
        model.partial_fit(batch)
    return model


def test_half_of_the_entries_missing_in_small_batches():
    holey = mask_entries(X, 0.5, random_state=1)
    holey[:8, 5] = np.nan  # there are enough samples by then, but not of this column
    model = stream(RobustMiCUSaL(3, 2, random_state=0), holey, 4)
    assert model.n_samples_seen_ == 240
    full = RobustMiCUSaL(3, 2, random_state=0).fit(holey)
    assert model.score(holey) >= 1.1 * full.score(holey)  # both negative


def test_a_feature_that_comes_late():
    late = X.copy()
    late[:100, 7] = np.nan
    model = RobustMiCUSaL(3, 2, random_state=0)
    for k, batch in enumerate(batches(late, 20)):
        if k in (2, 3, 4):  # sixty samples would be enough
            with pytest.warns(UserWarning, match="columns 7 were not observed"):
                model.partial_fit(batch)
        else:
            model.partial_fit(batch)
        assert model.n_samples_seen_ == 20 * (k + 1)
        assert hasattr(model, "bases_") == (k >= 5)
        if k < 5:
            with pytest.raises(NotFittedError):
                model.predict(X)
    # Nothing that came before the feature was lost.
    assert_allclose(model._stream.counts[[0, 7]], [240, 140])
    full = RobustMiCUSaL(3, 2, random_state=0).fit(late)
    assert model.score(late) >= 1.05 * full.score(late)


@pytest.mark.filterwarnings("ignore:columns 7")
def test_what_is_kept_meanwhile_is_bounded():
    never = np.tile(X, (6, 1))
    never[:, 7] = np.nan
    model = stream(RobustMiCUSaL(3, 2, random_state=0), never, 100)
    most = streaming.MOST_KEPT_FACTOR * streaming.FIRST_PER_DIMENSION * 3 * 2
    assert len(never) > most
    assert np.array_equal(model._stream.first, never[-most:], equal_nan=True)
    assert model.n_samples_seen_ == len(never)
    assert model.partial_fit(X[:20]).bases_.shape == (3, 20, 2)


def test_samples_with_too_few_entries_are_not_kept():
    few = np.full((50, 20), np.nan)
    few[:, :2] = 1.0
    model = RobustMiCUSaL(3, 2, random_state=0)
    with pytest.warns(UserWarning, match="50 of 50 rows have at most subspace_dim=2"):
        model.partial_fit(few)
    assert len(model._stream.first) == 0
    model.partial_fit(X)
    before = model.bases_
    with pytest.warns(UserWarning, match="50 of 50 rows"):
        model.partial_fit(few)
    assert model.labels_.tolist() == [-1] * 50
    assert np.array_equal(model.bases_, before)
    assert model.n_samples_seen_ == 340


def test_a_batch_whose_fit_fails_is_not_counted_and_may_be_given_again(monkeypatch):
    model = MiCUSaL(3, 2, random_state=0).partial_fit(X[:4])
    with monkeypatch.context() as patch:
        patch.setattr(MiCUSaL, "fit", lambda self, X, **weights: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.partial_fit(X[4:30])
    assert model.n_samples_seen_ == 4
    model.partial_fit(X[4:30]).partial_fit(X[30:100])
    assert model.n_samples_seen_ == 100
    assert_allclose(model.bases_, MiCUSaL(3, 2, random_state=0).partial_fit(X[:100]).bases_)


@pytest.mark.parametrize("kind", [MiCUSaL, RobustMiCUSaL])
def test_a_stream_after_fit_begins_anew(kind):
    model = kind(3, 2, random_state=0).fit(X).partial_fit(X[:3])
    assert not any(hasattr(model, name) for name in FITTED)
    with pytest.raises(NotFittedError):
        model.predict(X)
    stream(model, X[3:], 79)
    expected = stream(kind(3, 2, random_state=0).partial_fit(X[:3]), X[3:], 79)
    assert np.array_equal(model.bases_, expected.bases_)


def test_a_stream_of_other_columns_after_fit():
    model = MiCUSaL(3, 2, random_state=0).fit(X).partial_fit(X[:3, :15])
    assert model.n_features_in_ == 15
    assert model.partial_fit(X[3:90, :15]).bases_.shape == (3, 15, 2)


def test_no_anchors_are_left_of_an_affine_fit():
    model = MiCUSaL(3, 2, affine=True, random_state=0).fit(X).set_params(affine=False)
    model.partial_fit(X)
    expected = MiCUSaL(3, 2, random_state=0).partial_fit(X)
    assert_allclose(model.transform(X), expected.transform(X))


def test_a_batch_that_cannot_be_checked_leaves_the_fit():
    model = MiCUSaL(3, 2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full_like(X, np.nan))
    assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("n_before", [0, 3, 100])
def test_other_namespaces_are_refused(n_before):
    model = MiCUSaL(3, 2, random_state=0)
    if n_before:
        model.partial_fit(X[:n_before])
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match=r"partial_fit of .* works on NumPy arrays only"),
    ):
        model.partial_fit(array_api_strict.asarray(X))
    assert model.partial_fit(X).n_samples_seen_ == n_before + 240


def test_dispatch_changes_nothing_for_numpy():
    expected = stream(MiCUSaL(3, 2, random_state=0), X, 40)
    with sklearn.config_context(array_api_dispatch=True):
        model = stream(MiCUSaL(3, 2, random_state=0), X, 40)
    assert np.array_equal(model.bases_, expected.bases_)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [MiCUSaL, RobustMiCUSaL])
def test_frames(kind):
    names = [f"x{k}" for k in range(20)]
    frame = pd.DataFrame(X, columns=names)
    model = stream(kind(3, 2, random_state=0), frame, 60)
    assert np.array_equal(model.labels_, model.predict(frame[180:]))
    assert model.feature_names_in_.tolist() == names
    for rows in (frame, dd.from_pandas(frame, npartitions=2)):
        for n_before in (3, 100):
            model = kind(3, 2, random_state=0).partial_fit(frame[:n_before])
            with pytest.raises(ValueError, match="feature names"):
                model.partial_fit(rows[names[::-1]])
            model.partial_fit(rows)


def test_a_lazy_batch_is_computed():
    model = stream(MiCUSaL(3, 2, random_state=0), da.from_array(X, chunks=(70, 20)), 80)
    assert np.array_equal(model.bases_, stream(MiCUSaL(3, 2, random_state=0), X, 80).bases_)
    assert isinstance(model.labels_, np.ndarray)


@pytest.mark.parametrize("kind", [MiCUSaL, RobustMiCUSaL])
@pytest.mark.parametrize(
    ("dtype", "power"), [("float64", 531), ("float64", -531), ("float32", 63), ("float32", -63)]
)
def test_extreme_scales(kind, dtype, power):
    """1e±160 and 1e±19: squares leave the range. Powers of two, so that all digits are equal."""
    rows, factor = X.astype(dtype), 2.0**power
    expected = stream(kind(3, 2, lam=np.inf, random_state=0), rows, 60)
    model = stream(kind(3, 2, lam=np.inf, random_state=0), rows * rows.dtype.type(factor), 60)
    assert model.bases_.dtype == dtype
    assert_allclose(model.bases_, expected.bases_, atol=1e-4 if dtype == "float32" else 1e-9)
    assert_allclose(model.mean_ / factor, expected.mean_, atol=1e-5)
    if dtype == "float32":  # those of the others have no number
        assert_allclose(model.objective_ / factor / factor, expected.objective_, rtol=1e-3)


def test_holes_on_an_extreme_scale():
    holey = mask_entries(X, 0.3, random_state=0)
    expected = stream(RobustMiCUSaL(3, 2, lam=np.inf, random_state=0), holey, 60)
    model = stream(RobustMiCUSaL(3, 2, lam=np.inf, random_state=0), holey * 2.0**531, 60)
    assert_allclose(model.bases_, expected.bases_, atol=1e-9)


@pytest.mark.parametrize("first", [1.0, 2.0**-531])
def test_a_scale_that_grows_within_a_stream(first):
    """The small samples vanish beside the large ones, and nothing overflows."""
    model = MiCUSaL(3, 2, lam=np.inf, center=False, random_state=0).partial_fit(X[:100] * first)
    grown = stream(model, X[100:] * 2.0**531, 70)
    other = MiCUSaL(3, 2, lam=np.inf, center=False, random_state=0).partial_fit(X[:100])
    other.partial_fit(X[100:170])
    assert np.isfinite(grown.bases_).all()
    assert_allclose(grown.bases_ @ grown.bases_.mT, other.bases_ @ other.bases_.mT, atol=0.1)


@pytest.mark.parametrize("lam", [400.0, np.inf])
def test_a_past_that_counts_is_brought_to_the_new_scale(lam):
    """The first samples need no scale (their squares are safe), the others do."""
    rows, factor = np.concatenate([X[:100] / 16, X[100:]]), 2.0**256
    expected = stream(MiCUSaL(3, 2, lam=lam, random_state=0), rows, 100)
    model = MiCUSaL(3, 2, lam=lam / factor / factor, random_state=0)
    model.partial_fit(rows[:100] * factor)
    assert model._stream.scale == 1.0
    stream(model, rows[100:] * factor, 100)
    assert model._stream.scale < 1.0
    assert_allclose(model.bases_, expected.bases_, atol=1e-9)
    assert_allclose(model.mean_ / factor, expected.mean_, atol=1e-12)
    unit = factor if np.isinf(lam) else 1.0
    assert_allclose(model.objective_ / unit / unit, expected.objective_, rtol=1e-9)


def test_a_batch_too_large_for_the_precision_of_the_stream():
    model = MiCUSaL(3, 2, random_state=0).partial_fit(X.astype(np.float32))
    with pytest.raises(ValueError, match=r"too large for dtype\('float32'\).*scale X"):
        model.partial_fit(X * 1e60)


@pytest.mark.parametrize("n_before", [3, 100])
@pytest.mark.parametrize(
    "change", [{"n_subspaces": 4}, {"subspace_dim": 1}, {"center": False}, {"affine": True}]
)
def test_sizes_may_not_change_within_a_stream(change, n_before):
    model = MiCUSaL(3, 2, random_state=0).partial_fit(X[:n_before])
    (name,) = change
    before = model.get_params()[name]
    with pytest.raises(ValueError, match=f"{name}=.* was set within a stream .*clone"):
        model.set_params(**change).partial_fit(X)
    assert model.set_params(**{name: before}).partial_fit(X).n_samples_seen_ == n_before + 240


def test_a_saved_stream_goes_on(tmp_path):
    scaled = X * 2.0**531
    model = stream(MiCUSaL(3, 2, lam=np.inf, random_state=0), scaled, 60)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops").partial_fit(scaled[:60])
    assert np.array_equal(again.bases_, model.partial_fit(scaled[:60]).bases_)
