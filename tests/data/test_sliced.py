"""Rows in files: Zarr and memory-mapped arrays are visited slice by slice."""

import warnings

import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose
from sklearn.base import clone

from polyspan import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL
from polyspan.data import sliced
from polyspan.data.sliced import SlicedRows, row_source
from polyspan.datasets import make_union_of_subspaces, mask_entries


@pytest.fixture(scope="module", name="X")
def samples():
    return make_union_of_subspaces(
        (90, 60, 80), n_features=20, subspace_dim=3, spread=0.3, random_state=0
    ).X


@pytest.fixture
def small_slices(monkeypatch):
    monkeypatch.setattr(sliced, "SLICE_BYTES", 20 * 8 * 50)


def stored(X, tmp_path, chunks=(32, 7)):
    array = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, chunks=chunks, dtype=X.dtype)
    array[:] = X
    return array


def mapped(X, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def test_zarr_equals_memory(X, tmp_path, small_slices):
    file = stored(X, tmp_path)
    expected = MiCUSaL(3, 3, random_state=0).fit(X)
    model = MiCUSaL(3, 3, random_state=0).fit(file)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert isinstance(model.labels_, np.ndarray)
    assert np.array_equal(model.labels_, expected.labels_)
    assert np.array_equal(model.predict(file), expected.labels_)
    assert_allclose(model.transform(file), expected.transform(X), atol=1e-9)
    assert_allclose(model.score(file), expected.score(X), rtol=1e-9)


def test_zarr_with_holes(X, tmp_path, small_slices):
    holey = mask_entries(X, 0.3, random_state=0)
    file = stored(holey, tmp_path)
    expected = RobustMiCUSaL(3, 3, random_state=0).fit(holey)
    model = RobustMiCUSaL(3, 3, random_state=0).fit(file)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert_allclose(model.impute(file), expected.impute(holey), atol=1e-8)


def test_whole_chunks_are_read(X, tmp_path, small_slices):
    file = stored(X, tmp_path)
    assert SlicedRows(file)._size == 32
    assert SlicedRows(stored(X, tmp_path / "tall", chunks=(100, 20)))._size == 100
    assert row_source(X) is None


def test_a_mapped_file_is_an_array(X, tmp_path):
    file = mapped(X, tmp_path)
    expected = MiCUSaL(3, 3, random_state=0).fit(X)
    model = MiCUSaL(3, 3, random_state=0).fit(file)
    assert np.array_equal(model.bases_, expected.bases_)


def test_a_mapped_file_of_integers_is_converted_in_slices(X, tmp_path, small_slices, monkeypatch):
    whole = np.round(X * 50).astype(np.int16)
    sizes = []
    slices = SlicedRows._slices
    monkeypatch.setattr(
        SlicedRows, "_slices", lambda self: (sizes.append(len(r)) or r for r in slices(self))
    )
    model = MiCUSaL(3, 3, lam=0.01, random_state=0).fit(mapped(whole, tmp_path))
    assert max(sizes) == 50
    expected = MiCUSaL(3, 3, lam=0.01, random_state=0).fit(whole)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)


def test_a_mapped_file_with_holes_is_filled_in_slices(X, tmp_path, small_slices):
    holey = mask_entries(X, 0.3, random_state=0)
    model = RobustMiCUSaL(3, 3, random_state=0).fit(mapped(holey, tmp_path))
    expected = RobustMiCUSaL(3, 3, random_state=0).fit(holey)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)


def test_a_file_of_three_dimensions(tmp_path):
    with pytest.raises(ValueError, match="Expected 2D"):
        MiCUSaL().fit(zarr.zeros((4, 4, 4)))


def test_what_needs_all_samples_still_takes_a_mapped_file(X, tmp_path, small_slices):
    whole = np.round(X * 50).astype(np.int16)
    holey = mask_entries(X, 0.1, random_state=0)
    robust = RobustMiCUSaL(
        3, 3, solver="grouse", step_size=0.1, n_sweeps=2, max_iter=2, random_state=0
    )
    adaptive = AdaptiveMiCUSaL(3, 3, n_init=2, random_state=0)
    cases = [(robust, holey), (adaptive, holey), (clone(adaptive).set_params(lam=0.01), whole)]
    for model, rows in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = clone(model).fit(rows)
            model.fit(mapped(rows, tmp_path))
        assert np.array_equal(model.bases_, expected.bases_)
    chunked = clone(adaptive).fit(stored(X, tmp_path))
    assert np.array_equal(chunked.bases_, clone(adaptive).fit(X).bases_)
    with pytest.raises(ValueError, match="not a file that is read in slices"):
        robust.fit(stored(holey, tmp_path / "holey"))


def test_exact_updates_of_many_features(tmp_path, small_slices):
    """A mapped file becomes an array for them; of a chunked one they take no more than 1024."""
    X = np.round(100 * np.random.default_rng(0).standard_normal((30, 1025))).astype(np.int16)
    model = MiCUSaL(2, 1, solver="exact", lam=1e-4, random_state=0)
    expected = clone(model).fit(X)
    assert_allclose(clone(model).fit(mapped(X, tmp_path)).objective_, expected.objective_)
    with pytest.raises(ValueError, match=r"at most 1024 features \(X has 1025\) in a file"):
        model.fit(stored(X, tmp_path))


@pytest.mark.parametrize("options", [{"solver": "exact"}, {"residual": "loo"}, {"affine": True}])
def test_every_option_works_on_a_file_of_integers(X, tmp_path, small_slices, options):
    whole = np.round(X * 50).astype(np.int16)
    model = MiCUSaL(3, 3, lam=0.01, n_init=2, random_state=0, **options)
    expected = clone(model).fit(whole)
    for rows in (mapped(whole, tmp_path), stored(whole, tmp_path)):
        found = clone(model).fit(rows)
        assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
        assert isinstance(found.labels_, np.ndarray)
        assert found.labels_.dtype == np.int64
        assert np.array_equal(found.labels_, expected.labels_)


def test_prediction_reads_a_large_mapped_file_in_slices(X, tmp_path, small_slices, monkeypatch):
    holey = mask_entries(X, 0.3, random_state=0)
    model = RobustMiCUSaL(3, 3, random_state=0).fit(holey)
    expected = model.reconstruct(holey)
    sizes = []
    slices = SlicedRows._slices
    monkeypatch.setattr(
        SlicedRows, "_slices", lambda self: (sizes.append(len(r)) or r for r in slices(self))
    )
    assert_allclose(model.reconstruct(mapped(holey, tmp_path)), expected, atol=1e-9)
    assert max(sizes) == 50


def test_an_empty_file(X, tmp_path):
    file = stored(X[:0], tmp_path)
    with pytest.raises(ValueError, match="0 sample"):
        MiCUSaL(3, 3).fit(X).predict(file)
