"""The commands around a model: fit, predict, reconstruct, impute, info."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import rich
import typer
from sklearn.callback import ProgressBar

from polyspan.cli.app import Data, Debug, Force, Model, Output, Quiet, command
from polyspan.cli.failures import CommandError, check_output, reading, say, writing
from polyspan.cli.methods import METHODS, make_model
from polyspan.cli.outputs import whole_where_whole, write_array, write_filled
from polyspan.cli.show import learned, report_written, show, summary
from polyspan.cli.tables import ENDINGS, Table, model_names, read_table
from polyspan.files import whole_file
from polyspan.models import SubspaceImputer
from polyspan.persistence import load_model, model_bytes, model_info

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
    if labels_out is not None:
        check_output(labels_out, force=force, endings=ENDINGS)
        if labels_out.resolve() == output.resolve():
            raise CommandError(f"-o and --labels-out are the same file, {output}")
    table = _read(data, columns, drop, key, header)
    _fit(model, table, method, quiet)
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
    model = _load(model_file)
    table = _read(data, columns, drop, key, header, model)
    if distances:
        values = np.asarray(_ask(model, "transform")(table.for_model(model)))
        names = [str(name) for name in model.get_feature_names_out()]
    else:
        values = _ask(model, "predict")(table.for_model(model))
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
    model = _load(model_file)
    table = _read(data, columns, drop, key, header, model)
    values = np.asarray(_ask(model, "reconstruct")(table.for_model(model)))
    names = table.names or model_names(model)
    write_array(
        values, output, None if names is None else list(names), key=table.key or "X", force=force
    )
    report_written(output, table, quiet)


@command("impute", panel=PANEL, epilog="polyspan impute holes.csv -o filled.csv")
def impute(
    data: Data,
    output: Output,
    model_file: Annotated[
        Path | None,
        typer.Option("--model", help="A model that takes missing entries, in place of -L and -s."),
    ] = None,
    subspaces: Subspaces = None,
    dim: Dim = None,
    lam: Lam = None,
    seed: Seed = 0,
    settings: Set = None,
    columns: Columns = None,
    drop: Drop = None,
    key: Key = None,
    header: Header = "auto",
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fill missing entries; observed ones stay as they are, and so do columns left out.

    A SubspaceImputer finds the sizes itself and passes over columns of text. With -L and -s a
    RobustMiCUSaL with -L subspaces of dimension -s is fitted to the table; with --model neither.
    """
    check_output(output, force=force, endings=ENDINGS)
    model = None
    if model_file is not None:
        given = {"-L": subspaces, "-s": dim, "--lam": lam, "--set": settings}
        useless = [flag for flag, value in given.items() if value]
        if useless:
            raise CommandError(f"--model is fitted already: leave {', '.join(useless)} out")
        model = _load(model_file)
        table = _read(data, columns, drop, key, header, model)
    elif not (subspaces or dim or lam or settings):
        table = _read(data, columns, drop, key, header, only_numbers=True)
        filled = _fill(table, seed)
    else:
        model = make_model(
            "robust",
            subspaces=subspaces,
            dim=dim,
            others={"lam": lam},
            seed=seed,
            settings=settings or [],
        )
        table = _read(data, columns, drop, key, header)
        _fit(model, table, "robust", quiet)
    if not np.isnan(table.X).any(where=~np.isnan(table.X).all(axis=0)):
        say("note", f"{data} has nothing to fill: {output} is a copy")
    if model is not None:
        filled = np.asarray(_ask(model, "impute")(table.for_model(model)))
    write_filled(table, filled, output, force=force)
    report_written(output, table, quiet)


def _fill(table: Table, seed: int) -> np.ndarray:
    """Return the entries that a SubspaceImputer expects; NaN in columns without any."""
    imputer = SubspaceImputer(random_state=seed, keep_empty_features=True)
    filled = whole_where_whole(table.X, imputer.fit_transform(table.X))
    empty = np.flatnonzero(np.isnan(table.X).all(axis=0))
    if len(empty):
        names = [str(k) if table.names is None else table.names[k] for k in empty[:10]]
        say("note", f"columns without any entry stay empty: {', '.join(names)}")
    filled[:, empty] = np.nan
    return filled


@command("info", panel=PANEL, epilog="polyspan info model.skops")
def info(model_file: Model, debug: Debug = False) -> None:
    """Show what a model file holds."""
    model = _load(model_file)
    about = model_info(model_file)
    rows = {"estimator": about.estimator}
    defaults = type(model)().get_params()
    rows |= {
        name: repr(value)
        for name, value in model.get_params().items()
        if isinstance(value, np.ndarray) or value != defaults[name]
    }
    rows |= learned(model)
    rows["features"] = str(model.n_features_in_)
    names = model_names(model)
    if names is not None:
        rows["columns"] = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    rows["saved by"] = ", ".join(f"{name} {value}" for name, value in about.versions.items())
    rows["sha256"] = about.sha256
    show(rows)


def _read(
    path: Path,
    columns: list[str] | None,
    drop: list[str] | None,
    key: str | None,
    header: str,
    model: Any = None,
    *,
    only_numbers: bool = False,
) -> Table:
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
    )


def _load(path: Path) -> Any:
    with reading(path):
        return load_model(path)


def _ask(model: Any, method: str) -> Any:
    """Return a method of a model, or say that it has none."""
    if not hasattr(model, method):
        advice = "; fit with --method robust" if method == "impute" else ""
        raise CommandError(f"a {type(model).__name__} cannot {method}{advice}")
    return getattr(model, method)


def _fit(model: Any, table: Table, method: str, quiet: bool) -> None:
    allowed = model.__sklearn_tags__().input_tags.allow_nan
    if table.n_missing and not allowed:
        other = "robust-mckusal" if "kernel" in model.get_params() else "robust"
        raise CommandError(
            f"{table.n_missing} of {table.X.size} entries of {table.path} are missing, and "
            f"--method {method} needs complete data: take --method {other}, or fill them with "
            "`polyspan impute` first"
        )
    if sys.stderr.isatty() and not quiet and hasattr(model, "set_callbacks"):
        # scikit-learn's bar goes to rich's own console: away from the results.
        rich.reconfigure(stderr=True)
        model.set_callbacks(ProgressBar())
    model.fit(table.for_fit())
