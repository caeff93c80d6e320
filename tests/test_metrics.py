import itertools

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

from polyspan.geometry import draw_bases
from polyspan.metrics import (
    average_subspace_distance,
    clustering_error,
    relative_reconstruction_error,
    subspace_distance,
)


def test_masked_labels_are_refused():
    masked = np.ma.masked_array([0, 0, 1, 1], [False, True, False, False])
    with pytest.raises(ValueError, match="labels_true is masked"):
        clustering_error(masked, [0, 0, 1, 1])
    assert clustering_error([0, 0, 1, 1], np.ma.masked_array([1, 1, 0, 1])) == 0.25


def test_d_avg_matches_one_to_one_and_ignores_order():
    rng = np.random.RandomState(0)
    truth, found = draw_bases((2, 4, 9, 3), rng)
    by_hand = []
    for order in itertools.permutations(range(4)):
        pairs = [(found[i], truth[j]) for i, j in enumerate(order)]
        overlap = sum(np.sum((a.T @ b) ** 2) for a, b in pairs)
        mean = np.mean([subspace_distance(a, b) / np.sqrt(3) for a, b in pairs])
        by_hand.append((overlap, mean))
    expected = max(by_hand)[1]
    assert_allclose(average_subspace_distance(found, truth), expected)
    assert_allclose(average_subspace_distance(found[[2, 0, 3, 1]], truth), expected)


def test_d_avg_sees_tiny_angles(xp):
    first = np.eye(4)[:, :1][None]
    second = np.array([[[np.cos(1e-9)], [np.sin(1e-9)], [0], [0]]])
    with sklearn.config_context(array_api_dispatch=True):
        measured = average_subspace_distance(xp.asarray(first), xp.asarray(second))
    assert_allclose(measured, 1e-9, rtol=1e-8)


def test_d_avg_of_unequal_dimensions(xp):
    rng = np.random.RandomState(0)
    truth, found = draw_bases((2, 3, 9, 3), rng)
    dims, others = (1, 3, 2), (3, 2, 2)
    true_padded, found_padded = truth.copy(), np.zeros((3, 9, 4))
    found_padded[:, :, :3] = found
    for p in range(3):
        true_padded[p, :, dims[p] :] = 0
        found_padded[p, :, others[p] :] = 0
    expected = min(
        np.mean(
            [
                subspace_distance(found[i, :, : others[i]], truth[j, :, : dims[j]], normalize=True)
                for i, j in enumerate(order)
            ]
        )
        for order in itertools.permutations(range(3))
    )
    with sklearn.config_context(array_api_dispatch=True):
        measured = average_subspace_distance(xp.asarray(found_padded), xp.asarray(true_padded))
        same = average_subspace_distance(
            xp.asarray(true_padded[[2, 0, 1]]), xp.asarray(true_padded)
        )
    assert_allclose(measured, expected, rtol=1e-12)
    assert same < 1e-12


def test_d_avg_of_padding_alone_is_that_without_it():
    truth, found = draw_bases((2, 3, 9, 2), np.random.RandomState(0))
    wide = np.concatenate([found, np.zeros((3, 9, 1))], axis=2)
    expected = average_subspace_distance(found, truth)
    assert_allclose(average_subspace_distance(wide, truth), expected, rtol=1e-12)


def test_d_avg_names_shapes():
    with pytest.raises(ValueError, match=r"\(2, 5, 2\) and \(3, 5, 2\)"):
        average_subspace_distance(np.zeros((2, 5, 2)), np.zeros((3, 5, 2)))


def test_clustering_error_by_hand():
    truth = [0, 0, 0, 1, 1, 1, 2, 2]
    assert clustering_error(truth, [5, 5, 5, 9, 9, 9, 7, 7]) == 0.0
    assert clustering_error(truth, [1, 1, 0, 0, 0, 0, 2, 2]) == pytest.approx(1 / 8)
    # Fewer and more clusters than there are: those without a partner count as wrong.
    assert clustering_error(truth, np.zeros(8)) == pytest.approx(5 / 8)
    assert clustering_error(truth, np.arange(8)) == pytest.approx(5 / 8)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clustering_error([0, 1], [0])


def test_relative_error(xp):
    clean = xp.asarray([[1.0, 0.0], [0.0, 2.0]])
    found = xp.asarray([[1.0, 1.0], [0.0, 2.0]])
    with sklearn.config_context(array_api_dispatch=True):
        assert relative_reconstruction_error(clean, found) == pytest.approx(0.5)
        with pytest.raises(ValueError, match="1 of 2 samples of X_true are zero"):
            relative_reconstruction_error(xp.asarray([[0.0, 0.0], [1.0, 0.0]]), found)
        with pytest.raises(ValueError, match="one shape"):
            relative_reconstruction_error(clean, found[:1, :])
