"""The command that fills the missing cells of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from polyspan.cli import options
from polyspan.cli.app import command
from polyspan.cli.errors import CommandError, check_input, check_output
from polyspan.cli.formats import ENDINGS, FRAMES, ending_of, numbered
from polyspan.cli.imputer_report import tell_filled
from polyspan.cli.imputer_tables import fill_table
from polyspan.cli.methods import make_model
from polyspan.cli.model_calls import call_method, fit_table, load_file, report_written
from polyspan.cli.models import PANEL
from polyspan.cli.outputs import write_filled
from polyspan.cli.tables import Table, read_table
from polyspan.tables import SubspaceImputer

Draws = Annotated[
    int | None,
    typer.Option(
        "--draws",
        help="Write so many completed tables, in which missing entries are drawn at random.",
        show_default=False,
        min=1,
    ),
]
Method = Annotated[
    Literal["auto", "subspaces"] | None,
    typer.Option(
        "--method",
        help="subspaces: without trees, which is several times faster.",
        show_default=False,
    ),
]


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
    draws: Draws = None,
    method: Method = None,
    types: options.Types = None,
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

    A SubspaceImputer fills numbers, categories and dates, and says how well. With -L and -s a
    RobustMiCUSaL with -L subspaces of dimension -s is fitted to the numbers. With --model what was
    learned from another table is used: fit --method imputer, or robust.
    """
    check_input(model_file, data)
    outputs = [output] if draws is None else [numbered(output, k + 1) for k in range(draws)]
    for path in outputs:
        check_output(path, force=force, endings=ENDINGS)
    own = {"--method": method, "--types": types}
    if (subspaces is None) != (dim is None) and not settings and model_file is None:
        raise typer.BadParameter("give both -L and -s, or neither")
    sizes = {"-L": subspaces, "-s": dim, "--lam": lam, "--set": settings}
    flags = [flag for flag, value in sizes.items() if value]
    model: Any
    if model_file is not None:
        model = _load(model_file, flags + [flag for flag, value in own.items() if value])
    elif flags:
        model = make_model("robust", subspaces, dim, seed, settings, lam=lam)
    else:
        model = SubspaceImputer(
            method=method or "auto", keep_empty_features=True, random_state=seed
        )
    known = model_file is not None
    how: dict[str, Any] = {"columns": columns, "drop": drop, "key": key, "header": header}
    how |= {"decimal": decimal, "thousands": thousands, "carried": ending_of(output) in FRAMES}
    how["model"] = model if known else None
    if isinstance(model, SubspaceImputer):
        fill_table(
            model, data, how, outputs, known=known, types=types,
            seed=None if draws is None else seed, force=force, quiet=quiet,
        )  # fmt: skip
        return
    refused = [flag for flag, value in {**own, "--draws": draws}.items() if value]
    if refused:
        raise CommandError(f"a {type(model).__name__} has no {', '.join(refused)}: leave it out")
    table = read_table(data, **how)
    if not known:
        fit_table(model, table, "robust", quiet)
    _fill_numbers(model, table, output, force=force, quiet=quiet)


def _load(path: Path, flags: list[str]) -> Any:
    """Read a model; refuse options that are for those that are not fitted yet."""
    if flags:
        raise CommandError(f"--model is fitted already: leave {', '.join(flags)} out")
    return load_file(path)


def _fill_numbers(model: Any, table: Table, output: Path, *, force: bool, quiet: bool) -> None:
    """Fill a table of numbers by the method `impute` of a model."""
    filled = call_method(model, "impute", table)
    write_filled(table, filled, output, force=force)
    names = table.names or tuple(str(k) for k in table.used)
    tell_filled(table, names, np.isnan(table.X), ~np.isnan(filled), output, quiet)
    report_written(output, table, quiet)
