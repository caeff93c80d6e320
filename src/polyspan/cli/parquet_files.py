"""Parquet files: whole numbers stay whole, and what is filled has the types of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.errors import CommandError


def read_parquet(path: Path) -> Any:
    """Return a data frame in which whole numbers with missing ones among them stay whole."""
    import pandas as pd
    import pyarrow.parquet

    with path.open("rb") as file:
        frame = pd.read_parquet(file, engine="pyarrow")
    with path.open("rb") as file:
        source = pyarrow.parquet.ParquetFile(file)
        for k, name in enumerate(map(str, frame.columns)):
            place = source.schema_arrow.get_field_index(name)
            kind = source.schema_arrow.field(place).type if place >= 0 else None
            # pandas reads them as floats, which cannot hold all of them.
            if pyarrow.types.is_integer(kind) and frame.dtypes.iloc[k].kind == "f":
                cells = source.read(columns=[name]).column(name).to_pylist()
                nullable = str(kind).replace("int", "Int").replace("u", "U")  # uint8: UInt8
                frame.isetitem(k, pd.Series(cells, index=frame.index, dtype=nullable))
    return frame


def write_filled_parquet(
    source: Path, fills: dict[str, tuple[np.ndarray, Any]], target: Path
) -> None:
    """Write a copy of a .parquet file with some cells replaced; its schema stays the same.

    Parameters
    ----------
    source, target : Path
    fills : dict
        From names of columns to rows, and to a pandas series of what they hold from now on.
    """
    import pyarrow
    import pyarrow.parquet

    with source.open("rb") as file:
        table = pyarrow.parquet.ParquetFile(file).read()
    for name, (rows, values) in fills.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        try:
            old = pyarrow.concat_arrays(table.column(place).unify_dictionaries().chunks)
            new = _replaced(old, rows, pyarrow.Array.from_pandas(values))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise CommandError(
                f"column {name} of {source} has the type {field.type}, which cannot hold what is "
                f"filled in ({error}): leave it out with --drop {name}"
            ) from error
        table = table.set_column(place, field, new)
    pyarrow.parquet.write_table(table, target)


def _replaced(old: Any, rows: np.ndarray, new: Any) -> Any:
    """Return an array of Arrow with other values in some rows."""
    import pyarrow

    if pyarrow.types.is_dictionary(old.type):
        return _recoded(old, rows, new)
    if pyarrow.types.is_null(old.type):
        return old
    order = np.arange(len(old))
    order[rows] = len(old) + np.arange(len(rows))
    return pyarrow.concat_arrays([old, new.cast(old.type)]).take(pyarrow.array(order))


def _recoded(old: Any, rows: np.ndarray, new: Any) -> Any:
    """Return categories with others in some rows; those that are new come last."""
    import pyarrow

    levels = old.dictionary.to_pylist()
    place = {level: code for code, level in enumerate(levels)}
    codes = old.indices.to_pylist()
    for row, value in zip(rows, new.to_pylist(), strict=True):
        codes[row] = place.setdefault(value, len(place))
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes, type=old.type.index_type),
        pyarrow.array(list(place), type=old.type.value_type),
        ordered=old.type.ordered,
    )
