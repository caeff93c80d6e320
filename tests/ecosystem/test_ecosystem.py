"""Estimators in scikit-learn: its checks, pipelines, searches and data frames."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyspan import (
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceMixture,
    SubspaceOutlierDetector,
)
from polyspan.datasets import make_union_of_subspaces, mask_entries
from support import expected_failures

DATA = make_union_of_subspaces(
    (30, 30, 30), n_features=12, subspace_dim=2, spread=0.4, noise=0.05, random_state=0
)
NAMES = [f"f{i}" for i in range(12)]


# The defaults of all estimators are in `test_estimator_checks.py`.
CHECKED = [
    MiCUSaL(init="random", solver="exact", n_init=2),
    MiCUSaL(lam=float("inf"), residual="loo"),
    # Points: three lines in the plane need not follow the three blobs of `check_clustering`.
    MiCUSaL(subspace_dim=0, affine=True),
    MiCUSaL(subspace_dim=0, affine=True, solver="exact", init="random"),
    RobustMiCUSaL(subspace_dim=0, affine=True),
    RobustMiCUSaL(solver="exact", residual="loo", lam=float("inf")),
    MCKUSaL(init="gkiop", n_init=2, lam=float("inf"), max_iter=30),
    MCKUSaL(low_rank=10),
    MCKUSaL(residual="loo"),
    SubspaceOutlierDetector(contamination=0.2, standardize=False),
    SubspaceMixture(affine=False, noise="shared", closeness=0.0),
    RobustMiCUSaL(solver="grouse", step_size=0.01, n_sweeps=5, max_iter=5),
]


# scikit-learn 1.7 fits twice in `check_array_api_input` without setting the random state.
@parametrize_with_checks(
    [model.set_params(random_state=0) for model in CHECKED],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)  # fails by raising


def test_pipeline_and_grid_search():
    pipeline = make_pipeline(Normalizer(), MiCUSaL(3, 2, random_state=0))
    grid = {"micusal__lam": [1.0, 4.0], "micusal__subspace_dim": [1, 2, 3]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(DATA.X)
    assert search.best_params_["micusal__subspace_dim"] == 3
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(DATA.X).shape == (90,)
    assert search.score(DATA.X) <= 0


def test_clone_and_pickle():
    model = MiCUSaL(3, 2, lam=2.0, random_state=0).fit(DATA.X)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "bases_")
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.bases_, model.bases_)
    assert np.array_equal(loaded.transform(DATA.X), model.transform(DATA.X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(frame):
    table = frame(dict(zip(NAMES, DATA.X.T, strict=True)))
    plain = MiCUSaL(3, 2, random_state=0).fit(DATA.X)
    model = MiCUSaL(3, 2, random_state=0).fit(table)
    assert model.feature_names_in_.tolist() == NAMES
    assert np.array_equal(model.labels_, plain.labels_)
    assert_allclose(model.transform(table), plain.transform(DATA.X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[NAMES[::-1]])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output(kind):
    model = MiCUSaL(3, 2, random_state=0).set_output(transform=kind).fit(DATA.X)
    table = model.transform(DATA.X)
    assert list(table.columns) == ["micusal0", "micusal1", "micusal2"]
    assert model.get_feature_names_out().tolist() == list(table.columns)
    assert_allclose(model.score(DATA.X), -np.mean(np.asarray(table).min(axis=1) ** 2))


def test_fit_predict_and_fit_transform():
    model = MiCUSaL(3, 2, random_state=0)
    assert np.array_equal(model.fit_predict(DATA.X), model.predict(DATA.X))
    assert_allclose(MiCUSaL(3, 2, random_state=0).fit_transform(DATA.X), model.transform(DATA.X))


@pytest.mark.parametrize("kind", [RobustMiCUSaL, RobustMCKUSaL], ids=lambda kind: kind.__name__)
def test_imputing_a_named_table_raises_no_warning(kind):
    holes = pd.DataFrame(mask_entries(DATA.X, 0.1, random_state=0), columns=NAMES)
    model = kind(2, 2, random_state=0).fit(holes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filled = model.impute(holes)
    assert np.isfinite(np.asarray(filled)).all()
