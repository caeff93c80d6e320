"""Models in use: loaded from files, fitted to tables, and their methods called on tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import rich
from sklearn.pipeline import Pipeline

from polyspan.base.private_sklearn import ProgressBar
from polyspan.cli.errors import CommandError, counted, reading, report
from polyspan.cli.mixed_tables import MixedTable
from polyspan.cli.tables import Table
from polyspan.storage.models import load_model


def load_file(path: Path) -> Any:
    """Read a model."""
    with reading(path):
        return load_model(path)


def last_step(model: Any) -> Any:
    """Return the estimator of polyspan that a model is, or that a pipeline ends in."""
    return model[-1] if isinstance(model, Pipeline) else model


def fit_table(model: Any, table: Table | MixedTable, method: str, quiet: bool) -> None:
    """Fit a model to a table; show a progress bar on a terminal."""
    _check_complete(model, table, f"--method {method}", "take")
    if sys.stderr.isatty() and not quiet and hasattr(model, "set_callbacks"):
        # scikit-learn's bar uses rich's global console: keep it out of the standard output.
        rich.reconfigure(stderr=True)
        model.set_callbacks(ProgressBar())
    model.fit(table.for_fit())


def call_method(model: Any, method: str, table: Table) -> np.ndarray:
    """Call a method of a fitted model on a table; raise an error if the model does not have it."""
    name = type(model).__name__
    if not hasattr(model, method):
        advice = "; fit with --method robust or imputer" if method == "impute" else ""
        raise CommandError(f"a {name} cannot {method}{advice}")
    _check_complete(model, table, f"a {name}", "fit with")
    return np.asarray(getattr(model, method)(table.for_model(model)))


def _check_complete(model: Any, table: Table | MixedTable, needs: str, advice: str) -> None:
    """Refuse missing entries if the model takes none; name a method that does."""
    if not table.n_missing or model.__sklearn_tags__().input_tags.allow_nan:
        return
    n_rows, n_columns = table.shape
    other = "robust-mckusal" if "kernel" in last_step(model).get_params() else "robust"
    raise CommandError(
        f"{table.n_missing} of {n_rows * n_columns} entries of {table.path} are missing, and "
        f"{needs} needs complete data: {advice} --method {other}, or fill them with "
        "`polyspan impute` first"
    )


def report_written(output: Path, table: Table | MixedTable, quiet: bool) -> None:
    """Print how many rows were written to which file."""
    if not quiet:
        report(f"{counted(table.shape[0], 'row')} written to {output}")
