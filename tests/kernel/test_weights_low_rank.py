"""Weights with a Nyström map: 2 is the sample twice, from the same landmarks and labels."""

import warnings

import dask.array as da
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from polyspan import MCKUSaL
from polyspan.base.arrays import to_numpy
from support import require_torch

DIGITS = load_digits(n_class=3)
N = 90
X = DIGITS.data[:N] / 60
START = DIGITS.target[:N]
WEIGHTS = np.random.RandomState(0).randint(0, 4, N)
REPEATS = np.repeat(np.arange(N), WEIGHTS)
KEPT = np.flatnonzero(WEIGHTS)


@pytest.fixture
def landmarks(monkeypatch):
    """Let every fit take the same samples as landmarks, given by their values."""
    chosen = X[KEPT[::2]]

    def draw(data, n_landmarks, rng):
        rows = np.asarray(data.X)
        return np.array([int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in chosen])

    monkeypatch.setattr("polyspan.kernel.nystrom._draw_landmarks", draw)


@pytest.mark.parametrize("lam", [4.0, float("inf")])
@pytest.mark.parametrize("residual", ["plain", "loo"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_weights_are_repeats(landmarks, kernel, residual, lam):
    options = {"kernel": kernel, "gamma": 1.0, "lam": lam, "residual": residual, "low_rank": 30}
    weighted = MCKUSaL(3, 3, init=START, **options).fit(X, sample_weight=WEIGHTS)
    repeated = MCKUSaL(3, 3, init=START[REPEATS], **options).fit(X[REPEATS])
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-9)
    assert_allclose(weighted.objective_history_, repeated.objective_history_, rtol=1e-9)
    assert np.array_equal(weighted.labels_[REPEATS], repeated.labels_)
    assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-7)
    if residual == "plain":  # labels of weight 0 are predictions
        assert np.array_equal(weighted.labels_, weighted.predict(X))
    assert np.isin(to_numpy(weighted.members_[0]), KEPT).all()
    # Without weights the result is another.
    plain = MCKUSaL(3, 3, init=START[KEPT], **options).fit(X[KEPT])
    assert abs(plain.objective_ / weighted.objective_ - 1) > 1e-3


def test_landmarks_are_drawn_by_their_weights():
    heavy = np.arange(N) % 3 == 1
    weights = np.where(heavy, 1e6, np.where(WEIGHTS, 1e-6, 0.0))
    for data in (X, da.from_array(X, chunks=(20, 64))):
        model = MCKUSaL(3, 3, low_rank=20, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data, sample_weight=weights)
        assert heavy[model.members_[0]].all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.set_params(low_rank=N).fit(data, sample_weight=weights)
        assert np.array_equal(model.members_[0], np.flatnonzero(weights))


@pytest.mark.parametrize("init", ["spectral", "gkiop"])
def test_rows_in_blocks(init):
    options = {"gamma": 1.0, "init": init, "low_rank": 40, "random_state": 0, "n_init": 1}
    expected = MCKUSaL(3, 3, **options).fit(X, sample_weight=WEIGHTS)
    for weights in (WEIGHTS, da.from_array(WEIGHTS, chunks=30)):
        found = MCKUSaL(3, 3, **options).fit(da.from_array(X, (20, 64)), sample_weight=weights)
        assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
        assert np.array_equal(np.asarray(found.labels_), expected.labels_)
    poly = MCKUSaL(3, 3, **options | {"kernel": "poly"})
    objective = poly.fit(da.from_array(X, (20, 64)), sample_weight=WEIGHTS).objective_
    assert_allclose(objective, poly.fit(X, sample_weight=WEIGHTS).objective_, rtol=1e-9)
    with pytest.raises(ValueError, match="n_samples=5 is fewer than"):
        poly.fit(da.from_array(X, (20, 64)), sample_weight=np.arange(N) < 5)


def test_equal_weights_give_the_landmarks_of_none():
    model = MCKUSaL(3, 3, low_rank=30, lam=float("inf"), gamma=1.0, random_state=0)
    objective = model.fit(X).objective_
    assert_allclose(model.fit(X, sample_weight=2.0).objective_, 2 * objective, rtol=1e-9)


def test_torch():
    torch = require_torch()
    options = {"gamma": 1.0, "low_rank": 30, "random_state": 0}
    for residual in ("plain", "loo"):
        model = MCKUSaL(3, 3, residual=residual, **options)
        expected = model.fit(X, sample_weight=WEIGHTS).objective_
        with sklearn.config_context(array_api_dispatch=True):
            found = model.fit(torch.from_numpy(X), sample_weight=torch.from_numpy(WEIGHTS))
        assert_allclose(found.objective_, expected, rtol=1e-8)
