"""The command that fills the missing cells of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from polyspan.checks import first_ten
from polyspan.cli import options
from polyspan.cli.app import command
from polyspan.cli.errors import CommandError, check_input, check_output, counted, report, say
from polyspan.cli.formats import ENDINGS, FRAMES, ending_of
from polyspan.cli.methods import make_model
from polyspan.cli.models import PANEL, call_method, fit_table, load_file, report_written
from polyspan.cli.outputs import round_integer_columns, write_filled
from polyspan.cli.tables import Table, read_table
from polyspan.mixture import SubspaceImputer


@command("impute", panel=PANEL, epilog="polyspan impute holes.csv -o filled.csv")
def impute(
    data: options.Data,
    output: options.Output,
    model_file: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="A model that takes missing entries, in place of -L and -s.",
            readable=False,
        ),
    ] = None,
    subspaces: options.Subspaces = None,
    dim: options.Dim = None,
    lam: options.Lam = None,
    seed: options.Seed = 0,
    settings: options.Set = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    key: options.Key = None,
    header: options.Header = "auto",
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fill missing entries; observed ones stay as they are, and so do columns left out.

    A SubspaceImputer finds the sizes itself and leaves columns of text out. With -L and -s a
    RobustMiCUSaL with -L subspaces of dimension -s is fitted to the table. With --model what was
    learned from another table is used: fit --method imputer, or robust.
    """
    check_input(model_file, data)
    check_output(output, force=force, endings=ENDINGS)
    given = {"-L": subspaces, "-s": dim, "--lam": lam, "--set": settings}
    flags = [flag for flag, value in given.items() if value]
    known: Any = None
    if model_file is not None:
        if flags:
            raise CommandError(f"--model is fitted already: leave {', '.join(flags)} out")
        model = known = load_file(model_file)
    elif (subspaces is None) != (dim is None) and not settings:
        raise typer.BadParameter("give both -L and -s, or neither")
    elif flags:
        model = make_model("robust", subspaces, dim, seed, settings, lam=lam)
    else:
        model = SubspaceImputer(random_state=seed, keep_empty_features=True)
    finds_sizes, carried = known is None and not flags, ending_of(output) in FRAMES
    table = read_table(
        data,
        columns,
        drop,
        key,
        header,
        known,
        only_numbers=finds_sizes,
        carried=carried,
        decimal=decimal,
        thousands=thousands,
    )
    if known is None:
        fit_table(model, table, "robust", quiet)
    if isinstance(model, SubspaceImputer):
        filled = _fill(model, table)
    else:
        filled = call_method(model, "impute", table)
    write_filled(table, filled, output, force=force)
    _tell(table, filled, output, quiet)
    report_written(output, table, quiet)


def _tell(table: Table, filled: np.ndarray, output: Path, quiet: bool) -> None:
    """Say what was filled, and which cells of the output stay empty."""
    missing = np.isnan(table.X)
    counts = (missing & ~np.isnan(filled)).sum(axis=0)
    names = table.names or tuple(str(k) for k in table.used)
    if not counts.any():
        say("note", f"{table.path} has nothing to fill: {output} is a copy")
    elif not quiet:
        which = [f"{name} {n}" for name, n in zip(names, counts, strict=True) if n]
        report(
            f"{counts.sum()} of {counted(int(missing.sum()), 'missing cell')} filled in "
            f"{counted(len(which), 'column')}: {first_ten(which)}"
        )
    left = missing.sum(axis=0) - counts
    never = missing.all(axis=0)
    empty = [
        (int(n), f"{name} {n} ({'without any entry' if never[k] else 'could not be filled'})")
        for k, (name, n) in enumerate(zip(names, left, strict=True))
        if n
    ]
    if table.frame is not None and ending_of(output) in FRAMES:
        empty += _empty_elsewhere(table)
    if empty:
        total, which = sum(n for n, _ in empty), [text for _, text in empty]
        stay = "stays" if total == 1 else "stay"
        say("note", f"{counted(total, 'cell')} of {output} {stay} empty: {first_ten(which)}")


def _empty_elsewhere(table: Table) -> list[tuple[int, str]]:
    """Return the empty cells of columns that are carried over: how many, and in words."""
    found = []
    for k in sorted(set(range(table.frame.shape[1])) - set(table.used)):
        n = int(table.frame.iloc[:, k].isna().sum())
        name = table.frame.columns[k]
        why = "left out" if table.is_numeric(k) else "text"
        found += [(n, f"{name} {n} ({why})")] if n else []
    return found


def _fill(model: SubspaceImputer, table: Table) -> np.ndarray:
    """Return what an imputer fills a table with; NaN in columns that it knows nothing about."""
    values = call_method(model, "transform", table)
    filled = np.full(table.X.shape, np.nan, dtype=values.dtype)
    # The model may drop columns without any entry; indicators come after the columns.
    kept = model._seen | model.keep_empty_features
    filled[:, kept] = values[:, : kept.sum()]
    filled[:, ~model._seen] = np.nan
    return round_integer_columns(table.X, filled)
