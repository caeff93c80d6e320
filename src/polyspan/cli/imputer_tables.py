"""Tables that a SubspaceImputer fills: read, fill, write, and say what was done."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.base.checks import first_ten
from polyspan.base.files import atomic_write
from polyspan.cli.column_types import learned
from polyspan.cli.errors import CommandError, say, short_warnings, writing
from polyspan.cli.formats import FRAMES, ending_of
from polyspan.cli.imputer_report import report_columns, tell_filled
from polyspan.cli.mixed_outputs import check_numbers, write_mixed
from polyspan.cli.mixed_tables import MixedTable, known_table, mixed_table, set_types
from polyspan.cli.model_calls import fit_table, report_written
from polyspan.cli.outputs import put_filled, round_integer_columns
from polyspan.cli.tables import Table, as_numbers, read_chosen
from polyspan.tables import SubspaceImputer


def read_for_imputer(
    model: SubspaceImputer, path: Path, how: dict[str, Any], types: Sequence[str] | None
) -> Table | MixedTable:
    """Read a file for a model that is to be fitted; an array holds numbers only.

    Parameters
    ----------
    model : SubspaceImputer
        Its `feature_types` are set where the columns need it.
    path : Path
    how : dict
        Arguments of `read_chosen`.
    types : sequence of str or None
        Values of --types.
    """
    chosen = read_chosen(path, **how)
    if chosen.frame is not None:
        with _in_words_of_options():
            return mixed_table(chosen, model, types)
    set_types(model, chosen, types)
    return as_numbers(chosen, only_numbers=True)


def fit_imputer(model: SubspaceImputer, table: Table | MixedTable, quiet: bool) -> None:
    """Fit; what the model warns of is a note."""
    with _in_words_of_options():
        fit_table(model, table, "imputer", quiet)


def fill_table(
    model: SubspaceImputer,
    path: Path,
    how: dict[str, Any],
    outputs: Sequence[Path],
    *,
    known: bool,
    types: Sequence[str] | None,
    seed: int | None,
    force: bool,
    quiet: bool,
) -> None:
    """Fill a file, and write it once, or several draws.

    Parameters
    ----------
    known : bool
        Whether the model is fitted already.
    seed : int or None
        Of draws, one for each output; None: the best guess.
    """
    table: Table | MixedTable
    if known:
        chosen = read_chosen(path, **how)
        arrays = chosen.frame is None
        table = as_numbers(chosen) if arrays else known_table(chosen, model)
    else:
        table = read_for_imputer(model, path, how, types)
    if isinstance(table, MixedTable):
        lost = check_numbers(table, outputs[0])
        if lost:
            say("note", f"not in {outputs[0]}, which can hold numbers only: {first_ten(lost)}")
    if not known:
        fit_imputer(model, table, quiet)
    filled = _completed(model, table, len(outputs), seed)
    _write(table, filled, outputs, force=force)
    _tell(model, table, filled[0], outputs, quiet)


def columns_of(table: Table | MixedTable) -> tuple[list[str], np.ndarray]:
    """Return the names of the columns, and which entries are missing."""
    if isinstance(table, MixedTable):
        return table.names, table.missing
    return list(table.names or map(str, table.used)), np.isnan(table.X)


def reasons_of(table: Table | MixedTable) -> dict[Any, str]:
    """Return why the command itself passes columns through, by the names that the model knows."""
    return table.reasons if isinstance(table, MixedTable) else {}


def _completed(
    model: SubspaceImputer, table: Table | MixedTable, n_tables: int, seed: int | None
) -> list[Any]:
    """Return completed tables, with the columns of the table."""
    # A model from a file may drop columns without any entry, or add indicators.
    model.set_params(keep_empty_features=True, add_indicator=False)
    model.indicator_ = None
    model.set_output(transform="default")
    if isinstance(table, MixedTable):
        X = table.columns
    else:
        _check_number_model(model, table)
        X = table.for_model(model)
    with _in_words_of_options():
        # The report that follows names the columns and counts the entries.
        warnings.filterwarnings("ignore", ".* entries stay missing")
        if seed is None:
            found = [model.transform(X)]
        else:
            found = model.sample_imputations(X, n_tables, random_state=seed)
    # The model puts 0 into columns without any entry; a file keeps its empty cells.
    empty = np.array([one.kind == "empty" for one in model._features], dtype=bool)
    if isinstance(table, MixedTable):
        for frame in found:
            for j in np.flatnonzero(empty):
                frame.isetitem(j, X.iloc[:, j])
        return list(found)
    arrays = [np.array(one, dtype=table.X.dtype) for one in found]
    for array in arrays:
        array[:, empty] = np.nan
    return [round_integer_columns(table.X, array) for array in arrays]


def _check_number_model(model: SubspaceImputer, table: Table) -> None:
    """Refuse an array for a model that was fitted to columns of other types."""
    others = [
        f"{one.name} ({one.kind})"
        for one in model._features
        if learned(one).kind in ("category", "date", "duration")
    ]
    if others:
        raise CommandError(
            f"{table.path} holds numbers only, and the model was fitted to {first_ten(others)}: "
            f"give a table of the formats {', '.join(FRAMES)}"
        )


def _write(
    table: Table | MixedTable, filled: Sequence[Any], outputs: Sequence[Path], *, force: bool
) -> None:
    """Write completed tables; none gets its name before all are written."""
    if isinstance(table, MixedTable):
        write_mixed(table, filled, outputs, force=force)
        return
    with ExitStack() as stack:
        for array, path in zip(filled, outputs, strict=True):
            stack.enter_context(writing(path))
            part = stack.enter_context(atomic_write(path, overwrite=force))
            put_filled(table, array, part, ending_of(path))


def _tell(
    model: SubspaceImputer,
    table: Table | MixedTable,
    filled: Any,
    outputs: Sequence[Path],
    quiet: bool,
) -> None:
    """Say what was filled, how well, and what stays empty."""
    names, missing = columns_of(table)
    mixed = isinstance(table, MixedTable)
    done = missing & (np.asarray(filled.notna()) if mixed else ~np.isnan(filled))
    given = reasons_of(table)
    reasons = [given.get(one.name, one.reason) for one in model._features]
    reasons = [why.replace("as feature_types says", "passed through") for why in reasons]
    if not quiet:
        report_columns(model, names, missing, done, given)
    source = table.table if isinstance(table, MixedTable) else table
    if mixed and ending_of(outputs[0]) not in FRAMES:  # only numbers are in the output
        kept = [j for j, k in enumerate(source.used) if source.is_numeric(k)]
        names, reasons = [names[j] for j in kept], [reasons[j] for j in kept]
        missing, done = missing[:, kept], done[:, kept]
    tell_filled(source, names, missing, done, outputs[0], quiet, listed=False, reasons=reasons)
    for path in outputs:
        report_written(path, table, quiet)


@contextmanager
def _in_words_of_options() -> Iterator[None]:
    """Turn what the model warns of into notes, and its parameter into the option for it."""
    with short_warnings("note", "feature_types", "--types"):
        try:
            yield
        except ValueError as error:
            raise CommandError(str(error).replace("feature_types", "--types")) from error
