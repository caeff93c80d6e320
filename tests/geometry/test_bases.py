import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.base.arrays import to_numpy
from polyspan.geometry import (
    draw_bases,
    is_orthonormal,
    near_copies,
    orthonormal_columns,
    orthonormal_rows,
    orthonormal_step,
    orthonormalise,
    range_basis,
    subspace_distance,
    zero_padded,
)
from polyspan.geometry.bases import cholesky_rows


def test_drawn_bases_are_orthonormal_and_repeatable():
    bases = draw_bases((3, 4, 7, 2), np.random.RandomState(0))
    assert bases.shape == (3, 4, 7, 2)
    assert is_orthonormal(bases, 1e-13)
    assert np.array_equal(bases, draw_bases((3, 4, 7, 2), np.random.RandomState(0)))


def test_orthonormal_columns_of_deficient_matrices(xp):
    a = np.zeros((2, 6, 3))
    a[0, :, 0] = 1.0
    q = np.asarray(orthonormal_columns(xp.asarray(a)))
    assert is_orthonormal(q, 1e-14)
    assert_allclose(np.abs(q[0, :, 0]), np.full(6, 6**-0.5))


def test_range_basis_is_that_of_the_singular_vectors(xp):
    a = np.random.RandomState(0).standard_normal((8, 3))
    basis = np.asarray(range_basis(xp.asarray(a)))
    u = np.linalg.svd(a, full_matrices=False)[0]
    assert_allclose(np.abs(basis.T @ u), np.eye(3), atol=1e-14)
    # LAPACK may return either sign of a singular vector; the basis has one.
    assert (basis[np.argmax(np.abs(basis), axis=0), np.arange(3)] > 0).all()
    deficient = np.concatenate([a, a[:, :1] + a[:, 1:2]], axis=1)
    assert np.asarray(range_basis(xp.asarray(deficient))).shape == (8, 3)


def test_orthonormalise_takes_the_nearest(xp):
    basis = draw_bases((2, 6, 2), np.random.RandomState(1))
    skew = basis @ np.array([[2.0, 0.5], [0.5, 1.0]])
    assert not is_orthonormal(xp.asarray(skew))
    assert_allclose(np.asarray(orthonormalise(xp.asarray(skew))), basis, atol=1e-12)


def test_orthonormalise_refuses_dependent_columns():
    with pytest.raises(ValueError, match="2 independent columns"):
        orthonormalise(np.ones((1, 5, 2)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_orthonormal_by_cholesky(xp, accelerator, dtype):
    a = np.random.RandomState(0).standard_normal((2, 4, 30, 5)) * np.array(
        [1e4, 1.0, 1e-2, 1.0, 3.0]
    )
    a[0, 1] = 0.0
    a[0, 2, :, 3] = a[0, 2, :, 0]  # dependent
    a[1, 0] *= 1e-150  # its squares have no digits
    a[1, 1] *= 1e140
    if dtype == "float32":
        a = np.clip(a, -1e15, 1e15)
    a = a.astype(dtype)
    for place in (xp, accelerator):
        q = to_numpy(cholesky_rows(place.asarray(a).mT).mT)
        assert q.dtype == dtype
        assert is_orthonormal(q, 1e-13 if dtype == "float64" else 1e-5)
        for i, j in [(0, 0), (0, 3), (1, 2), (1, 3)]:
            inside = q[i, j] @ (q[i, j].T @ a[i, j])
            assert_allclose(inside, a[i, j], atol=(1e-9 if dtype == "float64" else 1e-1))


def test_padding_stays_zero_and_does_not_mix(xp, accelerator):
    dims = (3, 0, 5, 1)
    a = zero_padded(np.random.RandomState(0).standard_normal((2, 4, 9, 5)), dims)
    a[1, 2, :, 1] = a[1, 2, :, 0]  # dependent
    a[1, 0] = 0.0
    for place in (xp, accelerator):
        q = to_numpy(orthonormal_step(place.asarray(a), dims))
        rows = to_numpy(orthonormal_rows(place.asarray(a.swapaxes(2, 3)), dims))
        for found in (q, rows.swapaxes(2, 3)):
            for i, p in np.ndindex(2, 4):
                own, s = found[i, p][:, : dims[p]], dims[p]
                assert not found[i, p][:, s:].any()
                assert_allclose(own.T @ own, np.eye(s), atol=1e-12)
                assert_allclose(own @ (own.T @ a[i, p][:, :s]), a[i, p][:, :s], atol=1e-12)


def test_near_copies_of_lower_dimension_have_the_first_columns():
    basis = draw_bases((7, 3), np.random.RandomState(0))
    for copy, s in zip(near_copies(basis, 2, (3, 1)), (3, 1), strict=True):
        assert not copy[:, s:].any()
        assert subspace_distance(copy, basis[:, :s]) < 1e-4
