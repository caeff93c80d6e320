"""Weights that are no numbers, or too large or too small to compute with, are refused."""

from decimal import Decimal

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from polyspan import MCKUSaL, MiCUSaL, SubspaceMixture
from polyspan.data.weights import check_weights, weighted_mean
from polyspan.datasets import make_union_of_subspaces
from support import require_torch

N = 60
X = make_union_of_subspaces(
    (20, 20, 20), n_features=12, subspace_dim=2, spread=0.5, noise=0.05, random_state=0
).X
MODELS = pytest.mark.parametrize(
    "model",
    [MiCUSaL(3, 2, random_state=0), MCKUSaL(3, 2, random_state=0), SubspaceMixture(3, 2)],
    ids=["linear", "kernel", "mixture"],
)
LARGE = np.full(N, 1e308)
TINY = np.full(N, 1e-46)
LINEAR = [(MiCUSaL, method) for method in ("fit", "lazy", "partial_fit", "score")]
MIXTURE = [(SubspaceMixture, method) for method in ("fit", "score")]
DOUBLE = [*LINEAR, *MIXTURE, (MCKUSaL, "fit"), (MCKUSaL, "score")]
SINGLE = [*LINEAR, (SubspaceMixture, "fit")]  # all else is computed in double precision
TOO_FAR = [
    *[(*case, np.float64, LARGE, "adds up to inf, too large for") for case in DOUBLE],
    *[
        (*case, np.float64, LARGE * 1e-108, r"goes up to 1e.200 .* too large for")
        for case in DOUBLE
    ],
    *[(*case, np.float64, 1 / LARGE, "too small for") for case in DOUBLE],
    *[(*case, np.float32, LARGE * 1e-270, r"too large for the type .*float32") for case in SINGLE],
    *[(*case, np.float32, TINY, r"too small for the type .*float32") for case in SINGLE],
    *[
        (*case, np.float32, np.r_[TINY[:1], np.ones(N - 1)], "1e-46 to 1, of which some are 0 in")
        for case in SINGLE
    ],
]


@pytest.mark.parametrize(("kind", "method", "dtype", "weights", "message"), TOO_FAR)
def test_weights_too_far_from_1(kind, method, dtype, weights, message):
    data = X.astype(dtype)
    model = kind(3, 2, random_state=0)
    if method == "score":
        model.fit(data)
    data = da.from_array(data, chunks=(25, 12)) if method == "lazy" else data
    call = model.fit if method == "lazy" else getattr(model, method)
    with pytest.raises(ValueError, match=f"{message}.*divide all weights by their mean"):
        call(data, sample_weight=weights)


@pytest.mark.parametrize("size", [2.0**-50, 2.0**48])
@pytest.mark.parametrize("scale", [2.0**-28, 1.0, 2.0**28])
def test_weights_within_the_range_work_in_single_precision(size, scale):
    """For λ=∞ a factor of all weights is a factor of the objective."""
    model = MiCUSaL(3, 2, lam=float("inf"), random_state=0)
    data, weights = (scale * X).astype(np.float32), np.random.RandomState(0).randint(1, 4, N)
    expected = model.fit(data, sample_weight=weights)
    objective, labels = expected.objective_, expected.labels_
    found = model.fit(data, sample_weight=size * weights)
    assert_allclose(found.objective_ / size, objective, rtol=1e-4)
    assert np.array_equal(found.labels_, labels)


@pytest.mark.parametrize(
    "weights",
    [
        np.full(N, "2020-01-01", dtype="datetime64[D]"),
        np.full(N, 1, dtype="timedelta64[s]"),
        np.full(N, "1"),
        ["1"] * N,
        np.array(["1"] * N, dtype=object),
        np.full(N, 1 + 2j),
        [None, *np.ones(N - 1)],
        "heavy",
    ],
    ids=lambda weights: f"{type(weights).__name__}-{getattr(weights, 'dtype', '')}",
)
def test_what_is_no_number(weights):
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        MiCUSaL(3, 2).fit(X, sample_weight=weights)


def test_masked_weights():
    hidden = np.ma.masked_array(np.ones(N), mask=np.arange(N) == 3)
    for weights in (hidden, da.from_array(hidden, chunks=20)):
        with pytest.raises(ValueError, match="masked at samples 3:"):
            check_weights(weights, X)
    seen = np.ma.masked_array(np.arange(N), mask=False)
    assert np.array_equal(check_weights(seen, X), np.arange(N))


def test_weights_of_many_kinds():
    expected = np.arange(N)
    kinds = [
        expected.tolist(), pd.Series(expected), pd.Series(expected, dtype="Int64"),
        [Decimal(i) for i in range(N)], expected.astype(object), expected.astype(np.float16),
        da.from_array(expected, chunks=20),
    ]  # fmt: skip
    for weights in kinds:
        assert np.array_equal(check_weights(weights, X), expected)
    for number in (2, 2.0, np.float32(2), np.array(2), da.full((), 2)):
        assert np.array_equal(check_weights(number, X), np.full(N, 2.0))
    assert check_weights(np.array(True), X) is None
    assert np.array_equal(check_weights(expected > 5, X), expected > 5)


def test_a_tensor_with_a_gradient():
    torch = require_torch()
    weights = torch.arange(N, dtype=torch.float64, requires_grad=True)
    assert np.array_equal(check_weights(weights, X), np.arange(N))
    assert np.array_equal(check_weights(2 * weights, X), 2.0 * np.arange(N))


@MODELS
def test_one_weighted_mean(model):
    """Every score with weights is the mean over repeated samples, also of huge ones."""
    model.fit(X)
    weights = np.random.RandomState(0).randint(0, 4, N)
    expected = model.score(np.repeat(X, weights, axis=0))
    for size in (1, 2.0**400, 2.0**-400):
        assert_allclose(model.score(X, sample_weight=size * weights), expected, rtol=1e-12)
    assert_allclose(model.score(X, sample_weight=1), model.score(X), rtol=1e-12)


def test_weighted_mean_of_scores():
    scores = np.array([1.0, np.nan, 3.0, -np.inf])
    assert weighted_mean(scores, [1, 5, 3, 0]) == 2.5
    assert np.isnan(weighted_mean(scores, [0, 5, 0, 0]))
    huge = np.full(4, 1e38, dtype=np.float32)
    assert_allclose(weighted_mean(huge, [1e5, 2e5, 0, 1]), 1e38, rtol=1e-6)
    assert weighted_mean(da.from_array(scores, chunks=2), [1, 5, 3, 0]) == 2.5
