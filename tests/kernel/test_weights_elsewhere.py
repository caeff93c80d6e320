"""Weights of kernel models in scikit-learn, from frames and dask, on other arrays, in files."""

import array_api_strict
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from polyspan import MCKUSaL, RobustMCKUSaL, load_model, save_model
from polyspan.base.arrays import device, to_numpy
from polyspan.datasets import mask_entries
from support import require_torch

DIGITS = load_digits(n_class=2)
X = DIGITS.data[:60] / 60
HOLES = mask_entries(X, 0.2, random_state=0)
WEIGHTS = np.random.RandomState(0).randint(0, 4, 60)
START = DIGITS.target[:60]
BOTH = pytest.mark.parametrize(
    ("model", "data"),
    [
        (MCKUSaL(2, 3, gamma=2.0, random_state=0), X),
        (RobustMCKUSaL(2, 3, gamma=2.0, random_state=0), HOLES),
    ],
    ids=["complete", "holes"],
)


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{model}-{check.func.__name__}")
        # One subspace needs no start, which otherwise depends on the number of samples.
        for one in (MCKUSaL(1, 3), RobustMCKUSaL(1, 3), MCKUSaL(1, init="gkiop", n_init=2))
        for model, check in estimator_checks_generator(one)
        if "sample_weight" in check.func.__name__
    ],
)
def test_scikit_learn_checks_of_weights(model, check):
    check(model)  # fails by raising


@BOTH
def test_weights_are_routed(model, data):
    with sklearn.config_context(enable_metadata_routing=True):
        asking = sklearn.clone(model).set_fit_request(sample_weight=True)
        asking.set_score_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(np.sqrt), asking)
        pipeline.fit(data, sample_weight=WEIGHTS)
        expected = sklearn.clone(model).fit(np.sqrt(data), sample_weight=WEIGHTS)
        assert pipeline[-1].objective_ == expected.objective_
        score = expected.score(np.sqrt(data), sample_weight=WEIGHTS)
        assert pipeline.score(data, sample_weight=WEIGHTS) == score
        labels = pipeline.fit_predict(data, sample_weight=WEIGHTS)
        assert np.array_equal(labels, expected.labels_)
        parts = cross_validate(asking, data, cv=3, params={"sample_weight": WEIGHTS})
        own = [
            sklearn.clone(model).fit(data[a], sample_weight=WEIGHTS[a])
            .score(data[b], sample_weight=WEIGHTS[b])
            for a, b in sklearn.model_selection.KFold(3).split(data)
        ]  # fmt: skip
        assert_allclose(parts["test_score"], own, rtol=1e-12)
        grid = GridSearchCV(asking, {"subspace_dim": [1, 3]}, cv=3)
        grid.fit(data, sample_weight=WEIGHTS)
        assert_allclose(grid.cv_results_["mean_test_score"][1], np.mean(own), rtol=1e-12)
    # Without routing a pipeline takes the name of its step.
    scaled = make_pipeline(StandardScaler(), sklearn.clone(model))
    name = scaled.steps[-1][0]
    scaled.fit(data, **{f"{name}__sample_weight": WEIGHTS})
    assert scaled[-1].labels_.shape == (60,)


@BOTH
def test_weights_of_any_kind(model, data):
    expected = sklearn.clone(model).fit(data, sample_weight=WEIGHTS)
    kinds = [
        WEIGHTS.tolist(), pd.Series(WEIGHTS, index=np.arange(60)[::-1]), WEIGHTS.astype(np.float32),
        da.from_array(WEIGHTS, chunks=20),
    ]  # fmt: skip
    for weights in kinds:
        found = sklearn.clone(model).fit(data, sample_weight=weights)
        assert found.objective_ == expected.objective_
        score = found.score(data, sample_weight=weights)
        assert score == expected.score(data, sample_weight=WEIGHTS)
    labels = sklearn.clone(model).fit_predict(data, sample_weight=WEIGHTS)
    assert np.array_equal(labels, expected.labels_)


def test_rows_in_blocks():
    lazy = da.from_array(X, chunks=(20, 64))
    for weights in (WEIGHTS, da.from_array(WEIGHTS, chunks=20)):
        with pytest.raises(ValueError, match="set low_rank, or pass an array"):
            MCKUSaL(2, 3).fit(lazy, sample_weight=weights)
        model = MCKUSaL(2, 3, low_rank=30, max_iter=10, tol=0.1, random_state=0).fit(lazy)
        expected = model.score(X, sample_weight=WEIGHTS)
        assert_allclose(model.score(lazy, sample_weight=weights), expected, rtol=1e-12)
    # A score with weights is the mean over repeated samples.
    assert_allclose(expected, model.score(np.repeat(X, WEIGHTS, axis=0)), rtol=1e-12)


@pytest.mark.parametrize("options", [{"init": START}, {"residual": "loo"}, {"kernel": "poly"}])
@pytest.mark.parametrize("place", ["strict", "torch", "device"])
def test_other_namespaces(place, options, request):
    if place == "strict":
        xp = array_api_strict
    else:
        xp = require_torch() if place == "torch" else request.getfixturevalue("accelerator")
    model = MCKUSaL(2, 3, **{"gamma": 2.0, "random_state": 0, **options})
    expected = sklearn.clone(model).fit(X, sample_weight=WEIGHTS)
    moved = xp.asarray(X)
    with sklearn.config_context(array_api_dispatch=True):
        # Weights from elsewhere are moved to the device of the samples.
        for weights in (xp.asarray(WEIGHTS), WEIGHTS):
            found = sklearn.clone(model).fit(moved, sample_weight=weights)
            assert_allclose(found.objective_, expected.objective_, rtol=1e-8)
            assert device(found.labels_) == device(moved)
            assert np.array_equal(to_numpy(found.labels_), expected.labels_)
            assert_allclose(to_numpy(found.transform(moved)), expected.transform(X), atol=1e-6)
            assert_allclose(to_numpy(found.reconstruct(moved)), expected.reconstruct(X), atol=1e-6)
            score = found.score(moved, sample_weight=weights)
            assert_allclose(score, expected.score(X, sample_weight=WEIGHTS), rtol=1e-6)


@BOTH
def test_files_keep_weights(model, data, tmp_path):
    model = sklearn.clone(model).fit(data, sample_weight=WEIGHTS)
    save_model(model, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    assert np.array_equal(again.labels_, model.labels_)
    assert np.array_equal(again.transform(data), model.transform(data))
    assert np.array_equal(again.reconstruct(data), model.reconstruct(data))
