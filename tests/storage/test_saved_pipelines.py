"""Pipelines that end in an estimator of polyspan, in files."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from polyspan import MiCUSaL, RobustMiCUSaL, SubspaceImputer, load_model, save_model
from polyspan.storage.models import ESTIMATORS, TRANSFORMERS, model_info
from saved_models import DATA, SIZES, assert_same

HOLES = np.where(np.random.RandomState(0).random(DATA.X.shape) < 0.1, np.nan, DATA.X)


def unfitted(kind):
    """Return an estimator of small sizes."""
    sizes = {**SIZES, "random_state": 0, "n_quantiles": 20, "n_components": 8}
    known = kind().get_params()
    return kind(**{name: value for name, value in sizes.items() if name in known})


def saved_and_loaded(pipeline, folder):
    save_model(pipeline, folder / "m.skops")
    return load_model(folder / "m.skops")


@pytest.mark.parametrize("kind", TRANSFORMERS, ids=lambda kind: kind.__name__)
def test_every_transformer_comes_back_bit_for_bit(kind, tmp_path):
    step = unfitted(kind)
    X = HOLES if step.__sklearn_tags__().input_tags.allow_nan else DATA.X
    last = MiCUSaL if kind.__name__ in ("SimpleImputer", "KNNImputer") else RobustMiCUSaL
    pipeline = make_pipeline(step, last(2, 1, random_state=0)).fit(X)
    again = saved_and_loaded(pipeline, tmp_path)
    assert type(again) is Pipeline
    assert repr(again) == repr(pipeline)
    if kind.__name__ in ("IncrementalPCA", "TruncatedSVD"):
        np.testing.assert_allclose(again.transform(X), pipeline.transform(X), rtol=1e-12)
    else:
        assert_same(pipeline, again, X)
        assert_same(pipeline[:-1], again[:-1], X)
    assert model_info(tmp_path / "m.skops").estimator == "Pipeline"


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_estimator_may_be_the_last_step(kind, tmp_path):
    pipeline = make_pipeline(StandardScaler(), unfitted(kind)).fit(DATA.X)
    again = saved_and_loaded(pipeline, tmp_path)
    assert type(again[-1]) is kind
    assert_same(pipeline, again, DATA.X)


def test_several_steps_of_both(tmp_path):
    steps = [
        ("fill", SubspaceImputer(1, 2, n_fits=1)),
        ("scale", StandardScaler()),
        ("none", "passthrough"),
        ("union", MiCUSaL(2, 2, random_state=0)),
    ]
    pipeline = Pipeline(steps).set_output(transform="pandas").fit(HOLES)
    again = saved_and_loaded(pipeline, tmp_path)
    assert again.transform(HOLES).equals(pipeline.transform(HOLES))
    assert again["none"] == "passthrough"


def test_the_cache_is_not_saved(tmp_path):
    steps = [("scale", StandardScaler()), ("union", MiCUSaL(2, 2, random_state=0))]
    pipeline = Pipeline(steps, memory=str(tmp_path / "cache")).fit(DATA.X)
    again = saved_and_loaded(pipeline, tmp_path)
    assert again.memory is None
    assert pipeline.memory == str(tmp_path / "cache")
    assert_same(pipeline, again, DATA.X)


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (FunctionTransformer(np.log1p), MiCUSaL(2, 2), "'first' is a FunctionTransformer, and pol"),
        (PolynomialFeatures(), MiCUSaL(2, 2), "saves StandardScaler, MinMaxScaler"),
        (MiCUSaL(2, 2), StandardScaler(), "'last' is a StandardScaler, and the last step must be"),
        (make_pipeline(StandardScaler()), MiCUSaL(2, 1), "'first' is a Pipeline"),
        (StandardScaler(), "passthrough", "'last' is a str, and the last step"),
    ],
)
def test_other_pipelines_are_refused(first, last, message, tmp_path):
    pipeline = Pipeline([("first", first), ("last", last)]).fit(np.abs(DATA.X))
    with pytest.raises(TypeError, match=message):
        save_model(pipeline, tmp_path / "m.skops")
    assert not list(tmp_path.iterdir())


def test_every_step_must_be_fitted(tmp_path):
    scaled = StandardScaler().fit_transform(DATA.X)
    model = MiCUSaL(2, 2, random_state=0).fit(scaled)
    for pipeline in (
        make_pipeline(StandardScaler(), model),
        make_pipeline(StandardScaler().fit(DATA.X), MiCUSaL(2, 2)),
    ):
        with pytest.raises(NotFittedError):
            save_model(pipeline, tmp_path / "m.skops")


def test_a_subclass_of_a_transformer_is_refused(tmp_path):
    class Scaler(StandardScaler):
        """Brings code that a loader would not have."""

    pipeline = make_pipeline(Scaler(), MiCUSaL(2, 2, random_state=0)).fit(DATA.X)
    with pytest.raises(TypeError, match="'scaler' is a Scaler"):
        save_model(pipeline, tmp_path / "m.skops")
