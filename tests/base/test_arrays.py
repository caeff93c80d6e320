"""Eigenpairs of symmetric matrices, where many eigenvalues are equal; rows of norm 1, some rows."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from polyspan.base.arrays import some_eigenpairs, some_rows, top_eigenvectors, unit_rows


def matrices(n):
    """Return matrices with many equal eigenvalues: graphs of one and two cliques, and noise."""
    clique = np.ones((n, n)) - np.eye(n)
    half = n // 2
    two = scipy.linalg.block_diag(*[np.ones((half, half)) - np.eye(half)] * 2)
    noise = 1e-17 * np.random.RandomState(n).standard_normal((n, n))
    return clique / (n - 1), two / (half - 1), np.eye(n) + noise + noise.T


@pytest.mark.parametrize("n", [24, 70, 100, 136, 164])
def test_equal_eigenvalues(n):
    for a in matrices(n):
        every = np.linalg.eigvalsh(a)
        for k in (2, 5, 21):
            values, vectors = top_eigenvectors(a, k)
            assert_allclose(values, every[::-1][:k], atol=1e-12)
            assert_allclose(a @ vectors, vectors * values, atol=1e-12)
            assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
            values, vectors = some_eigenpairs(a, 0, k - 1)
            assert_allclose(values, every[:k], atol=1e-12)
            assert_allclose(a @ vectors, vectors * values, atol=1e-12)


@pytest.mark.parametrize("fault", ["error", "too few"])
def test_where_lapack_fails_all_are_computed(fault, monkeypatch):
    """Which matrices it fails on depends on the machine."""
    compute = scipy.linalg.eigh

    def failing(a, driver, **options):
        if driver != "evr":
            return compute(a, driver=driver, **options)
        if fault == "error":
            raise np.linalg.LinAlgError("Internal Error.")
        values, vectors = compute(a)
        return values[-1:], vectors[:, -1:]

    A = np.random.RandomState(0).standard_normal((20, 20))
    A = A + A.T
    expected = some_eigenpairs(A, 15, 19)
    monkeypatch.setattr(scipy.linalg, "eigh", failing)
    values, vectors = some_eigenpairs(A, 15, 19)
    assert_allclose(values, expected[0])
    assert_allclose(np.abs(vectors), np.abs(expected[1]), atol=1e-9)


def test_a_matrix_with_nan_is_refused():
    with pytest.raises(ValueError, match="infs or NaNs"):
        some_eigenpairs(np.full((5, 5), np.nan), 0, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_size_get_norm_1(dtype):
    row = np.array([3.0, -4.0, 0.0])
    tiny = float(np.finfo(dtype).smallest_normal)
    huge = float(np.finfo(dtype).max)
    rows = np.stack([row, row * tiny * 10, row / 10 * huge, 0 * row]).astype(dtype)
    assert_allclose(unit_rows(rows), [row / 5] * 3 + [0 * row], rtol=1e-6)
    usual = np.random.RandomState(0).standard_normal((20, 3)).astype(dtype)
    norms = np.linalg.norm(usual, axis=1, keepdims=True)
    assert np.array_equal(unit_rows(usual), usual / norms)


def test_some_rows():
    assert some_rows(5, 5, np.random.RandomState(0)).tolist() == [0, 1, 2, 3, 4]
    drawn = some_rows(100, 10, np.random.RandomState(0))
    assert len(set(drawn.tolist())) == 10
    assert (np.diff(drawn) > 0).all()
    assert drawn.max() < 100
