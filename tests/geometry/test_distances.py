import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles

from polyspan.geometry import (
    closeness,
    draw_bases,
    pairwise_subspace_distances,
    principal_angles,
    subspace_distance,
)

sizes = st.integers(2, 12).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m)))


def tilted(m, s, angle, seed=0):
    """Return two bases whose principal angles are 0, …, 0, angle."""
    rotation = draw_bases((m, m), np.random.RandomState(seed))
    first, second = np.eye(m)[:, :s], np.eye(m)[:, :s]
    second[s - 1, s - 1], second[s, s - 1] = np.cos(angle), np.sin(angle)
    return rotation @ first, rotation @ second


@given(sizes, st.integers(0, 1000))
def test_distance_is_a_metric(size, seed):
    a, b, c = draw_bases((3, *size), np.random.RandomState(seed))
    ab, ba = subspace_distance(a, b), subspace_distance(b, a)
    assert_allclose(ab, ba, atol=1e-12)
    assert 0 <= ab <= np.sqrt(size[1]) + 1e-12
    assert subspace_distance(a, c) <= ab + subspace_distance(b, c) + 1e-12
    turn = draw_bases((size[1], size[1]), np.random.RandomState(seed + 1))
    assert subspace_distance(a, a @ turn) < 1e-12


@given(sizes, st.integers(0, 1000))
def test_distance_agrees_with_trace_form_and_angles(size, seed):
    a, b = draw_bases((2, *size), np.random.RandomState(seed))
    squared = max(0.0, size[1] - np.trace(a.T @ b @ b.T @ a))
    assert_allclose(subspace_distance(a, b) ** 2, squared, atol=1e-10)
    angles = principal_angles(a, b)
    assert_allclose(np.sqrt((np.sin(angles) ** 2).sum()), subspace_distance(a, b), atol=1e-10)
    assert_allclose(angles, np.sort(subspace_angles(a, b)), atol=1e-7)
    assert np.all(np.diff(angles) >= -1e-7)


@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-6, 0.1, 1.0, 1.5])
def test_known_angle(angle):
    first, second = tilted(8, 3, angle)
    # Rotating the pair rounds at 1e-16, so an angle of 1e-9 keeps about seven digits.
    assert_allclose(subspace_distance(first, second), np.sin(angle), rtol=1e-6, atol=2e-15)
    assert_allclose(principal_angles(first, second)[-1], angle, rtol=1e-6, atol=2e-15)


def test_eight_digits_at_1e_minus_9_by_hand():
    first = np.eye(5)[:, :2]
    second = first.copy()
    second[1, 1], second[3, 1] = np.cos(1e-9), np.sin(1e-9)
    assert_allclose(subspace_distance(first, second), 1e-9, rtol=1e-8)
    assert_allclose(principal_angles(first, second), [0, 1e-9], rtol=1e-8)


def test_normalised_distance_of_orthogonal_subspaces_is_one():
    first, second = np.eye(6)[:, :3], np.eye(6)[:, 3:]
    assert subspace_distance(first, second, normalize=True) == pytest.approx(1.0)
    assert_allclose(principal_angles(first, second), np.full(3, np.pi / 2))


def test_pairs_and_closeness(xp):
    bases = draw_bases((4, 9, 2), np.random.RandomState(0))
    distances = np.asarray(pairwise_subspace_distances(xp.asarray(bases)))
    assert_allclose(distances, distances.T)
    assert_allclose(np.diag(distances), 0)
    assert_allclose(distances[1, 3], subspace_distance(bases[1], bases[3]))
    total = np.asarray(closeness(xp.asarray(bases[None])))
    assert_allclose(total, [(distances**2).sum()])


@pytest.mark.parametrize("function", [subspace_distance, principal_angles])
def test_shapes_are_named(function):
    with pytest.raises(ValueError, match=r"\(4, 2\) and \(4, 3\)"):
        function(np.eye(4)[:, :2], np.eye(4)[:, :3])
