import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles

from polyspan.base.arrays import to_numpy
from polyspan.geometry import (
    closeness,
    draw_bases,
    pairwise_subspace_distances,
    principal_angles,
    subspace_distance,
)
from support import require_torch

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
    with sklearn.config_context(array_api_dispatch=True):
        distances = np.asarray(pairwise_subspace_distances(xp.asarray(bases)))
    assert_allclose(distances, distances.T)
    assert_allclose(np.diag(distances), 0)
    assert_allclose(distances[1, 3], subspace_distance(bases[1], bases[3]))
    total = np.asarray(closeness(xp.asarray(bases[None])))
    assert_allclose(total, [(distances**2).sum()])


@pytest.mark.parametrize("function", [subspace_distance, principal_angles])
def test_shapes_are_named(function):
    with pytest.raises(ValueError, match=r"\(4, 2\) and \(5, 2\)"):
        function(np.eye(4)[:, :2], np.eye(5)[:, :2])
    with pytest.raises(ValueError, match=r"found \(4,\) and \(4, 3\)"):
        function(np.ones(4), np.eye(4)[:, :3])
    with pytest.raises(
        ValueError, match=r"n_subspaces, n_features, subspace_dim\), found \(4, 4\)"
    ):
        pairwise_subspace_distances(np.eye(4))


def test_closeness_of_unequal_dimensions_is_that_of_the_projectors(xp):
    dims = (1, 3, 2, 0)
    bases = draw_bases((2, 4, 7, 3), np.random.RandomState(3)) * (
        np.arange(3) < np.asarray(dims)[:, None, None]
    )
    P = bases @ bases.swapaxes(2, 3)
    expected = ((P[:, :, None] - P[:, None]) ** 2).sum(axis=(1, 2, 3, 4)) / 2
    assert_allclose(np.asarray(closeness(xp.asarray(bases), dims)), expected, rtol=1e-12)
    equal = xp.asarray(draw_bases((2, 4, 7, 3), np.random.RandomState(3)))
    assert_array_equal(np.asarray(closeness(equal)), np.asarray(closeness(equal, (3, 3, 3, 3))))


def projector(basis):
    return basis @ basis.T


def padded(bases, dims):
    """Return a stack with columns beyond every dimension set to zero."""
    return bases * (np.arange(bases.shape[-1]) < np.asarray(dims)[:, None, None])


def by_angles(angles):
    """Return all metrics from their definitions, which lose digits only at tiny angles."""
    cosine = np.prod(np.cos(angles))
    return {
        "chordal": np.sqrt(np.sum(np.sin(angles) ** 2)),
        "geodesic": np.sqrt(np.sum(angles**2)),
        "projection": np.sin(np.max(angles)),
        "procrustes": 2 * np.sqrt(np.sum(np.sin(angles / 2) ** 2)),
        "fubini-study": np.arccos(cosine),
        "martin": np.sqrt(-2 * np.log(cosine)),
    }


LARGEST = {"chordal": 1.0, "geodesic": np.pi / 2, "projection": 1.0, "procrustes": np.sqrt(2),
           "fubini-study": np.pi / 2}  # fmt: skip
NAMES = [*LARGEST, "martin"]
ALL_DIMENSIONS = ["chordal", "geodesic", "projection", "procrustes"]


@pytest.mark.parametrize("metric", NAMES)
@given(st.integers(2, 9).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m - 1))),
       st.integers(0, 1000))  # fmt: skip
def test_every_metric_is_symmetric_and_sees_spans_alone(metric, size, seed):
    rng = np.random.RandomState(seed)
    a, b, c = draw_bases((3, *size), rng)
    ab = subspace_distance(a, b, metric=metric)
    assert_allclose(ab, by_angles(subspace_angles(a, b))[metric], rtol=1e-6, atol=1e-6)
    assert_allclose(ab, subspace_distance(b, a, metric=metric), rtol=1e-9, atol=1e-12)
    turn, rotation = draw_bases((size[1], size[1]), rng), draw_bases((size[0], size[0]), rng)
    assert subspace_distance(a, a @ turn, metric=metric) < 1e-12
    turned = subspace_distance(rotation @ a @ turn, rotation @ b, metric=metric)
    assert_allclose(turned, ab, rtol=1e-7, atol=1e-12)
    if metric != "martin":
        ac, bc = (subspace_distance(x, c, metric=metric) for x in (a, b))
        assert ac <= ab + bc + 1e-10


def test_martin_has_no_triangle_inequality():
    lines = [np.array([[np.cos(t)], [np.sin(t)]]) for t in (0.0, 0.75, 1.5)]
    ab, bc, ac = (
        subspace_distance(lines[i], lines[j], metric="martin") for i, j in ((0, 1), (1, 2), (0, 2))
    )
    assert ac > 1.3 * (ab + bc)


