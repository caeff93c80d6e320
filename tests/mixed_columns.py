"""Tables of numbers, categories and dates, for the tests of the command line."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa

N = 120
FAST = ("--method", "subspaces")


def cells(seed=0, n=N):
    """A table of text, complete and with blanks; every column follows one number."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    days = pd.Timestamp("2020-06-01") + pd.to_timedelta(np.rint(30 * x), unit="D")
    table = pd.DataFrame(
        {
            "id": [f"{k:04d}" for k in range(n)],
            "age": [f"{value:.0f}" for value in 40 + 10 * x],
            "price": [f"{value:.2f}" for value in np.exp(x)],
            "size": np.where(x > 0.5, "L", np.where(x < -0.5, "S", "M")),
            "day": days.strftime("%Y-%m-%d"),
            "smoker": np.where(x > 0, "yes", "no"),
            "flag": np.where(x > 0, "true", "false"),
            "note": [f"text {k}" for k in range(n)],
        },
        dtype=object,
    )
    holes = table.mask(rng.random(table.shape) < 0.1, "")
    holes["id"] = table["id"]
    return table, holes


def save(frame, path="t.csv", **options):
    frame.to_csv(path, index=False, **options)


def load(path, **options):
    return pd.read_csv(path, dtype=str, keep_default_na=False, **options)


def agree(a, b, where):
    """Tell whether all those cells of two tables are equal, of which there are some."""
    a, b, where = (one.to_numpy() for one in (a, b, where))
    return bool(where.any() and (a[where] == b[where]).all())


def arrow_table(n=N):
    """A .parquet table of many types, in which every column follows one number."""
    rng = np.random.default_rng(0)
    x, start = rng.standard_normal(n), dt.datetime(2020, 1, 1)

    def column(values, kind):
        return pa.array([None if rng.random() < 0.1 else value for value in values], kind)

    hours = [start + dt.timedelta(hours=int(30 * value)) for value in x]
    letters = ["a" if value > 0 else "b" for value in x]
    columns = {
        "whole": column([int(10 * value) for value in x], pa.int64()),
        "byte": column([int(100 + 10 * value) for value in x], pa.uint8()),
        "huge": column([2**60 + 1 + int(2**20 * value) for value in x], pa.int64()),
        "single": column(x.tolist(), pa.float32()),
        "decimal": column([decimal.Decimal(f"{value:.2f}") for value in x], pa.decimal128(6, 2)),
        "text": column(letters, pa.large_string()),
        "category": column(letters, pa.string()).dictionary_encode(),
        "flag": column([bool(value > 0) for value in x], pa.bool_()),
        "day": column([hour.date() for hour in hours], pa.date32()),
        "hour": column(hours, pa.timestamp("ms")),
        "zoned": column(hours, pa.timestamp("us", "Europe/Berlin")),
        "span": column([hour - start for hour in hours], pa.duration("us")),
        "list": column([[1, 2]] * n, pa.list_(pa.int64())),
        "null": pa.array([None] * n, pa.null()),
    }
    return pa.table(columns).replace_schema_metadata({"made by": "a test"})
