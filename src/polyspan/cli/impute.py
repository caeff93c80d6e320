"""The command that fills tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from polyspan.cli.app import Data, Debug, Force, Output, Quiet, command
from polyspan.cli.failures import CommandError, check_output, say
from polyspan.cli.fitting import (
    PANEL,
    Columns,
    Dim,
    Drop,
    Header,
    Key,
    Lam,
    Seed,
    Set,
    Subspaces,
    fit_table,
    load_file,
    method_of,
    read_data,
)
from polyspan.cli.methods import make_model
from polyspan.cli.outputs import FRAMES, whole_where_whole, write_filled
from polyspan.cli.show import report_written
from polyspan.cli.tables import ENDINGS, Table
from polyspan.mixture import SubspaceImputer


@command("impute", panel=PANEL, epilog="polyspan impute holes.csv -o filled.csv")
def impute(
    data: Data,
    output: Output,
    model_file: Annotated[
        Path | None,
        typer.Option("--model", help="A model that takes missing entries, in place of -L and -s."),
    ] = None,
    subspaces: Subspaces = None,
    dim: Dim = None,
    lam: Lam = None,
    seed: Seed = 0,
    settings: Set = None,
    columns: Columns = None,
    drop: Drop = None,
    key: Key = None,
    header: Header = "auto",
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fill missing entries; observed ones stay as they are, and so do columns left out.

    A SubspaceImputer finds the sizes itself and passes over columns of text. With -L and -s a
    RobustMiCUSaL with -L subspaces of dimension -s is fitted to the table. With --model what was
    learned from another table is used: fit --method imputer, or robust.
    """
    check_output(output, force=force, endings=ENDINGS)
    if model_file is not None:
        given = {"-L": subspaces, "-s": dim, "--lam": lam, "--set": settings}
        useless = [flag for flag, value in given.items() if value]
        if useless:
            raise CommandError(f"--model is fitted already: leave {', '.join(useless)} out")
        model = load_file(model_file)
        table = read_data(
            data, columns, drop, key, header, model, carried=output.suffix.lower() in FRAMES
        )
        filled = _ask(model, table)
    elif (subspaces is None) != (dim is None) and not settings:
        raise typer.BadParameter("give both -L and -s, or neither")
    elif not (subspaces or dim or lam or settings):
        table = read_data(data, columns, drop, key, header, only_numbers=True)
        imputer = SubspaceImputer(random_state=seed, keep_empty_features=True).fit(table.for_fit())
        filled = _ask(imputer, table)
    else:
        model = make_model(
            "robust",
            subspaces=subspaces,
            dim=dim,
            others={"lam": lam},
            seed=seed,
            settings=settings or [],
        )
        table = read_data(data, columns, drop, key, header)
        fit_table(model, table, "robust", quiet)
        filled = _ask(model, table)
    if not (np.isnan(table.X) & ~np.isnan(filled)).any():
        say("note", f"{data} has nothing to fill: {output} is a copy")
    write_filled(table, filled, output, force=force)
    report_written(output, table, quiet)


def _ask(model: Any, table: Table) -> np.ndarray:
    """Return what a fitted model fills a table with; NaN in columns that it knows nothing about."""
    if not isinstance(model, SubspaceImputer):
        return np.asarray(method_of(model, "impute")(table.for_model(model)))
    values = np.asarray(model.transform(table.for_model(model)))
    filled = np.full(table.X.shape, np.nan, dtype=values.dtype)
    # Whether the model drops columns without any entry, or not; indicators come after them.
    kept = model._seen | model.keep_empty_features
    filled[:, kept] = values[:, : kept.sum()]
    filled[:, ~model._seen] = np.nan
    empty = np.flatnonzero(~model._seen & np.isnan(table.X).any(axis=0))
    if len(empty):
        names = [str(k) if table.names is None else table.names[k] for k in empty[:10]]
        say("note", f"columns without any entry stay empty: {', '.join(names)}")
    return whole_where_whole(table.X, filled)
