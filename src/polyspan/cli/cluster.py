"""The command that finds clusters in a table, without labels and without sizes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.preprocessing import StandardScaler

from polyspan.base.checks import first_ten
from polyspan.base.files import atomic_write, same_file
from polyspan.base.optional import import_optional
from polyspan.cli import options
from polyspan.cli.app import command
from polyspan.cli.errors import (
    CommandError,
    check_input,
    check_output,
    counted,
    report,
    say,
    writing,
)
from polyspan.cli.formats import ENDINGS, ending_of
from polyspan.cli.model_calls import fit_table, report_written
from polyspan.cli.models import PANEL
from polyspan.cli.outputs import put_clusters
from polyspan.cli.tables import Table, read_table
from polyspan.clustering import SubspaceClustering

#: Formats of the figure.
FIGURES = (".png", ".pdf", ".svg")
#: Columns of these names, or without a name, count the rows where all their numbers differ.
COUNTERS = ("id", "index", "row")


@command("cluster", panel=PANEL, epilog="polyspan cluster table.csv -o labels.csv")
def cluster(
    data: options.Data,
    output: options.Output,
    clusters: Annotated[
        int | None,
        typer.Option(
            "-L",
            "--clusters",
            help="Number of clusters; found from the data if not given.",
            show_default=False,
            min=1,
        ),
    ] = None,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize",
            help="Scale columns to mean 0 and standard deviation 1, if their units differ.",
        ),
    ] = False,
    unit_norm: Annotated[
        bool,
        typer.Option(
            "--unit-norm",
            help="Scale rows to norm 1: only their direction counts, as for pictures.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help=f"File for a figure of the partition: {', '.join(FIGURES)}.",
            readable=False,
        ),
    ] = None,
    seed: options.Seed = 0,
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
    """Find clusters near subspaces; write a label and its confidence for every row.

    Columns of text are passed over, and so are empty ones and those that only count the rows; all
    are written to the output before label and confidence. A summary says how sure the result is.
    """
    check_input(data)
    check_output(output, force=force, endings=ENDINGS)
    if plot is not None:
        check_output(plot, force=force, endings=FIGURES)
        if same_file(plot, output):
            raise CommandError(f"-o and --plot are the same file, {output}")
        import_optional("matplotlib", "--plot")
    table = read_table(
        data,
        columns,
        drop,
        key,
        header,
        only_numbers=True,
        decimal=decimal,
        thousands=thousands,
    )
    table = _pass_over(table, _empty(table), "are empty")
    if not columns:
        table = _pass_over(table, _counters(table), "only count the rows (--columns takes them)")
    _check_complete(table)
    if standardize:
        table = replace(table, X=StandardScaler().fit_transform(table.X))
    if unit_norm:
        table = replace(table, X=_unit_rows(table.X))
    model = SubspaceClustering(clusters, random_state=seed)
    fit_table(model, table, "clustering", quiet)
    # Neither file gets its name before both are written.
    with ExitStack() as files:
        files.enter_context(writing(output))
        part = files.enter_context(atomic_write(output, overwrite=force))
        carried = _carried(table, bool(columns))
        put_clusters(table, carried, model.labels_, model.confidence_, part, ending_of(output))
        if plot is not None:
            files.enter_context(writing(plot))
            _draw(model, table.X, files.enter_context(atomic_write(plot, overwrite=force)), plot)
    if not quiet:
        for line in model.summary().splitlines():
            report(line)
    report_written(output, table, quiet)


def _pass_over(table: Table, found: list[int], why: str) -> Table:
    """Leave columns out, and say so; not where no other column is left."""
    names = _names(table)
    if not found or len(found) == len(names):
        return table
    say("note", f"passed over, since they {why}: {first_ten([names[j] for j in found])}")
    kept = [j for j in range(len(names)) if j not in found]
    return replace(
        table,
        X=table.X[:, kept],
        names=None if table.names is None else tuple(names[j] for j in kept),
        used=tuple(table.used[j] for j in kept),
    )


def _names(table: Table) -> tuple[str, ...]:
    """Return the names of the columns in use, or their positions in the file."""
    return table.names or tuple(str(k) for k in table.used)


def _empty(table: Table) -> list[int]:
    """Return which columns have no entry: nothing could fill them."""
    return [int(j) for j in np.flatnonzero(np.isnan(table.X).all(axis=0))]


def _counters(table: Table) -> list[int]:
    """Return which columns count the rows: they would be a direction of their own."""
    if table.frame is None:
        return []
    return [j for j, name in enumerate(_names(table)) if counts_rows(table.X[:, j], name)]


def counts_rows(values: np.ndarray, name: str) -> bool:
    """Tell whether a column counts rows: 7, 8, 9, … or, where its name says so, in any order."""
    if np.isnan(values).any() or (values != np.rint(values)).any() or len(values) < 3:
        return False
    named = name.strip().lower() in COUNTERS or name.startswith("unnamed_")
    different = named and len(np.unique(values)) == len(values)
    return different or bool((np.diff(values) == 1).all())


def _carried(table: Table, chosen: bool) -> list[int]:
    """Return which columns go to the output: text, and what was left out one by one."""
    if table.frame is None:
        return []
    left = [k for k in range(table.frame.shape[1]) if k not in table.used]
    return [k for k in left if not (chosen and table.is_numeric(k))]


def _check_complete(table: Table) -> None:
    """Refuse missing entries, say where they are and which command fills them."""
    if not table.n_missing:
        return
    counts = np.isnan(table.X).sum(axis=0)
    which = [f"{name} {n}" for name, n in zip(_names(table), counts, strict=True) if n]
    raise CommandError(
        f"{table.n_missing} of {table.X.size} entries of {table.path} are missing "
        f"({first_ten(which)}), and clusters need complete rows: fill them first with `polyspan "
        f"impute {table.path} -o filled{ending_of(table.path)}`, or leave these columns out with "
        "--drop"
    )


def _unit_rows(X: np.ndarray) -> np.ndarray:
    """Return rows of norm 1; rows of zeros stay as they are."""
    # By the largest entry first: squares of large and small entries would leave the range.
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    zero = np.flatnonzero(norms.ravel() == 0)
    if len(zero):
        say("note", f"{counted(len(zero), 'row')} of zeros not scaled: {first_ten(zero)}")
    return np.asarray(X / np.where(norms > 0, norms, 1))


def _draw(model: Any, X: np.ndarray, part: Path, path: Path) -> None:
    """Write a figure of the partition."""
    from matplotlib.figure import Figure

    from polyspan.plotting import plot_partition

    # Without pyplot: no window, whatever the user's backend is.
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    plot_partition(model, X, figure.subplots(2, 2).ravel())
    figure.savefig(part, format=path.suffix.lower()[1:], dpi=150)
