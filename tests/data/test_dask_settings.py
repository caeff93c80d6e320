"""Dask under scikit-learn's settings: dispatch, names of columns, containers, saved models."""

import pickle
import warnings

import cloudpickle
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from numpy.testing import assert_allclose

from polyspan import (
    AdaptiveMiCUSaL,
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
    load_model,
    save_model,
)
from polyspan.baselines import KernelKMeans, ThresholdingSubspaceClustering
from polyspan.datasets import make_union_of_subspaces

X = make_union_of_subspaces(
    (80, 80, 80), n_features=20, subspace_dim=2, spread=0.4, noise=0.02, random_state=0
).X
LAZY = da.from_array(X, chunks=(70, 20))
NAMES = [f"x{k}" for k in range(20)]
FRAME = pd.DataFrame(X, columns=NAMES)

IN_BLOCKS = [
    MiCUSaL(3, 2, random_state=0),
    RobustMiCUSaL(3, 2, random_state=0),
    MCKUSaL(3, 2, low_rank=30, random_state=0),
]
IN_MEMORY = [
    SubspaceMixture(3, 2, random_state=0),
    AdaptiveMiCUSaL(3, 3, random_state=0),
    RobustMCKUSaL(3, 2, random_state=0),
    KernelKMeans(3, random_state=0),
    ThresholdingSubspaceClustering(3, 2, random_state=0),
    SubspaceImputer(),
]


def name_of(value):
    return type(value).__name__


def new(model, **parameters):
    return sklearn.clone(model).set_params(**parameters)


@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("template", IN_BLOCKS, ids=name_of)
def test_dispatch_changes_nothing_for_dask(template, dispatch):
    expected = new(template).fit(X)
    with sklearn.config_context(array_api_dispatch=dispatch):
        model = new(template).fit(LAZY)
        assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
        assert np.array_equal(model.labels_.compute(), expected.labels_)
        assert np.array_equal(model.predict(X), expected.labels_)  # what was learned is NumPy's
        for fitted in (model, new(template).fit(X)):
            for method in ("predict", "transform", "reconstruct", "score_samples"):
                found = getattr(fitted, method)(LAZY)
                assert isinstance(found, da.Array)
                assert_allclose(found.compute(), getattr(expected, method)(X), atol=1e-7)


@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("template", [SubspaceMixture(3, 2, random_state=0), IN_MEMORY[2]])
def test_a_model_fitted_in_memory_labels_lazy_rows(template, dispatch):
    with sklearn.config_context(array_api_dispatch=dispatch):
        model = new(template).fit(X)
        assert np.array_equal(model.predict(LAZY).compute(), model.predict(X))


@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("method", ["predict_proba", "transform", "score_samples", "impute"])
def test_a_mixture_treats_lazy_rows_one_by_one(method, dispatch):
    holed = np.where(np.random.RandomState(0).random_sample(X.shape) < 0.1, np.nan, X)
    with sklearn.config_context(array_api_dispatch=dispatch):
        model = SubspaceMixture(3, 2, random_state=0).fit(X)
        found = getattr(model, method)(da.from_array(holed, chunks=(70, -1)))
        assert isinstance(found, da.Array)
        assert_allclose(found.compute(), getattr(model, method)(holed), atol=1e-9)


@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("template", IN_MEMORY, ids=name_of)
def test_what_needs_all_samples_does_not_gather_them_unasked(template, dispatch):
    with (
        sklearn.config_context(array_api_dispatch=dispatch),
        pytest.raises(ValueError, match=r"lazy \(dask\): pass X.compute\(\)"),
    ):
        new(template).fit(LAZY)


