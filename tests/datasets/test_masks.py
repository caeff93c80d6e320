import numpy as np
import pytest

from polyspan.datasets import mask_entries

X = np.arange(200.0).reshape(10, 20)


def test_a_fraction_of_every_sample():
    masked = mask_entries(X, 0.3, random_state=0)
    assert np.all(np.isnan(masked).sum(axis=1) == 6)
    assert np.array_equal(masked[~np.isnan(masked)], X[~np.isnan(masked)])
    assert not np.isnan(X).any()
    again = mask_entries(X, 0.3, random_state=0)
    assert np.array_equal(np.isnan(masked), np.isnan(again))


def test_a_fraction_of_all_entries():
    assert np.isnan(mask_entries(X, 0.25, pattern="overall", random_state=0)).sum() == 50


def test_blocks_are_runs():
    holes = np.isnan(mask_entries(X, 0.25, pattern="block", random_state=0))
    assert np.all(holes.sum(axis=1) == 5)
    edges = np.abs(np.diff(holes.astype(int), axis=1)).sum(axis=1)
    assert np.all(edges <= 2)
    assert len({tuple(row) for row in holes}) > 1


def test_one_side():
    holes = np.isnan(mask_entries(X, 0.5, pattern="side", random_state=0))
    half = holes.any(axis=1)
    assert half.sum() == 5
    assert holes[half, 10:].all()
    assert not holes[half, :10].any()


def test_types_and_nothing_hidden():
    assert mask_entries(X.astype("float32"), 0.1).dtype == np.float32
    assert mask_entries(X.astype(int), 0.1).dtype.kind == "f"
    assert np.array_equal(mask_entries(X, 0.0), X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, 1.0), "'fraction' parameter of mask_entries"),
        ((X, -0.1), "'fraction' parameter of mask_entries"),
        ((X[0], 0.1), "two dimensions, found 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        mask_entries(*arguments)
    with pytest.raises(ValueError, match="'pattern' parameter of mask_entries must be a str among"):
        mask_entries(X, 0.1, pattern="rows")