@pytest.mark.parametrize("metric", NAMES)
def test_every_metric_has_eight_digits_at_1e_minus_9(metric, xp):
    first = np.eye(7)[:, :3]
    second = first.copy()
    second[1, 1], second[4, 1] = np.cos(3e-9), np.sin(3e-9)
    second[2, 2], second[5, 2] = np.cos(4e-9), np.sin(4e-9)
    with sklearn.config_context(array_api_dispatch=True):
        found = subspace_distance(xp.asarray(first), xp.asarray(second), metric=metric)
    assert_allclose(found, 4e-9 if metric == "projection" else 5e-9, rtol=1e-8)
    line = np.array([[np.cos(1e-9)], [np.sin(1e-9)]])
    assert_allclose(subspace_distance(np.eye(2)[:, :1], line, metric=metric), 1e-9, rtol=1e-8)


@pytest.mark.parametrize("metric", NAMES)
def test_values_by_hand(metric, xp):
    """Angles of 30 and 60 degrees: cosines √3/2 and 1/2."""
    first = np.eye(4)[:, :2]
    second = np.array([[np.sqrt(3), 0], [0, 1], [1, 0], [0, np.sqrt(3)]]) / 2
    expected = {
        "chordal": 1.0,
        "geodesic": np.pi * np.sqrt(5) / 6,
        "projection": np.sqrt(3) / 2,
        "procrustes": np.sqrt(2 * (2 - np.sqrt(3) / 2 - 1 / 2)),
        "fubini-study": np.arccos(np.sqrt(3) / 4),
        "martin": np.sqrt(np.log(16 / 3)),
    }[metric]
    for dtype, rtol in (("float64", 1e-14), ("float32", 1e-6)):
        a, b = (xp.asarray(basis, dtype=getattr(xp, dtype)) for basis in (first, second))
        with sklearn.config_context(array_api_dispatch=True):
            found = subspace_distance(a, b, metric=metric)
            pairs = np.asarray(pairwise_subspace_distances(xp.stack([a, b]), metric=metric))
        assert_allclose(found, expected, rtol=rtol)
        assert pairs.dtype == dtype
        assert_allclose(pairs, [[0, expected], [expected, 0]], rtol=rtol)


@pytest.mark.parametrize("metric", NAMES)
def test_right_angles_and_normalised_distances(metric):
    first, second = (draw_bases((8, 8), np.random.RandomState(0))[:, c] for c in
                     (slice(0, 3), slice(4, 7)))  # fmt: skip
    if metric == "martin":
        assert subspace_distance(first, second, metric=metric) == np.inf
        with pytest.raises(ValueError, match=r"no largest value.*normalize=False"):
            subspace_distance(first, second, metric=metric, normalize=True)
        return
    grows = 1 if metric in ("projection", "fubini-study") else np.sqrt(3)
    found = subspace_distance(first, second, metric=metric)
    assert_allclose(found, LARGEST[metric] * grows, rtol=1e-12)
    assert_allclose(subspace_distance(first, second, metric=metric, normalize=True), 1, rtol=1e-12)
    if metric in ALL_DIMENSIONS:
        found = subspace_distance(first, second[:, :1], metric=metric, normalize=True)
        assert_allclose(found, 1, rtol=1e-12)


@given(st.integers(4, 9), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4),
       st.integers(0, 1000))  # fmt: skip
def test_unequal_dimensions_are_those_of_projectors(m, s, t, u, seed):
    rng = np.random.RandomState(seed)
    a, b, c = (draw_bases((m, m), rng)[:, :k] for k in (s, t, u))
    difference = projector(a) - projector(b)
    chordal = np.linalg.norm(difference) / np.sqrt(2)
    assert_allclose(subspace_distance(a, b), chordal, atol=1e-12)
    found = subspace_distance(a, b, metric="projection")
    assert_allclose(found, np.linalg.norm(difference, 2), atol=1e-12)
    assert len(principal_angles(a, b)) == min(s, t)
    missing = abs(s - t)
    angles = np.concatenate([principal_angles(a, b), np.full(missing, np.pi / 2), [0]])
    for metric in ("geodesic", "procrustes"):
        expected = by_angles(angles)[metric]
        assert_allclose(subspace_distance(a, b, metric=metric), expected, atol=1e-12)
    for metric in ALL_DIMENSIONS:
        ab, ac, bc = (subspace_distance(x, y, metric=metric) for x, y in ((a, b), (a, c), (b, c)))
        assert_allclose(ab, subspace_distance(b, a, metric=metric), atol=1e-12)
        assert ac <= ab + bc + 1e-10
        assert 0 <= subspace_distance(a, b, metric=metric, normalize=True) <= 1 + 1e-12
    # A subspace inside another has the angle 0 and one direction less.
    if t:
        assert_allclose(subspace_distance(b, b[:, 1:]), np.sqrt(0.5), atol=1e-12)


