"""Coordinates: a singular value decomposition, whichever way it is computed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.clustering import coordinates as module
from polyspan.clustering.coordinates import Coordinates

X = np.random.default_rng(0).standard_normal((30, 12)) * 0.6 ** np.arange(12)


def same_up_to_signs(found, expected):
    assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize("samples", [X, X.T], ids=["tall", "wide"])
def test_equals_the_svd(samples):
    found = Coordinates.of(samples)
    U, S, Vt = np.linalg.svd(samples, full_matrices=False)
    assert_allclose(found.S, S, rtol=1e-6)
    same_up_to_signs(found.U, U)
    same_up_to_signs(found.V, Vt.T)
    assert_allclose(found.scaled(12), samples @ found.V, atol=1e-12)
    assert_allclose(found.energy, (samples**2).sum())


def test_directions_without_energy_are_left_out():
    assert Coordinates.of(X[:, [0, 1, 0, 1]]).rank == 2
    nothing = Coordinates.of(np.zeros((4, 3)))
    assert (nothing.rank, nothing.rank_at(0.9)) == (0, 0)


def test_of_many_samples_the_leading_coordinates_are_kept(monkeypatch):
    whole = Coordinates.of(X)
    monkeypatch.setattr(module, "LARGE", 20)
    monkeypatch.setattr(module, "MOST_RANK", 4)
    found = Coordinates.of(X)
    assert_allclose(found.S, whole.S[:4])
    assert found.rank_at(0.9) == whole.rank_at(0.9) < 4
    assert found.rank_at(0.99999) == 4 < whole.rank_at(0.99999)


@pytest.mark.parametrize("samples", [X, X.T, X.astype(np.float32)], ids=["tall", "wide", "single"])
def test_randomised_where_both_sides_are_large(samples, monkeypatch):
    whole = Coordinates.of(samples)
    monkeypatch.setattr(module, "GRAM_SIDE", 5)
    monkeypatch.setattr(module, "MOST_RANK", 4)
    found = Coordinates.of(samples, 3)
    assert_allclose(found.S, whole.S[:4], rtol=1e-5)
    assert_allclose(found.energy, whole.energy, rtol=1e-6)
    assert_allclose(np.abs(np.sum(found.U * whole.U[:, :4], axis=0)), 1.0, atol=1e-5)
    assert found.U.dtype == np.float64
    assert np.array_equal(found.U, Coordinates.of(samples, 3).U)


def test_float32_is_decomposed_in_double_precision():
    assert_allclose(Coordinates.of(X.astype(np.float32)).S, Coordinates.of(X).S, rtol=1e-5)


@pytest.mark.parametrize("samples", [X, X.T], ids=["tall", "wide"])
def test_other_namespaces(samples, xp):
    expected = Coordinates.of(samples)
    found = Coordinates.of(samples, like=xp.asarray(samples))
    assert isinstance(found.U, np.ndarray)
    assert type(found.source) is type(xp.asarray(samples))
    assert_allclose(found.S, expected.S)
    same_up_to_signs(np.asarray(found.scaled(3, 0.5)), expected.scaled(3, 0.5))
