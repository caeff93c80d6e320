"""What the commands print about models and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from polyspan.cli.failures import counted
from polyspan.cli.tables import Table


def summary(model: Any, table: Table, method: str) -> dict[str, str]:
    """Return what `fit` tells about a model: names and values."""
    n, m = table.X.shape
    share = f" ({table.n_missing / table.X.size:.1%})" if table.n_missing else ""
    return {
        "method": f"{method} ({type(model).__name__})",
        "samples": str(n),
        "features": str(m),
        "missing entries": f"{table.n_missing}{share}",
        **learned(model),
    }


def learned(model: Any) -> dict[str, str]:
    """Return what the fit reached, as far as the class says it."""
    rows = {}
    for name, title in (("objective_", "objective"), ("inertia_", "inertia"), ("error_", "error")):
        if hasattr(model, name):
            rows[title] = f"{getattr(model, name):.6g}"
    if hasattr(model, "n_iter_"):
        rows["iterations"] = str(model.n_iter_)
    if hasattr(model, "converged_"):
        rows["converged"] = "yes" if model.converged_ else "no"
    if hasattr(model, "held_out_error_"):
        rows["subspaces"] = f"{model.n_subspaces_} of dimension {model.subspace_dim_}"
        rows["held-out error"] = f"{model.held_out_error_:.3g} of the spread of a column"
    if not hasattr(model, "labels_"):
        return rows
    labels = model.labels_[model.labels_ >= 0]
    counts = np.bincount(labels, minlength=getattr(model, "_n_features_out", 0))
    rows["members"] = " ".join(str(count) for count in counts)
    return rows


def show(rows: dict[str, str]) -> None:
    """Print names and values, one pair per line."""
    table = RichTable(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, escape(value))
    Console(highlight=False).print(table)


def report_written(output: Path, table: Table, quiet: bool) -> None:
    """Say how many rows went where."""
    if not quiet:
        Console(highlight=False).print(
            f"{counted(len(table.X), 'row')} written to {output}", soft_wrap=True, markup=False
        )
