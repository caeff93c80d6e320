"""What the commands around a model share: options, and reading of tables and models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import rich
import typer

from polyspan._sklearn import ProgressBar
from polyspan.cli.failures import CommandError, reading
from polyspan.cli.tables import Table, model_names, read_table
from polyspan.persistence import load_model

PANEL = "Models"

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        help="Columns to use: names, positions from 0 or ranges 2:10, with commas.",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", help="Columns to leave out, as for --columns.", show_default=False),
]
Key = Annotated[str | None, typer.Option("--key", help="Array of a .npz file with several.")]
Header = Annotated[
    str,
    typer.Option("--header", help="First line of a .csv file holds names: auto, yes or no."),
]
Subspaces = Annotated[
    int | None,
    typer.Option("-L", "--subspaces", help="Number of subspaces.", show_default=False, min=1),
]
Dim = Annotated[
    int | None,
    typer.Option("-s", "--dim", help="Dimension of each subspace.", show_default=False, min=1),
]
Lam = Annotated[
    float | None,
    typer.Option("--lam", help="Weight λ of the fit against closeness; inf leaves closeness out."),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random numbers.", min=0)]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any other parameter of the class.", show_default=False
    ),
]


def read_data(
    path: Path,
    columns: list[str] | None,
    drop: list[str] | None,
    key: str | None,
    header: str,
    model: Any = None,
    *,
    only_numbers: bool = False,
    carried: bool = False,
) -> Table:
    """Read a table, with the columns that a model knows where one is given."""
    if header not in ("auto", "yes", "no"):
        raise typer.BadParameter(f"{header!r} is none of auto, yes, no", param_hint="--header")
    wanted = None if model is None else model_names(model)
    return read_table(
        path,
        key=key,
        columns=columns or (),
        drop=drop or (),
        header=header,
        wanted=wanted,
        only_numbers=only_numbers,
        carried=carried,
    )


def load_file(path: Path) -> Any:
    """Read a model."""
    with reading(path):
        return load_model(path)


def method_of(model: Any, method: str) -> Any:
    """Return a method of a model, or say that it has none."""
    if not hasattr(model, method):
        advice = "; fit with --method robust or imputer" if method == "impute" else ""
        raise CommandError(f"a {type(model).__name__} cannot {method}{advice}")
    return getattr(model, method)


def check_complete(model: Any, table: Table, needs: str, advice: str) -> None:
    """Refuse missing entries where a model takes none; name the method that does."""
    if not table.n_missing or model.__sklearn_tags__().input_tags.allow_nan:
        return
    other = "robust-mckusal" if "kernel" in model.get_params() else "robust"
    raise CommandError(
        f"{table.n_missing} of {table.X.size} entries of {table.path} are missing, and {needs} "
        f"needs complete data: {advice} --method {other}, or fill them with "
        "`polyspan impute` first"
    )


def fit_table(model: Any, table: Table, method: str, quiet: bool) -> None:
    """Fit a model to a table, with a bar where someone looks on."""
    check_complete(model, table, f"--method {method}", "take")
    if sys.stderr.isatty() and not quiet and hasattr(model, "set_callbacks"):
        # scikit-learn's bar goes to rich's own console: away from the results.
        rich.reconfigure(stderr=True)
        model.set_callbacks(ProgressBar())
    model.fit(table.for_fit())
