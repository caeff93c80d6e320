"""Predictions of rows that are far larger than others of the same call."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries

DATA = make_union_of_subspaces((40, 40, 40), n_features=12, subspace_dim=2, random_state=0)
HOLES = mask_entries(DATA.X, 0.2, random_state=0)
LARGE = np.arange(1.0, 13.0)
METHODS = ("predict", "transform", "reconstruct", "impute", "coordinates", "memberships")


@pytest.mark.parametrize("method", [*METHODS, "score_samples"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e36), (np.float64, 1e160)])
def test_rows_with_holes_beside_a_large_one(dtype, size, affine, method):
    X = HOLES.astype(dtype)
    model = RobustMiCUSaL(3, 2, affine=affine, random_state=0).fit(X)
    alone = getattr(model, method)(X)
    beside = np.concatenate([X[:50], (size * LARGE[None]).astype(dtype), X[50:]])
    found = getattr(model, method)(beside)
    assert_allclose(np.delete(found, 50, axis=0), alone, rtol=1e-4 if dtype == np.float32 else 1e-9)
    # The large row as in any unit: labels and directions do not change with it.
    unit = getattr(model, method)((1e6 * LARGE[None]).astype(dtype))[0]
    if method == "predict":
        assert found[50] == unit
    elif method in ("reconstruct", "impute", "coordinates", "transform"):
        assert_allclose(found[50] / size, unit / 1e6, rtol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        MiCUSaL(3, 2, random_state=0),
        MiCUSaL(3, 2, affine=True, random_state=0),
        AdaptiveMiCUSaL(4, 3, random_state=0),
        RobustMiCUSaL(3, 2, random_state=0),
        RobustMiCUSaL(3, 2, affine=True, random_state=0),
    ],
    ids=["complete", "affine", "adaptive", "masked", "masked affine"],
)
@pytest.mark.filterwarnings("ignore:subspaces .* have at most k2")
def test_scores_beyond_the_range_are_minus_infinity(model):
    model.fit(DATA.X)
    X = np.stack([1e150 * LARGE, 1e160 * LARGE, DATA.X[0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = model.score_samples(X)
        assert model.score(X) == -np.inf
        memberships = model.memberships(X)
        distances = model.transform(X)
    assert scores[0] == pytest.approx(-(distances[0].min() ** 2))
    assert scores[1] == -np.inf
    assert_allclose(scores[2], model.score_samples(DATA.X[:1])[0])
    assert np.isfinite(distances).all()
    assert memberships[:2].tolist() == np.eye(memberships.shape[1])[model.predict(X[:2])].tolist()
