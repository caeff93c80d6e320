"""Hidden pixels choose how far groups are trusted over smooth interpolation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.images.inpaint_fill import MOST_HIDDEN, blend_weights, hide


def test_hidden_pixels_are_observed_ones_and_look_like_the_holes():
    blocks = np.zeros((1, 60, 60), dtype=bool)
    blocks[0, 10:18, 10:18] = True
    hidden = hide(blocks, np.random.RandomState(0))
    assert hidden.sum() == 64
    assert not (hidden & blocks).any()
    rows, columns = np.nonzero(hidden[0])
    assert np.ptp(rows) == np.ptp(columns) == 7
    dense = np.random.default_rng(0).random((1, 60, 60)) < 0.8
    hidden = hide(dense, np.random.RandomState(0))
    assert not (hidden & dense).any()
    assert hidden.sum() == pytest.approx(MOST_HIDDEN * (~dense).sum(), rel=0.2)


@pytest.mark.parametrize("shape", [(64, 64), (50, 300), (260, 280)])
def test_weights_are_those_of_the_smallest_error(shape):
    truth = np.random.default_rng(1).random((3, *shape)).astype(np.float32)
    missing = np.random.default_rng(2).random((1, *shape)) < 0.3
    # On the first plane groups are right, on the second interpolation, on the third their mean.
    share = np.array([1.0, 0.0, 0.5])[:, None, None]
    seen = []

    def fill(part, holes):
        seen.append(part[0].size)
        error = np.random.default_rng(3).standard_normal(part.shape)
        return part - share * error, part + (1 - share) * error

    weights = blend_weights(truth, missing, fill, np.random.RandomState(0))
    assert_allclose(weights, share.ravel(), atol=0.08)
    assert sum(seen) <= 4 * 128**2


def test_without_hidden_pixels_groups_are_trusted():
    missing = np.ones((1, 20, 20), dtype=bool)
    missing[0, 3, 3] = False
    planes = np.zeros((1, 20, 20), dtype=np.float32)
    assert blend_weights(planes, missing, lambda a, b: (a, a), np.random.RandomState(0)) == 1
