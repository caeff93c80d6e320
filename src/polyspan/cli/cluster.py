"""The command that finds clusters in a table, without labels and without sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import polyspan
from polyspan.base.optional import import_optional
from polyspan.cli import files, options
from polyspan.cli.app import command
from polyspan.cli.errors import CommandError, counted, in_words_of_options

#: Options by the parameters of the class that they set.
WORDS = {"n_clusters": "-L"}
#: Formats of the figure.
FIGURES = (".png", ".pdf", ".svg")
Clusters = Annotated[
    int | None,
    typer.Option("-L", "--clusters", help="Number of clusters.", show_default="found", min=1),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Scale columns to mean 0 and standard deviation 1, if their units differ.",
    ),
]
UnitNorm = Annotated[
    bool,
    typer.Option(
        "--unit-norm", help="Scale rows to norm 1: only their direction counts, as for pictures."
    ),
]
Plot = Annotated[
    Path | None,
    options.file_option(help=f"File for a figure of the partition: {', '.join(FIGURES)}."),
]


@command(panel="Tables", epilog="polyspan cluster table.csv -o labels.csv", words=WORDS)
def cluster(
    data: options.Data,
    output: options.Output,
    reading: options.Reading,
    run: options.Run,
    clusters: Clusters = None,
    standardize: Standardize = False,
    unit_norm: UnitNorm = False,
    plot: Plot = None,
    model: options.Model = None,
    save_model: options.SaveModel = None,
) -> None:
    """Find clusters near subspaces; write a label and its confidence for every row.

    Columns of text are passed over, and so are empty ones and those that only count the rows; all
    are written to the output before label and confidence. A summary says how sure the result is.
    With --model every row gets the label of the nearest of the subspaces that were learned.
    """
    job = files.Job(run, {"table": data, "model": model})
    job.check("table of labels", output, options.TABLES)
    job.check("saved model", save_model)
    job.check("figure", plot, FIGURES)
    if plot is not None:
        import_optional("matplotlib", "--plot")

    from polyspan.cli.tables import frame_writer, numbers_of, read_table

    table = read_table(data, reading)
    lines: list[str] = []
    if model is not None:
        learned: dict[str, Any] = {"-L": clusters, "--standardize": standardize}
        learned |= {"--unit-norm": unit_norm, "--plot": plot, "--save-model": save_model}
        found = files.load_model(model, "SubspaceClustering", learned)
        X = _complete(table.for_model(found), data)
        results = {"label": found.predict(X)}
    else:
        X = _complete(numbers_of(table), data)
        found = _pipeline(clusters, run.seed, standardize=standardize, unit_norm=unit_norm).fit(X)
        results = {"label": found[-1].labels_, "confidence": found[-1].confidence_}
        lines = in_words_of_options(str(found[-1].summary()), WORDS).splitlines()
        if plot is not None:
            scaled = found[:-1].transform(X) if len(found) > 1 else X
            job.writers[plot] = _figure_writer(found[-1], scaled, plot)
        job.save(found, save_model)
    job.writers[output] = frame_writer(table.with_results(X, results, output), output)
    lines.append(f"{counted(len(X), 'row')} written to {output}")
    job.finish(lines)


def _pipeline(clusters: int | None, seed: int, *, standardize: bool, unit_norm: bool) -> Any:
    """Return what scales and clusters, so that new rows are scaled as those of the fit were."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

    steps = [StandardScaler()] * standardize + [Normalizer()] * unit_norm
    return make_pipeline(*steps, polyspan.SubspaceClustering(clusters, random_state=seed))


def _complete(X: Any, path: Path) -> Any:
    """Refuse missing entries, say where they are and which command fills them."""
    counts = X.isna().sum()
    if counts.any():
        from polyspan.base.checks import first_ten

        which = first_ten([f"{name} {n}" for name, n in counts.items() if n])
        raise CommandError(
            f"{counts.sum()} of {X.size} entries of {path} are missing ({which}), and clusters "
            f"need complete rows: fill them first with `polyspan impute {path} -o "
            f"filled{files.ending_of(path)}`, or leave these columns out with --drop"
        )
    return X


def _figure_writer(model: Any, X: Any, path: Path) -> files.Writer:
    """Return what writes a figure of the partition."""
    from matplotlib.figure import Figure

    # Without pyplot: no window, whatever the user's backend is.
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    polyspan.plotting.plot_partition(model, X, figure.subplots(2, 2).ravel())
    return lambda file: figure.savefig(file, format=path.suffix.lower()[1:], dpi=150)
