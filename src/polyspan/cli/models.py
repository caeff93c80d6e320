"""The commands around a model: fit, predict, reconstruct, info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from polyspan.cli.app import Data, Debug, Force, Model, Output, Quiet, command
from polyspan.cli.failures import CommandError, check_output, say, writing
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
    check_complete,
    fit_table,
    load_file,
    method_of,
    read_data,
)
from polyspan.cli.methods import DIMENSION, METHODS, NUMBER, make_model
from polyspan.cli.outputs import write_array
from polyspan.cli.show import learned, report_written, show, summary
from polyspan.cli.tables import ENDINGS, Table, model_names
from polyspan.files import whole_file
from polyspan.mixture import SubspaceImputer
from polyspan.persistence import model_bytes, model_info

#: Of model files.
ENDING = ".skops"


@command("fit", panel=PANEL, epilog="polyspan fit train.csv -o model.skops -L 5 -s 13")
def fit(
    data: Data,
    output: Output,
    method: Annotated[
        str, typer.Option("--method", "-m", help=f"One of {', '.join(METHODS)}.")
    ] = "micusal",
    subspaces: Subspaces = None,
    dim: Dim = None,
    lam: Lam = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", help="rbf, poly, linear or precomputed.")
    ] = None,
    gamma: Annotated[float | None, typer.Option("--gamma", help="Of rbf and poly.")] = None,
    seed: Seed = 0,
    settings: Set = None,
    labels_out: Annotated[
        Path | None, typer.Option("--labels-out", help="File for the labels of the samples.")
    ] = None,
    columns: Columns = None,
    drop: Drop = None,
    key: Key = None,
    header: Header = "auto",
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Learn subspaces from a table and save the model."""
    others = {"lam": lam, "kernel": kernel, "gamma": gamma}
    model = make_model(
        method, subspaces=subspaces, dim=dim, others=others, seed=seed, settings=settings or []
    )
    check_output(output, force=force)
    if output.suffix.lower() != ENDING:
        say("note", f"{output} will be a skops file, whose usual ending is {ENDING}")
    fills = isinstance(model, SubspaceImputer)
    if labels_out is not None:
        if fills:
            raise CommandError("--method imputer gives no labels: leave --labels-out out")
        check_output(labels_out, force=force, endings=ENDINGS)
        if labels_out.resolve() == output.resolve():
            raise CommandError(f"-o and --labels-out are the same file, {output}")
    # As the command impute does, it passes over text.
    table = read_data(data, columns, drop, key, header, only_numbers=fills)
    fit_table(model, table, method, quiet)
    content = model_bytes(model)
    # Both are complete before either takes its name.
    with writing(output), whole_file(output, overwrite=force) as part:
        part.write_bytes(content)
        if labels_out is not None:
            write_array(model.labels_, labels_out, ["label"], key="labels", force=force)
    if not quiet:
        show(summary(model, table, method))


@command("predict", panel=PANEL, epilog="polyspan predict model.skops new.csv -o labels.csv")
def predict(
    model_file: Model,
    data: Data,
    output: Output,
    distances: Annotated[
        bool, typer.Option("--distances", help="Distances to all subspaces instead of labels.")
    ] = False,
    columns: Columns = None,
    drop: Drop = None,
    key: Key = None,
    header: Header = "auto",
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Find the nearest subspace of every sample, or the distances to all."""
    check_output(output, force=force, endings=ENDINGS)
    model = load_file(model_file)
    if isinstance(model, SubspaceImputer):  # whose `transform` is no distance
        raise CommandError("a SubspaceImputer cannot predict: polyspan impute --model takes it")
    table = read_data(data, columns, drop, key, header, model)
    _check_holes(model, table)
    if distances:
        values = np.asarray(method_of(model, "transform")(table.for_model(model)))
        names = [str(name) for name in model.get_feature_names_out()]
    else:
        values = method_of(model, "predict")(table.for_model(model))
        names = ["label"]
    write_array(
        values, output, names, key="distances" if distances else "labels", force=force
    )  # fmt: skip
    report_written(output, table, quiet)


@command("reconstruct", panel=PANEL, epilog="polyspan reconstruct model.skops noisy.npy -o out.npy")
def reconstruct(
    model_file: Model,
    data: Data,
    output: Output,
    columns: Columns = None,
    drop: Drop = None,
    key: Key = None,
    header: Header = "auto",
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Project every sample on its nearest subspace, which denoises it."""
    check_output(output, force=force, endings=ENDINGS)
    model = load_file(model_file)
    table = read_data(data, columns, drop, key, header, model)
    _check_holes(model, table)
    values = np.asarray(method_of(model, "reconstruct")(table.for_model(model)))
    names = table.names or model_names(model)
    write_array(
        values, output, None if names is None else list(names), key=table.key or "X", force=force
    )
    report_written(output, table, quiet)


@command("info", panel=PANEL, epilog="polyspan info model.skops")
def info(model_file: Model, debug: Debug = False) -> None:
    """Show what a model file holds."""
    model = load_file(model_file)
    about = model_info(model_file)
    rows = {"estimator": about.estimator}
    defaults = type(model)().get_params()
    always = {*NUMBER, *DIMENSION, "lam"}
    rows |= {
        name: repr(value)
        for name, value in model.get_params().items()
        if name in always
        or isinstance(value, np.ndarray)
        or repr(value) != repr(defaults[name])  # NaN is not NaN
    }
    rows |= learned(model)
    rows["features"] = str(model.n_features_in_)
    names = model_names(model)
    if names is not None:
        rows["columns"] = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    rows["saved by"] = ", ".join(f"{name} {value}" for name, value in about.versions.items())
    rows["sha256"] = about.sha256
    show(rows)


def _check_holes(model: Any, table: Table) -> None:
    check_complete(model, table, f"a {type(model).__name__}", "fit with")
