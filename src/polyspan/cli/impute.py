"""The command that fills the missing cells of a table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import polyspan
from polyspan.cli import files, options
from polyspan.cli.app import command
from polyspan.cli.errors import CommandError, counted, say

Draws = Annotated[
    int | None,
    typer.Option(help="Write so many tables with missing entries drawn at random.", min=1),
]
Method = Annotated[
    Literal["auto", "subspaces"],
    typer.Option(help="subspaces: without trees, which is several times faster."),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=TYPE,…",
        help="What columns are: number, integer, boolean, category, ordered, date, duration, skip.",
    ),
]


@command(
    panel="Tables",
    epilog="polyspan impute holes.csv -o filled.csv",
    words={"feature_types": "--types"},
)
def impute(
    data: options.Data,
    output: options.Output,
    reading: options.Reading,
    run: options.Run,
    draws: Draws = None,
    method: Method = "auto",
    types: Types = None,
    model: options.Model = None,
    save_model: options.SaveModel = None,
) -> None:
    """Fill missing entries; observed ones stay as they are, and so do columns left out.

    Numbers, booleans, categories, text with few values and dates are filled. A summary says what
    every column was taken for, and how well it can be filled.
    """
    if draws is not None and output == files.STANDARD:
        raise CommandError("--draws writes several tables: give the name of a file to -o")
    outputs = [output] if draws is None else [numbered(output, k + 1) for k in range(draws)]
    job = files.Job(run, {"table": data, "model": model})
    for path in outputs:
        job.check("table to write", path, options.TABLES)
    job.check("saved model", save_model)

    from polyspan.cli.tables import filled_writer, read_table

    table = read_table(data, reading)
    if model is not None:
        learned = {"--method": method != "auto", "--types": types, "--save-model": save_model}
        imputer = files.load_model(model, "SubspaceImputer", learned)
        X = table.for_model(imputer)
    else:
        X = table.chosen.dropna(axis="columns", how="all")  # nothing could fill empty ones
        if not X.shape[1]:
            raise CommandError(f"{data} has no entry at all: there is nothing to learn from")
        imputer = polyspan.SubspaceImputer(method=method, random_state=run.seed)
        imputer.set_params(feature_types=_types_of(types) if types else "auto").fit(X)
    filled = [table.frame.assign(**one) for one in _completed(imputer, X, draws, run.seed)]
    for path, one in zip(outputs, filled, strict=True):
        job.writers[path] = filled_writer(table, one, path)
    job.save(imputer, save_model)
    lines = [*str(imputer.summary()).splitlines(), "", _told(table.frame, filled[0], output)]
    lines += [f"{counted(len(X), 'row')} written to {path}" for path in outputs]
    job.finish(lines)


def numbered(path: Path, k: int) -> Path:
    """Return the path with a number before its ending: filled.csv.gz, filled-1.csv.gz."""
    ending = path.name[len(path.name) - len(files.ending_of(path)) :]
    return path.with_name(f"{path.name.removesuffix(ending)}-{k}{ending}")


def _types_of(words: list[str]) -> dict[str, str]:
    """Return types of columns by their names, from words name=type."""
    pairs = [part.rpartition("=") for word in words for part in word.split(",")]
    for _, equals, kind in pairs:
        if not equals:
            raise typer.BadParameter(f"{kind!r} is not name=type", param_hint="--types")
    return {name: kind for name, _, kind in pairs}


def _completed(imputer: Any, X: Any, draws: int | None, seed: int) -> list[Any]:
    """Return the columns of filled tables; without those that had no entry in fit."""
    # A model from Python may add indicators.
    imputer.set_params(keep_empty_features=False, add_indicator=False)
    imputer.indicator_ = None
    imputer.set_output(transform="pandas")
    with warnings.catch_warnings():
        # What is said of the output counts the cells that stay empty.
        warnings.filterwarnings("ignore", ".* entries stay missing")
        if draws is None:
            return [imputer.transform(X)]
        return list(imputer.sample_imputations(X, draws, random_state=seed))


def _told(frame: Any, filled: Any, output: Path) -> str:
    """Say which cells stay empty; return a line that says how many were filled, and where."""
    from polyspan.base.checks import first_ten

    left = filled.isna().sum()
    counts = frame.isna().sum() - left
    where = [first_ten([f"{name} {n}" for name, n in some.items() if n]) for some in (counts, left)]
    if left.any():
        say("note", f"{counted(int(left.sum()), 'cell')} of {output} left empty: {where[1]}")
    elif not counts.any():
        say("note", f"there is nothing to fill: {output} is a copy")
    total = counted(int((counts + left).sum()), "missing cell")
    return f"{counts.sum()} of {total} filled{': ' if counts.any() else ''}{where[0]}"
