"""What is added to a filled table, in which container it comes, and what a file may hold."""

import datetime
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from polyspan import SubspaceImputer, load_model, save_model

N = 40
RNG = np.random.RandomState(0)
BASE = pd.DataFrame({"x": RNG.randn(N), "y": RNG.randn(N)})
BASE["y"] += BASE["x"]
BASE.loc[3, "x"] = np.nan


def imputer(**options):
    return SubspaceImputer(method="subspaces", **options)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
def test_indicators_overwrite_no_column(frame):
    taken = frame(BASE.assign(missingindicator_x=np.arange(N) * 1.5))
    with pytest.raises(ValueError, match="columns that X has already: missingindicator_x;"):
        imputer(add_indicator=True).fit(taken)


def test_many_indicators_at_once():
    wide = pd.DataFrame(RNG.randn(30, 120)).add_prefix("c")
    wide = wide.mask(RNG.rand(30, 120) < 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.PerformanceWarning)
        out = imputer(add_indicator=True).fit_transform(wide)
    assert np.array_equal(out.iloc[:, 120:], wide.loc[:, wide.isna().any()].isna())


def test_indicators_of_odd_columns():
    levels = BASE.set_axis(pd.MultiIndex.from_tuples([("a", "1"), ("b", "2")]), axis=1)
    out = imputer(add_indicator=True).fit_transform(levels.set_axis([0] * N))
    assert out.columns.nlevels == 2
    assert out.shape == (N, 3)


@pytest.mark.parametrize("dtype", ["float64", "Float32", "Int64"])
def test_empty_columns_of_numbers_become_zero(dtype):
    table = BASE.assign(c=pd.array([None] * N, dtype=dtype), text=None)
    out = imputer(keep_empty_features=True).fit_transform(table)
    assert out["c"].dtype == table["c"].dtype
    assert (out["c"] == 0).all()
    assert out["text"].isna().all()
    polars = pl.from_pandas(BASE).with_columns(
        c=pl.lit(None, dtype=pl.Int8), d=pl.lit(None), e=pl.lit(None, dtype=pl.String)
    )
    out = imputer(keep_empty_features=True).fit_transform(polars)
    assert out.schema == polars.schema
    assert out["c"].to_list() == [0] * N
    assert out["d"].null_count() == out["e"].null_count() == N


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_draws_from_arrays_follow_set_output(container):
    model = imputer(add_indicator=True).set_output(transform=container).fit(BASE.to_numpy())
    one = model.sample_imputations(BASE.to_numpy(), 1, 0)[0]
    filled = model.transform(BASE.to_numpy())
    assert type(one) is type(filled)
    assert list(one.columns) == list(filled.columns)


def test_positions_in_feature_types():
    model = imputer(feature_types={np.int64(1): "skip"}).fit(BASE)
    assert model.feature_types_["y"] == "skip"
    for table in (BASE, BASE.to_numpy()):
        with pytest.raises(ValueError, match="names column True"):
            imputer(feature_types={True: "skip"}).fit(table)


def where_it_warns(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return {one.filename for one in found if "columns that are not used" in str(one.message)}


def test_warnings_name_the_line_of_the_caller():
    table = BASE.assign(c="k")
    chosen = ColumnTransformer([("i", imputer(), ["x", "y", "c"])])
    line = make_pipeline(imputer(feature_types={"c": "auto"}), ColumnTransformer([]))
    last = make_pipeline(imputer(), ColumnTransformer([("a", "passthrough", ["x"])]))
    for call in (
        lambda: imputer().fit(table),
        lambda: imputer().fit_transform(table),
        lambda: chosen.fit_transform(table),
        lambda: line.fit(table),
        lambda: last.fit_transform(table),
    ):
        assert where_it_warns(call) == {__file__}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pd.Categorical([pd.Timestamp("2020"), pd.Timestamp("2021")] * 20), "Timestamp"),
        (pd.Series([b"a", b"b"] * 20), "bytes"),
        (pd.Series([Decimal("1.5")] * N), "Decimal"),
        (pd.cut(np.arange(N), 3), "Interval"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_that_a_file_cannot_hold(values, name, tmp_path):
    model = imputer().fit(BASE.assign(c=values))
    with pytest.raises(TypeError, match=f"column 'c' has the value .* of type {name}"):
        save_model(model, tmp_path / "model.skops")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_names_that_a_file_cannot_hold(tmp_path):
    for names in (
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
        pd.to_datetime(["2020", "2021"]),
    ):
        model = imputer().fit(BASE.set_axis(names, axis=1))
        with pytest.raises(TypeError, match=r"the name of a column, is of type (tuple|Timestamp)"):
            save_model(model, tmp_path / "model.skops")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_file_holds(tmp_path):
    table = BASE.assign(
        day=pd.Timestamp("2020-01-01"),
        when=[datetime.date(2020, 1, 1 + k % 20) for k in range(N)],
        kind=pd.Categorical(np.arange(N) % 3),
    )
    table.loc[[4, 5], ["day", "when", "kind"]] = None
    model = imputer(missing_values=pd.NA).fit(table)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    for one in (again, pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(one.transform(table), model.transform(table))
    assert again.missing_values is None
    assert model.missing_values is pd.NA
    assert model.transform(table)["day"].notna().all()
