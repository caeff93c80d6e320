"""Rows in files: Zarr and memory-mapped arrays are visited slice by slice."""

import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose

from polyspan import MiCUSaL, RobustMiCUSaL, sources
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.sources import SlicedRows, row_source


@pytest.fixture(scope="module", name="X")
def samples():
    return make_union_of_subspaces(
        (90, 60, 80), n_features=20, subspace_dim=3, spread=0.3, random_state=0
    ).X


@pytest.fixture
def small_slices(monkeypatch):
    monkeypatch.setattr(sources, "SLICE_BYTES", 20 * 8 * 50)


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
    total = SlicedRows.total

    def spy(self, task, *arguments):
        return total(self, lambda rows, *a: sizes.append(len(rows)) or task(rows, *a), *arguments)

    monkeypatch.setattr(SlicedRows, "total", spy)
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
    file = mapped(np.round(X * 50).astype(np.int16), tmp_path)
    model = MiCUSaL(3, 3, lam=0.01, solver="exact", random_state=0).fit(file)
    assert model.labels_.shape == (len(X),)
    holey = mapped(mask_entries(X, 0.1, random_state=0), tmp_path)
    robust = RobustMiCUSaL(3, 3, solver="grouse", n_sweeps=2, max_iter=2, random_state=0)
    with pytest.warns(UserWarning, match="converge"):
        robust.fit(holey)
    with pytest.raises(ValueError, match="not a file that is read in slices"):
        MiCUSaL(3, 3, solver="exact").fit(stored(X, tmp_path))


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
