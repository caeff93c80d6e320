"""Frames with columns of any kind: types, index, categories and observed entries stay."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from polars.testing import assert_frame_equal as assert_polars_equal

from polyspan import SubspaceImputer, load_model, save_model

RNG = np.random.default_rng(0)
N = 90
LATENT = RNG.standard_normal((N, 2))
ONE, TWO = LATENT.T
START = pd.Timestamp("2024-03-01")
FULL = pd.DataFrame(
    {
        "number": ONE + 0.1 * RNG.standard_normal(N),
        "short": TWO.astype(np.float32),
        "whole": np.round(10 * ONE),
        "nullable": pd.array(np.round(5 * TWO).astype(int), dtype="Int64"),
        "yes": pd.array(TWO > 0, dtype="boolean"),
        "kind": pd.Categorical(np.array(list("abc"))[np.digitize(ONE, [-0.5, 0.5])], list("cxba")),
        "size": pd.Categorical(
            np.array(["S", "M", "L"])[np.digitize(TWO, [-0.5, 0.5])], ["S", "M", "L"], ordered=True
        ),
        "colour": np.array(["red", "blue", "green"])[np.digitize(ONE + TWO, [-0.7, 0.7])],
        "day": START + pd.to_timedelta(np.round(30 * ONE), unit="D"),
        "moment": (START + pd.to_timedelta(50 * TWO, unit="h")).tz_localize("Europe/Berlin"),
        "time": pd.to_timedelta(np.round(100 * ONE), unit="s"),
    },
    index=pd.Index([f"row {k}" for k in range(N)], name="key"),
)
HIDDEN = RNG.random(FULL.shape) < 0.15
HIDDEN[HIDDEN.all(axis=1)] = False
DISCRETE = ["yes", "kind", "size", "colour"]


def holes(frame=FULL, hidden=HIDDEN):
    out = frame.copy()
    for j, name in enumerate(out.columns):
        out.loc[hidden[:, j], name] = None
    return out


HOLES = holes()


@pytest.fixture(scope="module")
def fitted():
    return SubspaceImputer().fit(HOLES)


@pytest.fixture(scope="module")
def filled(fitted):
    return fitted.transform(HOLES)


def test_a_frame_comes_back_as_it_was(filled):
    assert (filled.dtypes == HOLES.dtypes).all()
    assert filled.index.equals(HOLES.index)
    assert list(filled.columns) == list(HOLES.columns)
    assert list(filled["kind"].cat.categories) == list("cxba")
    assert not filled.isna().any().any()
    for j, name in enumerate(FULL.columns):
        assert filled[name][~HIDDEN[:, j]].equals(HOLES[name][~HIDDEN[:, j]]), name


def test_filled_entries_are_good_and_may_occur(filled):
    for name in DISCRETE:
        where = HIDDEN[:, list(FULL.columns).index(name)]
        right = filled[name][where].astype(str) == FULL[name][where].astype(str)
        assert right.mean() > 0.6, name
        assert set(filled[name]) <= set(HOLES[name].dropna())
    for name in ("number", "whole", "nullable"):
        where = HIDDEN[:, list(FULL.columns).index(name)]
        off = (filled[name] - FULL[name])[where].astype(float)
        assert np.sqrt(np.mean(off**2)) < 0.7 * FULL[name].astype(float).std()
    assert (filled["whole"] == filled["whole"].round()).all()
    assert (filled["day"] == filled["day"].dt.normalize()).all()
    assert (filled["time"] == filled["time"].dt.round("s")).all()


def test_types_that_were_found(fitted):
    kinds = ["number", "number", "integer", "integer", "boolean", "category", "ordered",
             "category", "date", "date", "duration"]  # fmt: skip
    assert list(fitted.feature_types_.values()) == kinds
    assert set(fitted.column_errors_) == set(FULL.columns)
    assert max(fitted.column_errors_.values()) < 1


def test_polars_frames_come_back_as_they_were(filled):
    table = pl.from_pandas(HOLES.reset_index(drop=True)).with_columns(
        pl.col("size").cast(pl.Enum(["S", "M", "L"]))
    )
    out = SubspaceImputer().fit_transform(table)
    assert out.schema == table.schema
    assert out.null_count().sum_horizontal().item() == 0
    observed = pl.from_numpy(~HIDDEN, schema=table.columns)
    for name in table.columns:
        assert out[name].filter(observed[name]).equals(table[name].filter(observed[name])), name
    # Categories have another order there, which changes what trees choose among equals.
    apart = np.abs((out["day"].to_pandas() - filled["day"].to_numpy()).dt.days)
    assert apart.max() < 10


def test_draws_keep_types_and_observed_entries(fitted):
    draws = fitted.sample_imputations(HOLES, 3, random_state=1)
    again = fitted.sample_imputations(HOLES, 3, random_state=1)
    for one, two in zip(draws, again, strict=True):
        assert_frame_equal(one, two)
        assert (one.dtypes == HOLES.dtypes).all()
        assert not one.isna().any().any()
        for j, name in enumerate(FULL.columns):
            assert one[name][~HIDDEN[:, j]].equals(HOLES[name][~HIDDEN[:, j]])
            assert set(one["colour"]) <= set(HOLES["colour"].dropna())
    assert not draws[0].equals(draws[1])


def test_probabilities_of_levels(fitted, filled):
    found = fitted.impute_proba(HOLES)
    assert list(found) == DISCRETE
    for name, table in found.items():
        assert_allclose(table.sum(axis=1), 1)
        assert table.index.equals(HOLES.index)
        likeliest = table.columns.to_numpy()[table.to_numpy().argmax(axis=1)]
        assert (likeliest.astype(str) == filled[name].astype(str)).all()
    seen = HOLES["kind"].notna()
    assert (found["kind"][seen].max(axis=1) == 1).all()
    assert (found["kind"][~seen].max(axis=1) < 1).all()


def test_spread_of_numbers_only(fitted):
    std = fitted.impute_std(HOLES)
    assert list(std.columns) == list(FULL.columns)
    for j, name in enumerate(FULL.columns):
        assert (std[name][~HIDDEN[:, j]] == 0).all()
        hidden = std[name][HIDDEN[:, j]]
        assert hidden.isna().all() if name in DISCRETE else (hidden > 0).all()


def test_categories_that_fit_has_not_seen_stay(fitted):
    new = HOLES.iloc[:4].copy()
    new["colour"] = ["violet", None, "red", "violet"]
    out = fitted.transform(new)
    assert out["colour"].iloc[[0, 2, 3]].tolist() == ["violet", "red", "violet"]
    assert out["colour"].iloc[1] in {"red", "blue", "green"}
    assert fitted.impute_proba(new)["colour"].iloc[0].isna().all()


def test_columns_that_are_passed_through():
    table = HOLES[["number", "short"]].copy()
    table["id"] = pd.array(np.arange(N), dtype="Int64")
    table["note"] = [f"text {k}" for k in range(N)]
    table["unit"] = "cm"
    table.loc[table.index[3], ["id", "note", "unit"]] = None
    with pytest.warns(UserWarning, match="'id' \\(identifier\\), 'note' \\(free text\\), 'unit'"):
        out = SubspaceImputer().fit_transform(table)
    assert out["id"].isna().sum() == out["note"].isna().sum() == 1
    assert (out["unit"] == "cm").all()
    given = SubspaceImputer(feature_types={"id": "integer", "note": "skip"}).fit(table)
    assert given.transform(table)["id"].notna().all()
    assert given.feature_types_["note"] == "skip"


def test_types_of_an_array():
    codes = np.column_stack([ONE, np.digitize(ONE, [-0.5, 0.5]) * 7.0, TWO])
    table = np.where(HIDDEN[:, :3], np.nan, codes)
    model = SubspaceImputer(feature_types={1: "category"}).fit(table)
    assert set(model.transform(table)[:, 1]) == {0.0, 7.0, 14.0}
    assert np.mean(model.transform(table)[:, 1] == codes[:, 1]) > 0.9
    assert model.impute_proba(table)[1].shape == (N, 3)
    wanted = ["number", "category", "number"]
    again = SubspaceImputer(feature_types=wanted).fit_transform(table)
    assert np.array_equal(again, model.transform(table))


@pytest.mark.parametrize(
    ("types", "match"),
    [
        ({"nothing": "number"}, "names column 'nothing', which X does not have"),
        ({"number": "text"}, "says 'text' of column 'number'"),
        (["number"], "feature_types has 1 entries and X 11 columns"),
        ({"colour": "number"}, "says 'number' of column 'colour', whose entries are text"),
    ],
)
def test_wrong_types_are_refused(types, match):
    with pytest.raises(ValueError, match=match):
        SubspaceImputer(feature_types=types).fit(HOLES)


def test_text_where_numbers_were(fitted):
    new = HOLES.iloc[:3].copy()
    new["number"] = ["a", "b", None]
    with pytest.raises(ValueError, match="column 'number' had numbers in fit and now holds 'a'"):
        fitted.transform(new)


def test_models_come_back_from_a_file(fitted, filled, tmp_path):
    save_model(fitted, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert_frame_equal(again.transform(HOLES), filled)
    one, two = (m.sample_imputations(HOLES, 1, random_state=0)[0] for m in (again, fitted))
    assert_frame_equal(one, two)


def test_output_in_another_package(fitted, filled):
    model = SubspaceImputer().set_output(transform="polars").fit(HOLES)
    out = model.transform(HOLES.reset_index(drop=True))
    assert isinstance(out, pl.DataFrame)
    assert_polars_equal(out, pl.from_pandas(filled.reset_index(drop=True)))


def test_dates_as_objects():
    table = pd.DataFrame(
        {"when": [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(60)]}
    )
    table["value"] = np.arange(60) ** 1.5
    table.loc[5, "when"] = None
    out = SubspaceImputer().fit_transform(table)
    assert out["when"].notna().all()
