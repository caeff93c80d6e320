"""New rows whose columns have other types than in `fit`: filled in those of `fit`, or refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from polyspan import SubspaceImputer, load_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore:no other column:UserWarning")

N = 40
RNG = np.random.RandomState(0)
X = RNG.randn(N)
TABLE = pd.DataFrame(
    {
        "number": X,
        "other": X + RNG.randn(N),
        "text": np.where(X > 0, "a", "b"),
        "kind": pd.Categorical(np.where(X > 0, "u", "v"), ["w", "v", "u"]),
        "size": pd.Categorical(np.where(X > 0, "L", "S"), ["S", "M", "L"], ordered=True),
        "yes": X > 0,
        "whole": np.round(3 * X).astype(int),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(9 * X), "D"),
        "moment": (pd.Timestamp("2020-01-01") + pd.to_timedelta(9 * X, "h")).tz_localize("UTC"),
        "time": pd.to_timedelta(np.round(9 * X), "h"),
    }
)
POLARS = pl.from_pandas(TABLE).with_columns(
    pl.col("size").cast(pl.Enum(["S", "M", "L"])),
    day=pl.col("day").dt.date(),
    price=(pl.col("number") + 20).cast(pl.Decimal(10, 2)),
)


@pytest.fixture(scope="module")
def model():
    return SubspaceImputer(method="subspaces").fit(TABLE)


@pytest.fixture(scope="module")
def polars_model():
    return SubspaceImputer(method="subspaces").fit(POLARS)


EMPTY = {
    "float": [np.nan],
    "object": pd.Series([None], dtype=object),
    "Int64": pd.array([None], dtype="Int64"),
    "NaT": [pd.NaT],
}


@pytest.mark.parametrize("name", TABLE.columns)
@pytest.mark.parametrize("empty", EMPTY)
def test_a_column_without_entries_gets_the_type_of_fit(model, name, empty):
    out = model.transform(TABLE.iloc[[0]].assign(**{name: EMPTY[empty]}))
    assert out[name].notna().all()
    can_hold = {
        "float": ("whole",),
        "Int64": ("whole",),
        "NaT": ("day",),
    }
    if name not in can_hold.get(empty, ()):
        assert out[name].dtype == TABLE[name].dtype


@pytest.mark.parametrize("name", POLARS.columns)
def test_a_null_column_gets_the_type_of_fit(polars_model, name, tmp_path):
    new = POLARS[:1].with_columns(pl.Series(name, [None]))
    out = polars_model.transform(new)
    assert out[name].null_count() == 0
    assert out.schema == POLARS.schema
    save_model(polars_model, tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").transform(new).equals(out)


def test_rows_of_the_other_package(model, polars_model):
    nothing = pl.DataFrame({name: [None] for name in TABLE.columns})
    out = model.transform(nothing)
    assert not any(column.null_count() or column.dtype == pl.Null for column in out.get_columns())
    assert out["moment"].dtype == pl.Datetime("us", "UTC")
    row = pd.DataFrame([dict.fromkeys(POLARS.columns)])
    back = polars_model.transform(row)
    assert back.notna().all(axis=None)
    assert str(back["moment"].dtype) == "datetime64[us, UTC]"


def test_categories_that_new_rows_lack(model, polars_model):
    two = TABLE.iloc[[0, 0]].reset_index(drop=True)
    out = model.transform(two.assign(kind=pd.Categorical(["w", None], ["w"])))
    assert out["kind"].iloc[1] in ("u", "v")
    assert out["kind"].cat.categories[0] == "w"
    short = pd.Categorical(["M", None], ["M"], ordered=True)
    assert list(model.transform(two.assign(size=short))["size"].cat.categories) == ["S", "M", "L"]
    other = pd.Categorical(["M", None], ["XL", "M"], ordered=True)
    with pytest.raises(ValueError, match="column 'size', which was ordered category in fit, is of"):
        model.transform(two.assign(size=other))
    rows = POLARS[[0, 0]]
    enum = pl.Series("size", ["M", None], dtype=pl.Enum(["M"]))
    assert polars_model.transform(rows.with_columns(enum))["size"].dtype == POLARS["size"].dtype
    enum = pl.Series("size", ["M", None], dtype=pl.Enum(["XL", "M"]))
    with pytest.raises(ValueError, match="column 'size'"):
        polars_model.transform(rows.with_columns(enum))


@pytest.mark.parametrize(
    ("name", "values", "match"),
    [
        ("day", 3.5, "column 'day' had dates in fit and now holds 3.5"),
        ("day", "2020-01-01", "column 'day' had dates in fit and now holds '2020"),
        ("time", pd.Timestamp("2020"), "column 'time' had durations in fit"),
        ("number", pd.Timestamp("2020"), "column 'number' had numbers in fit"),
        ("text", [1.0, np.nan], "column 'text', which was .* in fit, is of type float64 now"),
    ],
)
def test_entries_of_another_kind(model, name, values, match):
    with pytest.raises(ValueError, match=match):
        model.transform(TABLE.iloc[:2].assign(**{name: values}))


def test_lists_where_levels_were_are_kept(model):
    new = TABLE.iloc[:1].assign(text=[["a"]], number=np.nan)
    assert model.transform(new)["text"].tolist() == [["a"]]


def test_an_array_after_a_frame(model):
    for array in (TABLE.to_numpy(), np.zeros((2, TABLE.shape[1]))):
        with pytest.raises(ValueError, match="column 'text' held 'a' in fit, and X is an array"):
            model.transform(array)


def test_other_forms_of_tables(polars_model):
    for form, how in ((POLARS.lazy(), "collect"), (TABLE["number"], "to_frame")):
        with pytest.raises(ValueError, match=f"pass X.{how}"):
            SubspaceImputer().fit(form)
    with pytest.raises(ValueError, match=r"pass X.collect\(\)"):
        polars_model.transform(POLARS.lazy())


@pytest.mark.parametrize(("marker", "dtype"), [(np.nan, float), (-1, float), (np.nan, "float32")])
def test_masked_entries_are_missing(marker, dtype):
    table = np.column_stack([X, X + RNG.randn(N)]).astype(dtype)
    masked = np.ma.masked_greater(table, 1.0)
    out = SubspaceImputer(method="subspaces", missing_values=marker).fit_transform(masked)
    assert out.dtype == table.dtype
    assert out.max() <= 1
    assert np.array_equal(out[~masked.mask], table[~masked.mask])


def test_masked_whole_numbers():
    out = SubspaceImputer().fit_transform(np.ma.masked_equal(np.arange(60).reshape(20, 3) % 7, 6))
    assert not (out == 6).any()
