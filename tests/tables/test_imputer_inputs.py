"""What SubspaceImputer takes and gives, beside KNNImputer and IterativeImputer."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris, load_linnerud, load_wine
from sklearn.impute import KNNImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyspan import SubspaceImputer
from polyspan.datasets import mask_entries

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 2)) @ RNG.standard_normal((2, 5)) * [1, 5, 100, 0.1, 1] + 7.0
X += 0.05 * X.std(axis=0) * RNG.standard_normal(X.shape)
HOLES = mask_entries(X, 0.2, random_state=0)
HIDDEN = np.isnan(HOLES)
NAMES = list("abcde")
FILLED = SubspaceImputer().fit_transform(HOLES)


def rmse(filled, truth, hidden):
    return np.sqrt(np.mean(((filled - truth) / truth.std(axis=0))[hidden] ** 2))


@pytest.mark.parametrize("load", [load_diabetes, load_iris, load_linnerud, load_wine])
@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_no_worse_than_the_mean_of_the_column(load, fraction):
    truth = load().data
    ours, mean = [], []
    for seed in range(201, 203):
        hidden = np.random.default_rng(seed).uniform(size=truth.shape) < fraction
        holes = np.where(hidden, np.nan, truth)
        ours.append(rmse(SubspaceImputer().fit_transform(holes), truth, hidden))
        mean.append(rmse(np.where(hidden, np.nanmean(holes, axis=0), holes), truth, hidden))
    assert np.mean(ours) < np.mean(mean)


@pytest.mark.parametrize("mark", [np.nan, None, pd.NA])
@pytest.mark.parametrize("hole", [None, pd.NA, np.nan])
@pytest.mark.parametrize("frame", [False, True])
def test_marks_that_are_no_numbers_stand_for_each_other(mark, hole, frame):
    table = HOLES.astype(object)
    table[HIDDEN] = hole
    if frame:
        table = pd.DataFrame(table, columns=NAMES)
    imputer = SubspaceImputer(missing_values=mark, add_indicator=True).fit(table)
    out = np.asarray(imputer.transform(table))
    assert np.array_equal(out[:, :5].astype(float), FILLED)
    assert np.array_equal(out[:, 5:], HIDDEN)
    assert imputer.__sklearn_tags__().input_tags.allow_nan
    names = NAMES if frame else [f"x{k}" for k in range(5)]
    assert list(imputer.get_feature_names_out())[5:] == [f"missingindicator_{n}" for n in names]


def test_a_number_as_mark_with_integers_and_indicator():
    table = np.where(HIDDEN, -999, np.round(HOLES * 10)).astype(np.int64)
    out = SubspaceImputer(missing_values=-999, add_indicator=True).fit_transform(table)
    twin = np.where(HIDDEN, np.nan, np.round(HOLES * 10))
    assert np.array_equal(out, SubspaceImputer(add_indicator=True).fit_transform(twin))
    assert np.array_equal(out[:, 5:], HIDDEN)


@pytest.mark.parametrize("kind", ["Float64", "float32"])
def test_frames_of_pandas(kind):
    frame = pd.DataFrame(HOLES, columns=NAMES, index=np.arange(120) + 7).astype(kind)
    table = SubspaceImputer().set_output(transform="pandas").fit_transform(frame)
    assert list(table.columns) == NAMES
    assert table.index[0] == 7
    assert (table.dtypes == kind).all()
    close = {"rtol": 2e-4 if kind == "float32" else 1e-12, "atol": 1e-2}
    assert_allclose(table.to_numpy(dtype=float), FILLED, **close)


def test_frames_of_polars():
    columns = {
        name: [None if np.isnan(entry) else float(entry) for entry in HOLES[:, k]]
        for k, name in enumerate(NAMES)
    }
    table = SubspaceImputer().set_output(transform="polars").fit_transform(pl.DataFrame(columns))
    assert isinstance(table, pl.DataFrame)
    assert table.columns == NAMES
    assert np.array_equal(table.to_numpy(), FILLED)


def test_inside_other_estimators():
    frame = pd.DataFrame(HOLES, columns=NAMES)
    frame["city"] = "Ulm"
    steps = make_pipeline(SubspaceImputer(add_indicator=True), StandardScaler())
    both = ColumnTransformer([("numbers", steps, NAMES)], remainder="passthrough")
    table = both.set_output(transform="pandas").fit_transform(frame)
    assert list(table.columns)[4:7] == ["numbers__e", "numbers__missingindicator_a",
                                        "numbers__missingindicator_b"]  # fmt: skip
    assert table.shape == (120, 11)


def test_the_indicator_and_empty_columns_are_those_of_the_neighbours():
    table = HOLES.copy()
    table[:, 0], table[:, 1] = X[:, 0], np.nan
    ours = SubspaceImputer(add_indicator=True).fit(table)
    theirs = KNNImputer(add_indicator=True).fit(table)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert_allclose(ours.transform(HOLES)[:, 4:], theirs.transform(HOLES)[:, 4:])


@pytest.mark.parametrize("scale", [1e12, 1e-12, 1e250, 1e-250])
def test_scales_change_nothing(scale):
    assert_allclose(SubspaceImputer().fit_transform(HOLES * scale) / scale, FILLED, rtol=1e-6)


def test_columns_far_from_zero():
    assert rmse(SubspaceImputer().fit_transform(HOLES + 1e9) - 1e9, X, HIDDEN) < 0.4


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_keep_their_type(dtype):
    out = SubspaceImputer().fit_transform(HOLES.astype(dtype))
    assert out.dtype == dtype
    assert rmse(out.astype(float), X, HIDDEN) < 0.4


def test_complete_at_first_and_holes_later():
    imputer = SubspaceImputer().fit(X)
    assert np.array_equal(imputer.transform(X), X)
    assert rmse(imputer.transform(HOLES), X, HIDDEN) < 0.2
    assert imputer.transform(HOLES[3:4]).shape == (1, 5)


def test_new_values_in_a_constant_column_do_not_change_others():
    table = np.column_stack([HOLES, np.full(len(X), 1e-3)])
    imputer = SubspaceImputer().fit(table)
    before = imputer.transform(table[:5])
    table[:5, 5] = 8.0
    assert np.array_equal(imputer.transform(table[:5])[:, :5], before[:, :5])
    assert_allclose(imputer.transform(np.full((1, 6), np.nan))[0, 5], 1e-3)


def test_more_features_than_samples():
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 50))
    truth += 0.5 * rng.standard_normal(truth.shape)
    holes = mask_entries(truth, 0.2, random_state=0)
    filled = SubspaceImputer().fit_transform(holes)
    hidden = np.isnan(holes)
    assert rmse(filled, truth, hidden) < 0.75
    assert rmse(filled, truth, hidden) < rmse(KNNImputer().fit_transform(holes), truth, hidden)


def test_what_it_does_not_take():
    with pytest.raises(TypeError, match="dense data is required"):
        SubspaceImputer().fit(scipy.sparse.csr_matrix(np.nan_to_num(HOLES)))
    with pytest.raises(ValueError, match="infinity"):
        SubspaceImputer().fit(np.where(HIDDEN, np.inf, HOLES))
    with pytest.raises(ValueError, match="3 features, but SubspaceImputer is expecting 5"):
        SubspaceImputer().fit(HOLES).transform(HOLES[:, :3])


@pytest.mark.parametrize("n_groups", [1, 6])
def test_the_spread_is_that_of_the_errors(n_groups):
    rng = np.random.default_rng(3)
    centres = 3 * rng.standard_normal((n_groups, 12))
    loadings = rng.standard_normal((n_groups, 2, 12))
    groups = rng.integers(0, n_groups, 700)
    truth = np.einsum("ns,nsm->nm", rng.standard_normal((700, 2)), loadings[groups])
    truth += centres[groups] + 0.5 * rng.standard_normal(truth.shape)
    holes = mask_entries(truth, 0.3, random_state=0)
    imputer = SubspaceImputer().fit(holes)
    assert imputer.n_subspaces_ > 1 or n_groups == 1
    hidden = np.isnan(holes)
    off = np.abs(imputer.transform(holes) - truth)[hidden] / imputer.impute_std(holes)[hidden]
    assert 0.6 < np.mean(off < 1) < 0.8  # .683 of a Gaussian
    assert 0.9 < np.mean(off < 2) < 0.985  # .954


def test_the_same_seed_gives_the_same():
    rng = np.random.default_rng(4)
    table = mask_entries(
        3 * rng.standard_normal((4, 6))[rng.integers(0, 4, 400)] + rng.standard_normal((400, 6)),
        0.2,
        random_state=0,
    )
    one, two, other = (
        SubspaceImputer(5, 2, random_state=seed).fit_transform(table) for seed in (1, 1, 2)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_sizes_that_do_not_fit_are_lowered_with_a_warning():
    with pytest.warns(UserWarning, match="subspace_dim=9 is too large for 120 rows and 5 columns"):
        model = SubspaceImputer(1, 9, random_state=0).fit(HOLES)
    assert (model.n_subspaces_, model.subspace_dim_) == (1, 4)
    assert rmse(model.transform(HOLES), X, HIDDEN) < 0.5
    with pytest.warns(UserWarning, match="n_subspaces=500 is too large"):
        assert SubspaceImputer(500, 1).fit(HOLES).n_subspaces_ <= 120


def test_entries_stay_within_the_range_of_their_column():
    holes = mask_entries(X, 0.6, random_state=1)
    filled = SubspaceImputer(random_state=0).fit_transform(holes)
    assert np.all(filled >= np.nanmin(holes, axis=0))
    assert np.all(filled <= np.nanmax(holes, axis=0))
    low, high = np.nanpercentile(holes, [30, 70], axis=0)
    narrow = np.where((holes < low) | (holes > high), np.nan, holes)
    narrow[0] = np.nan
    model = SubspaceImputer(random_state=0).fit(narrow)
    new = np.where(np.arange(5) == 2, np.nan, X)  # entries far outside of what was seen
    assert np.all(model.transform(new)[:, 2] <= np.nanmax(narrow[:, 2]))
    assert np.all(model.transform(new)[:, 2] >= np.nanmin(narrow[:, 2]))


def test_a_constant_column_is_filled_surely():
    holes = HOLES.copy()
    holes[:, 1] = np.where(np.isnan(holes[:, 1]), np.nan, 5.0)
    model = SubspaceImputer(random_state=0).fit(holes)
    assert np.all(model.transform(holes)[:, 1] == 5.0)
    assert not model.impute_std(holes)[:, 1].any()


def test_columns_of_one_name_are_named():
    frame = pd.DataFrame(np.random.RandomState(0).randn(30, 4), columns=["a", "b", "a", "b"])
    with pytest.raises(ValueError, match=r"same name: 'a', 'b'; rename or drop all but one"):
        SubspaceImputer().fit(frame)
    fitted = SubspaceImputer().fit(frame.iloc[:, :2])
    with pytest.raises(ValueError, match=r"same name: 'a'"):
        fitted.transform(frame.iloc[:, [0, 2]])


@pytest.mark.parametrize("kind", [np.array, list, lambda rows: np.array(rows, dtype=str)])
def test_text_in_an_array_is_named(kind):
    """Columns of an array are numbers; those of a frame may hold text."""
    rows = X.astype(object)
    rows[3, 2], rows[4, 1] = "Rome", "1.5"  # the second is read as a number
    message = r"a column of X cannot be read as numbers \(2: .*'Rome'.*; or give a frame"
    for call in (SubspaceImputer().fit, SubspaceImputer(missing_values=-1).fit,
                 SubspaceImputer().fit(X).transform):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call(kind(rows.tolist()))
