"""A demo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from polyspan.base.files import atomic_write
from polyspan.baselines import KSubspaces
from polyspan.cli import options
from polyspan.cli.app import command
from polyspan.cli.console import closed_pipes
from polyspan.cli.errors import check_output, report, writing
from polyspan.comparison import MEASURES, Comparison, compare
from polyspan.datasets import make_union_of_subspaces
from polyspan.linear import MiCUSaL

#: File endings for the figure of the demo.
FIGURES = (".png", ".pdf", ".svg")
#: Titles of the columns of its table.
TITLES = {
    "d_avg": "d_avg to the truth",
    "label_error": "wrong labels",
    "reconstruction_error": "error of denoising",
    "seconds": "seconds",
}


@command("demo", panel="Try it", epilog="polyspan demo --plot demo.png")
def demo(
    draws: Annotated[int, typer.Option("--draws", help="Data sets to average over.", min=1)] = 3,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.", readable=False),
    ] = None,
    force: options.Force = False,
    debug: options.Debug = False,
) -> None:
    """Compare the printed Algorithm 1 with the annealed one, in a few seconds.

    The paper's synthetic data: 650 noisy samples near 5 subspaces of dimension 13 in R^180.
    """
    if plot is not None:
        check_output(plot, force=force, endings=FIGURES)
        import matplotlib as mpl

        mpl.use("Agg")
    found = _measure(draws)
    table = RichTable(title=f"5 subspaces of dimension 13 in R^180, mean of {draws} draws")
    table.add_column("method", no_wrap=True)
    for title in TITLES.values():
        table.add_column(title, justify="right")
    for row in found.rows:
        cells = [
            f"{row[name]:.1%}" if name == "label_error" else f"{row[name]:.3f}" for name in TITLES
        ]
        table.add_row(row["method"], *cells)
    with closed_pipes():
        Console().print(table)
    if plot is not None:
        with writing(plot), atomic_write(plot, overwrite=force) as temporary:
            found.plot()[0].figure.savefig(temporary, dpi=110)
        report(f"picture: {plot}")


def _measure(n_draws: int) -> Comparison:
    """Return the measures of three methods, averaged over several draws of the data."""
    methods = {
        "Algorithm 1, 8 starts": MiCUSaL(
            5, 13, init="random", solver="exact", n_init=8, random_state=0
        ),
        "K-subspaces, annealed": KSubspaces(5, 13, random_state=0),
        "MiCUSaL, annealed": MiCUSaL(5, 13, random_state=0),
    }
    found = []
    for seed in range(n_draws):
        data = make_union_of_subspaces(random_state=seed)
        found.append(
            compare(data.X, methods, labels=data.labels, bases=data.bases, X_clean=data.X_clean)
        )
    failed = [row["error"] for result in found for row in result.rows if row["error"]]
    if failed:
        raise RuntimeError(failed[0])
    means = [
        {**row, **{name: sum(r.rows[k][name] for r in found) / n_draws for name in MEASURES}}
        for k, row in enumerate(found[0].rows)
    ]
    return replace(found[0], rows=means)
