"""Commands that fit or use a model: fit, predict, reconstruct, info."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import rich
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from sklearn.pipeline import Pipeline

from polyspan._sklearn import ProgressBar
from polyspan.checks import first_ten
from polyspan.cli import options
from polyspan.cli.app import command
from polyspan.cli.errors import (
    CommandError,
    check_input,
    check_output,
    counted,
    reading,
    report,
    say,
    writing,
)
from polyspan.cli.formats import ENDINGS
from polyspan.cli.methods import DIMENSION, METHODS, NUMBER, make_model
from polyspan.cli.outputs import write_array
from polyspan.cli.tables import Table, model_names, read_table
from polyspan.files import atomic_write, same_file
from polyspan.mixture import SubspaceImputer
from polyspan.persistence import load_model, model_bytes, model_info

#: Usual ending of model files.
ENDING = ".skops"
PANEL = "Models"


@command("fit", panel=PANEL, epilog="polyspan fit train.csv -o model.skops -L 5 -s 13")
def fit(
    data: options.Data,
    output: options.Output,
    method: Annotated[
        str, typer.Option("--method", "-m", help=f"One of {', '.join(METHODS)}.")
    ] = "micusal",
    subspaces: options.Subspaces = None,
    dim: options.Dim = None,
    lam: options.Lam = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", help="rbf, poly, linear or precomputed.")
    ] = None,
    gamma: Annotated[
        float | None, typer.Option("--gamma", help="Parameter gamma of rbf and poly.")
    ] = None,
    seed: options.Seed = 0,
    settings: options.Set = None,
    labels_out: Annotated[
        Path | None,
        typer.Option("--labels-out", help="File for the labels of the samples.", readable=False),
    ] = None,
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
    """Learn subspaces from a table and save the model."""
    model = make_model(method, subspaces, dim, seed, settings, lam=lam, kernel=kernel, gamma=gamma)
    check_input(data)
    check_output(output, force=force)
    if output.suffix.lower() != ENDING:
        say("note", f"{output} will be a skops file, whose usual ending is {ENDING}")
    fills = isinstance(model, SubspaceImputer)
    if labels_out is not None:
        if fills:
            raise CommandError("--method imputer gives no labels: leave --labels-out out")
        check_output(labels_out, force=force, endings=ENDINGS)
        if same_file(labels_out, output):
            raise CommandError(f"-o and --labels-out are the same file, {output}")
    # An imputer leaves columns of text out, here as in the command impute.
    table = read_table(
        data, columns, drop, key, header, only_numbers=fills, decimal=decimal, thousands=thousands
    )
    fit_table(model, table, method, quiet)
    content = model_bytes(model)
    # Neither file gets its name before both are written.
    with writing(output), atomic_write(output, overwrite=force) as temporary:
        temporary.write_bytes(content)
        if labels_out is not None:
            write_array(
                model.labels_, labels_out, ["label"], key="labels", force=force, index=table.index
            )
    if not quiet:
        _print_pairs(_summary(model, table, method))


@command("predict", panel=PANEL, epilog="polyspan predict model.skops new.csv -o labels.csv")
def predict(
    model_file: options.Model,
    data: options.Data,
    output: options.Output,
    distances: Annotated[
        bool, typer.Option("--distances", help="Distances to all subspaces instead of labels.")
    ] = False,
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
    """Find the nearest subspace of every sample, or the distances to all."""
    check_input(model_file, data)
    check_output(output, force=force, endings=ENDINGS)
    model = load_file(model_file)
    if isinstance(_last_step(model), SubspaceImputer):  # its `transform` gives no distances
        raise CommandError("a SubspaceImputer cannot predict: polyspan impute --model takes it")
    table = read_table(
        data, columns, drop, key, header, model, decimal=decimal, thousands=thousands
    )
    method, key = ("transform", "distances") if distances else ("predict", "labels")
    values = call_method(model, method, table)
    names = [str(name) for name in model.get_feature_names_out()] if distances else ["label"]
    write_array(values, output, names, key=key, force=force, index=table.index)
    report_written(output, table, quiet)


@command("reconstruct", panel=PANEL, epilog="polyspan reconstruct model.skops noisy.npy -o out.npy")
def reconstruct(
    model_file: options.Model,
    data: options.Data,
    output: options.Output,
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
    """Project every sample on its nearest subspace, which denoises it."""
    check_input(model_file, data)
    check_output(output, force=force, endings=ENDINGS)
    model = load_file(model_file)
    table = read_table(
        data, columns, drop, key, header, model, decimal=decimal, thousands=thousands
    )
    values = call_method(model, "reconstruct", table)
    names = table.names or model_names(model)
    write_array(values, output, names, key=table.key or "X", force=force, index=table.index)
    report_written(output, table, quiet)


@command("info", panel=PANEL, epilog="polyspan info model.skops")
def info(model_file: options.Model, debug: options.Debug = False) -> None:
    """Show what a model file holds."""
    model = load_file(model_file)
    about = model_info(model_file)
    rows = {"estimator": about.estimator}
    if isinstance(model, Pipeline):
        rows["steps"] = ", ".join(
            step if isinstance(step, str) else type(step).__name__ for _, step in model.steps
        )
    last = _last_step(model)
    defaults = type(last)().get_params()
    always = {*NUMBER, *DIMENSION, "lam"}
    rows |= {
        name: repr(value)
        for name, value in last.get_params().items()
        if name in always
        or isinstance(value, np.ndarray)
        or repr(value) != repr(defaults[name])  # NaN != NaN, so compare texts
    }
    rows |= _fit_results(last)
    rows["features"] = str(model.n_features_in_)
    names = model_names(model)
    if names is not None:
        rows["columns"] = first_ten(names)
    rows["saved by"] = ", ".join(f"{name} {value}" for name, value in about.versions.items())
    rows["sha256"] = about.sha256
    _print_pairs(rows)


def load_file(path: Path) -> Any:
    """Read a model."""
    with reading(path):
        return load_model(path)


def _last_step(model: Any) -> Any:
    """Return the estimator of polyspan that a model is, or that a pipeline ends in."""
    return model[-1] if isinstance(model, Pipeline) else model


def fit_table(model: Any, table: Table, method: str, quiet: bool) -> None:
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


def _check_complete(model: Any, table: Table, needs: str, advice: str) -> None:
    """Refuse missing entries if the model takes none; name a method that does."""
    if not table.n_missing or model.__sklearn_tags__().input_tags.allow_nan:
        return
    other = "robust-mckusal" if "kernel" in _last_step(model).get_params() else "robust"
    raise CommandError(
        f"{table.n_missing} of {table.X.size} entries of {table.path} are missing, and {needs} "
        f"needs complete data: {advice} --method {other}, or fill them with "
        "`polyspan impute` first"
    )


def report_written(output: Path, table: Table, quiet: bool) -> None:
    """Print how many rows were written to which file."""
    if not quiet:
        report(f"{counted(len(table.X), 'row')} written to {output}")


def _summary(model: Any, table: Table, method: str) -> dict[str, str]:
    """Return the names and values that the command `fit` prints about a model."""
    n, m = table.X.shape
    fraction = f" ({table.n_missing / table.X.size:.1%})" if table.n_missing else ""
    return {
        "method": f"{method} ({type(model).__name__})",
        "samples": str(n),
        "features": str(m),
        "missing entries": f"{table.n_missing}{fraction}",
        **_fit_results(model),
    }


def _fit_results(model: Any) -> dict[str, str]:
    """Return the names and values of those results of a fit that the class has."""
    rows = {
        name.strip("_"): f"{getattr(model, name):.6g}"
        for name in ("objective_", "inertia_", "error_")
        if hasattr(model, name)
    }
    if hasattr(model, "n_iter_"):
        rows["iterations"] = str(model.n_iter_)
    if hasattr(model, "converged_"):
        rows["converged"] = "yes" if model.converged_ else "no"
    if hasattr(model, "held_out_error_"):
        rows["subspaces"] = f"{model.n_subspaces_} of dimension {model.subspace_dim_}"
        rows["held-out error"] = f"{model.held_out_error_:.3g} of the spread of a column"
    if hasattr(model, "labels_"):
        labels = model.labels_[model.labels_ >= 0]
        counts = np.bincount(labels, minlength=getattr(model, "_n_features_out", 0))
        rows["members"] = " ".join(str(count) for count in counts)
    return rows


def _print_pairs(rows: dict[str, str]) -> None:
    """Print names and values, one pair per line."""
    table = RichTable(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, escape(value))
    Console(highlight=False).print(table)