@pytest.mark.parametrize("template", IN_BLOCKS, ids=name_of)
def test_names_of_a_frame_are_kept_and_checked(template):
    frame = dd.from_pandas(FRAME, npartitions=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = new(template).fit(frame)
        labels = model.labels_.compute()
        assert np.array_equal(model.predict(frame).compute(), labels)
        assert np.array_equal(model.predict(FRAME), labels)
    assert model.feature_names_in_.tolist() == NAMES
    for wrong in (frame[NAMES[::-1]], frame.rename(columns={"x3": "y3"})):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(wrong)
    assert not hasattr(model.fit(LAZY), "feature_names_in_")


def test_rows_without_names_warn_once():
    model = new(IN_BLOCKS[0]).fit(FRAME)
    with pytest.warns(UserWarning, match="valid feature names") as caught:
        model.predict(LAZY).compute(scheduler="synchronous")
    assert len(caught) == 1


@pytest.mark.parametrize("template", IN_BLOCKS, ids=name_of)
def test_a_model_fitted_on_dask_is_saved_without_labels(template, tmp_path):
    model = new(template).fit(LAZY)
    save_model(model, tmp_path / "model.skops")
    small = pickle.loads(pickle.dumps(model))
    for again in (load_model(tmp_path / "model.skops"), small):
        assert not hasattr(again, "labels_")
        assert np.array_equal(again.predict(X), model.labels_.compute())
    assert isinstance(model.labels_, da.Array)  # the model itself keeps them
    assert hasattr(pickle.loads(pickle.dumps(new(template).fit(X))), "labels_")


def test_a_pickle_does_not_carry_the_training_data():
    many = da.from_array(np.tile(X, (50, 1)), chunks=(2000, 20))
    model = MiCUSaL(3, 2, max_iter=5, tol=0.1, random_state=0).fit(many)
    assert len(cloudpickle.dumps(model)) < many.nbytes / 20


def test_kernel_models_work_in_float64():
    single = X.astype(np.float32)
    expected = new(IN_BLOCKS[2]).fit(single)
    model = new(IN_BLOCKS[2]).fit(da.from_array(single, chunks=(70, 20)))
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert model.coefs_[0].dtype == expected.coefs_[0].dtype == np.float64
    assert model.transform(LAZY).dtype == np.float64


def test_fit_transform_of_kernel_models_is_lazy():
    found = new(IN_BLOCKS[2]).fit_transform(LAZY)
    assert isinstance(found, da.Array)
    assert_allclose(found.compute(), new(IN_BLOCKS[2]).fit_transform(X), atol=1e-7)


@pytest.mark.parametrize(
    ("template", "other"), [(IN_BLOCKS[0], "RobustMiCUSaL"), (IN_BLOCKS[2], "RobustMCKUSaL")]
)
def test_the_message_for_nan_names_the_model_that_takes_it(template, other):
    with pytest.raises(ValueError, match=f"use polyspan.{other}, which"):
        new(template).fit(da.where(LAZY > 0.5, np.nan, LAZY))


def test_containers_for_transform():
    model = MiCUSaL(3, 2, random_state=0).set_output(transform="pandas").fit(LAZY)
    with pytest.raises(ValueError, match=r"set_output\(transform='default'\)"):
        model.transform(LAZY)
    assert isinstance(model.transform(X), pd.DataFrame)

    model = MiCUSaL(3, 2, random_state=0).fit(LAZY)
    lazy = model.transform(LAZY)
    with sklearn.config_context(transform_output="pandas"):
        with pytest.raises(ValueError, match=r"set_output\(transform='default'\)"):
            model.transform(LAZY)
        found = lazy.compute(scheduler="synchronous")  # asked for under another setting
    assert isinstance(found, np.ndarray)
    assert_allclose(found, model.transform(X), atol=1e-12)


def test_sparse_chunks_are_refused():
    sparse = LAZY.map_blocks(scipy.sparse.csr_array)
    hidden = LAZY.map_blocks(scipy.sparse.csr_array, meta=np.empty((0, 0)))
    for rows in (sparse, hidden):
        with pytest.raises(ValueError, match=r"sparse matrices.*toarray"):
            MiCUSaL(3, 2).fit(rows)


def test_a_score_needs_no_row_counts():
    """Those of a frame are not known before it is read."""
    holey = FRAME.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    holey.iloc[4] = np.nan
    model = RobustMiCUSaL(3, 2, random_state=0).fit(X)
    frame = dd.from_pandas(holey, npartitions=3)
    assert_allclose(model.score(frame.to_dask_array()), model.score(holey.to_numpy()), rtol=1e-9)
