"""The command that finds rows of a table that do not belong."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

import polyspan
from polyspan.cli import files, options
from polyspan.cli.app import command
from polyspan.cli.errors import counted

#: Columns that are named for a row.
MOST_COLUMNS = 3
Contamination = Annotated[
    float | None,
    typer.Option(
        help="Fraction of outliers among the rows; found from the scores if not given.",
        min=0,
        max=0.5,
    ),
]


@command(panel="Tables", epilog="polyspan outliers table.csv -o unusual.csv", words={})
def outliers(
    data: options.Data,
    output: options.Output,
    reading: options.Reading,
    run: options.Run,
    contamination: Contamination = None,
    model: options.Model = None,
    save_model: options.SaveModel = None,
) -> None:
    """Find rows that do not belong; write for every row how unusual it is, and in which columns.

    The output has a score (about -1 for usual rows, less for unusual ones), a rank (1 for the most
    unusual row), whether the row is an outlier, and the most unusual columns. Rows may have missing
    entries. Columns that are not used are written before these.
    """
    job = files.Job(run, {"table": data, "model": model})
    job.check("table to write", output, options.TABLES)
    job.check("saved model", save_model)

    from polyspan.cli.tables import frame_writer, numbers_of, read_table

    table = read_table(data, reading)
    if model is not None:
        learned = {"--contamination": contamination, "--save-model": save_model}
        detector = files.load_model(model, "SubspaceOutlierDetector", learned)
        X = table.for_model(detector)
    else:
        X = numbers_of(table)
        share = "auto" if contamination is None else contamination
        detector = polyspan.SubspaceOutlierDetector(contamination=share, random_state=run.seed)
        detector.fit(X)
    results = table.with_results(X, _results(detector, X), output)
    job.writers[output] = frame_writer(results, output)
    job.save(detector, save_model)
    lines = [
        *str(detector.summary(X)).splitlines(),
        f"{counted(len(X), 'row')} written to {output}",
    ]
    job.finish(lines)


def _results(detector: Any, X: Any) -> dict[str, Any]:
    """Return what is written of every row."""
    from scipy.stats import rankdata

    scores = detector.score_samples(X)
    ranks = rankdata(scores, method="ordinal")
    parts, names = np.asarray(detector.contributions(X)), list(X)
    order = np.argsort(-parts, axis=1, kind="stable")[:, :MOST_COLUMNS]
    columns = [
        "; ".join(names[k] for k in row if own[k] > 0)
        for row, own in zip(order, parts, strict=True)
    ]
    unusual = scores < detector.offset_
    return {"score": scores, "rank": ranks, "outlier": unusual, "columns": columns}