@pytest.mark.parametrize("metric", ["fubini-study", "martin"])
def test_metrics_that_are_not_defined_for_unequal_dimensions_say_so(metric):
    with pytest.raises(ValueError, match=rf"{metric}.*found 1 and 2: take one of 'chordal'"):
        subspace_distance(np.eye(4)[:, :1], np.eye(4)[:, :2], metric=metric)
    with pytest.raises(ValueError, match="found 2 and 1"):
        pairwise_subspace_distances(padded(np.stack([np.eye(4)[:, :2]] * 2), (2, 1)), metric=metric)


def test_an_unknown_metric_is_named():
    with pytest.raises(ValueError, match=r"metric='cosine' is not known.*'geodesic'"):
        subspace_distance(np.eye(2), np.eye(2), metric="cosine")
    with pytest.raises(ValueError, match=r"metric='cosine' is not known.*'geodesic'"):
        pairwise_subspace_distances(np.eye(2)[None], metric="cosine")


@pytest.mark.parametrize("metric", ALL_DIMENSIONS)
def test_zero_columns_are_padding(metric, xp):
    dims = (3, 1, 0, 2)
    bases = draw_bases((4, 7, 3), np.random.RandomState(1))
    stack = padded(bases, dims)
    with sklearn.config_context(array_api_dispatch=True):
        found = np.asarray(pairwise_subspace_distances(xp.asarray(stack), metric=metric))
        one = subspace_distance(xp.asarray(stack[0]), xp.asarray(stack[3]), metric=metric)
        angles = principal_angles(xp.asarray(stack[0]), xp.asarray(stack[3]))
    expected = [
        [
            subspace_distance(bases[i][:, :s], bases[j][:, :t], metric=metric)
            for j, t in enumerate(dims)
        ]
        for i, s in enumerate(dims)
    ]
    assert_allclose(found, expected, atol=1e-12)
    assert_allclose(one, found[0, 3], atol=1e-12)
    assert_allclose(np.asarray(angles), principal_angles(bases[0], bases[3][:, :2]), atol=1e-12)


def test_integer_bases_and_accelerators(accelerator):
    lines = np.eye(3, dtype=int)[None, :, :1], np.eye(3, dtype=int)[None, :, 1:2]
    assert subspace_distance(lines[0][0], lines[1][0], metric="geodesic") == np.pi / 2
    stack = accelerator.asarray(padded(draw_bases((3, 5, 2), np.random.RandomState(0)), (2, 1, 2)))
    for metric in ALL_DIMENSIONS:
        with sklearn.config_context(array_api_dispatch=True):
            found = to_numpy(pairwise_subspace_distances(stack, metric=metric))
        assert np.isfinite(found).all()
        assert found[0, 1] > 0


def test_bases_that_are_not_orthonormal_are_named():
    first, second = tilted(6, 3, 0.3)
    skew = first * 1.1
    for call in (subspace_distance, principal_angles):
        with pytest.warns(UserWarning, match="first and second must have orthonormal columns"):
            call(skew, second)
    with pytest.warns(UserWarning, match="bases must have orthonormal columns") as found:
        pairwise_subspace_distances(np.stack([skew, second]))
    assert found[0].filename == __file__


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pad", [0, 2])
def test_rounding_and_padding_are_orthonormal(dtype, pad):
    bases = draw_bases((2, 400, 30), np.random.RandomState(0)).astype(dtype)
    bases = np.concatenate([bases, np.zeros((2, 400, pad), dtype=dtype)], axis=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subspace_distance(*bases)
        subspace_distance(*bases.round(5))
        pairwise_subspace_distances(bases)
        assert subspace_distance(np.zeros((4, pad)), np.zeros((4, pad))) == 0.0


@pytest.mark.parametrize("metric", ["chordal", "geodesic", "fubini-study", "martin", "procrustes"])
def test_empty_subspaces_have_no_negative_distance(metric):
    nothing = np.zeros((4, 2))
    assert str(subspace_distance(nothing, nothing, metric=metric)) == "0.0"
    same = np.eye(4)[:, :2]
    assert str(subspace_distance(same, same, metric=metric)) == "0.0"


def test_bad_bases_and_metrics_have_clear_errors():
    ragged = [np.eye(4)[:, :2], np.eye(4)[:, :1]]
    with pytest.raises(ValueError, match=r"bases cannot be read as one array .* columns of zeros"):
        pairwise_subspace_distances(ragged)
    for metric in (["chordal"], None, {}):
        with pytest.raises(ValueError, match="is not known: give one of 'chordal'"):
            subspace_distance(np.eye(3)[:, :1], np.eye(3)[:, :1], metric=metric)


def test_tensors_stay_tensors_under_the_switch():
    torch = require_torch()
    bases = torch.from_numpy(np.stack([np.eye(4)[:, :2], np.eye(4)[:, 1:3]]))
    assert isinstance(pairwise_subspace_distances(bases), np.ndarray)
    with sklearn.config_context(array_api_dispatch=True):
        assert isinstance(pairwise_subspace_distances(bases), torch.Tensor)
