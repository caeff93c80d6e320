"""SubspaceImputer: a drop-in for scikit-learn's imputers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.impute import KNNImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from polyspan import SubspaceImputer, load_model, save_model
from polyspan.datasets import mask_entries

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 2)) @ RNG.standard_normal((2, 5)) * [1, 5, 100, 0.1, 1] + 7.0
X += 0.05 * X.std(axis=0) * RNG.standard_normal(X.shape)
HOLES = mask_entries(X, 0.2, random_state=0)
NAMES = list("abcde")


def rmse(filled, truth, hidden):
    scale = truth.std(axis=0)
    return np.sqrt(np.mean(((filled - truth) / scale)[hidden] ** 2))


def test_observed_entries_stay_and_holes_are_well_filled():
    imputer = SubspaceImputer()
    filled = imputer.fit_transform(HOLES)
    seen = ~np.isnan(HOLES)
    assert np.array_equal(filled[seen], HOLES[seen])
    assert np.array_equal(imputer.transform(HOLES), filled)
    assert rmse(filled, X, ~seen) < 0.4
    assert imputer.held_out_error_ < 0.5
    assert np.array_equal(imputer.transform(X), X)
    assert filled.min() >= np.nanmin(HOLES)


@pytest.mark.parametrize("load", [load_diabetes, load_wine])
def test_better_than_the_mean_and_neighbours_at_half_missing(load):
    truth = load().data
    holes = mask_entries(truth, 0.5, random_state=0)
    hidden = np.isnan(holes)
    ours = rmse(SubspaceImputer().fit_transform(holes), truth, hidden)
    assert ours < rmse(np.where(hidden, np.nanmean(holes, axis=0), holes), truth, hidden)
    assert ours < rmse(KNNImputer().fit_transform(holes), truth, hidden)


def test_many_samples_get_several_subspaces():
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((4, 12)) * 3
    labels = rng.integers(0, 4, 800)
    truth = centres[labels] + 0.3 * rng.standard_normal((800, 12))
    holes = mask_entries(truth, 0.3, random_state=0)
    imputer = SubspaceImputer().fit(holes)
    assert imputer.n_subspaces_ > 1
    assert rmse(imputer.transform(holes), truth, np.isnan(holes)) < 0.24


def test_the_spread_says_how_sure_it_is():
    imputer = SubspaceImputer().fit(HOLES)
    std = imputer.impute_std(HOLES)
    hidden = np.isnan(HOLES)
    assert (std[~hidden] == 0).all()
    assert (std[hidden] > 0).all()
    off = (imputer.transform(HOLES) - X)[hidden] / std[hidden]
    assert 0.4 < np.sqrt(np.mean(off**2)) < 1.6
    none = np.full((1, 5), np.nan)
    assert (imputer.impute_std(none)[0] > std[hidden].min()).all()


def test_frames_names_and_indicator():
    frame = pd.DataFrame(HOLES, columns=NAMES)
    imputer = SubspaceImputer(add_indicator=True).set_output(transform="pandas").fit(frame)
    table = imputer.transform(frame)
    assert list(table.columns) == NAMES + [f"missingindicator_{name}" for name in NAMES]
    assert not table.isna().any().any()
    assert_allclose(table.iloc[:, 5:].to_numpy(), np.isnan(HOLES))
    frame["city"] = "Ulm"
    both = make_column_transformer((SubspaceImputer(), NAMES), remainder="passthrough")
    assert both.fit_transform(frame).shape == (120, 6)
    model = make_pipeline(SubspaceImputer(), Ridge()).fit(HOLES[:, :4], X[:, 4])
    assert model.score(HOLES[:, :4], X[:, 4]) > 0.8


def test_other_marks_of_missing_entries():
    marked = np.where(np.isnan(HOLES), -1.0, HOLES)
    filled = SubspaceImputer(missing_values=-1.0).fit_transform(marked)
    assert np.array_equal(filled, SubspaceImputer().fit_transform(HOLES))
    with pytest.raises(ValueError, match="NaN"):
        SubspaceImputer(missing_values=-1.0).fit(HOLES)


@pytest.mark.parametrize("keep", [True, False])
def test_columns_that_are_empty_or_constant(keep):
    table = HOLES.copy()
    table[:, 1] = np.nan
    table[:, 3] = np.where(np.isnan(table[:, 3]), np.nan, 4.2)
    imputer = SubspaceImputer(keep_empty_features=keep).fit(table)
    filled = imputer.transform(table)
    assert filled.shape[1] == (5 if keep else 4)
    assert np.isfinite(filled).all()
    assert_allclose(filled[:, 3 if keep else 2], 4.2)
    names = imputer.get_feature_names_out(NAMES)
    assert list(names) == (NAMES if keep else ["a", "c", "d", "e"])
    assert np.isnan(imputer.impute_std(table)[:, 1]).all()


def test_small_and_odd_tables():
    one = np.array([[1.0, np.nan, 3.0]])
    assert SubspaceImputer().fit_transform(one).tolist() == [[1.0, 3.0]]
    tiny = np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 6.0]])
    assert SubspaceImputer().fit_transform(tiny)[1, 0] == pytest.approx(2.0)
    column = np.array([[1.0], [np.nan], [3.0]] * 10)
    assert_allclose(SubspaceImputer().fit_transform(column)[1], 2.0)
    nothing = SubspaceImputer().fit_transform(np.full((3, 2), np.nan))
    assert nothing.shape == (3, 0)
    rows = HOLES.copy()
    rows[5] = np.nan
    filled = SubspaceImputer().fit_transform(rows)
    assert np.isfinite(filled).all()
    fixed = SubspaceImputer(2, 3).fit(HOLES)
    assert (fixed.n_subspaces_, fixed.subspace_dim_) == (2, 3)


def test_it_comes_back_from_a_file(tmp_path):
    imputer = SubspaceImputer().fit(HOLES)
    save_model(imputer, tmp_path / "i.skops")
    again = load_model(tmp_path / "i.skops")
    assert np.array_equal(again.transform(HOLES), imputer.transform(HOLES))
    assert np.array_equal(again.impute_std(HOLES), imputer.impute_std(HOLES))
