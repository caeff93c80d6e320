"""Commands that fit or use a model: fit, predict, reconstruct, export, info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from sklearn.pipeline import Pipeline

from polyspan.base.checks import first_ten
from polyspan.base.files import atomic_write, same_file
from polyspan.cli import options
from polyspan.cli.app import command
from polyspan.cli.console import closed_pipes
from polyspan.cli.errors import (
    CommandError,
    check_input,
    check_output,
    report,
    say,
    writing,
)
from polyspan.cli.formats import ENDINGS
from polyspan.cli.imputer_report import report_columns
from polyspan.cli.imputer_tables import columns_of, fit_imputer, read_for_imputer, reasons_of
from polyspan.cli.methods import DIMENSION, METHODS, NUMBER, make_model
from polyspan.cli.mixed_tables import MixedTable
from polyspan.cli.model_calls import (
    call_method,
    fit_table,
    last_step,
    load_file,
    report_written,
)
from polyspan.cli.outputs import write_array
from polyspan.cli.tables import Table, model_names, read_table
from polyspan.storage.export import ENDINGS as EXPORTS
from polyspan.storage.export import export_model
from polyspan.storage.models import model_bytes, model_info
from polyspan.tables import SubspaceImputer

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
    types: options.Types = None,
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
    how: dict[str, Any] = {"columns": columns, "drop": drop, "key": key, "header": header}
    how |= {"decimal": decimal, "thousands": thousands}
    table: Table | MixedTable
    if fills:
        table = read_for_imputer(model, data, how, types)
        fit_imputer(model, table, quiet)
    elif types:
        raise CommandError(f"--types is for --method imputer: leave it out with {method}")
    else:
        table = read_table(data, **how)
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
        if fills:
            report_columns(model, *columns_of(table), reasons=reasons_of(table))


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
    if isinstance(last_step(model), SubspaceImputer):  # its `transform` gives no distances
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


@command("export", panel=PANEL, epilog="polyspan export model.skops -o model.py")
def export(
    model_file: options.Model,
    output: options.Output,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write a model as a Python file that needs NumPy alone (.py), or as ONNX (.onnx)."""
    check_input(model_file)
    check_output(output, force=force, endings=EXPORTS)
    model = load_file(model_file)
    try:
        with writing(output):
            export_model(model, output, overwrite=force)
    except TypeError as error:  # a model that cannot be exported
        raise CommandError(str(error)) from error
    if not quiet:
        report(f"{type(last_step(model)).__name__} exported to {output}")


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
    last = last_step(model)
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


def _summary(model: Any, table: Table | MixedTable, method: str) -> dict[str, str]:
    """Return the names and values that the command `fit` prints about a model."""
    n, m = table.shape
    fraction = f" ({table.n_missing / (n * m):.1%})" if table.n_missing else ""
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
        kinds = list(model.feature_types_.values())
        rows["taken for"] = ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))
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
    with closed_pipes():
        Console(highlight=False).print(table)
