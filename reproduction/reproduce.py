"""Run the trials that are missing, and summarise every experiment as a section of the page."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from reproduction.experiments.source import Source
from reproduction.registry import Experiment, all_experiments, find
from reproduction.run.records import Params
from reproduction.run.runner import run_experiments, stored_records
from reproduction.sections import Section

#: Default folder of the trials and the page.
OUT = Path("build", "reproduction")


def reproduce(
    ids: Iterable[str] = (),
    scale: str = "quick",
    out: str | os.PathLike[str] = OUT,
    *,
    jobs: int = 1,
    source: Source | None = None,
    run: bool = True,
    progress: bool = False,
) -> list[Section]:
    """Run experiments and return a section for each.

    Parameters
    ----------
    ids : iterable of str, default=()
        Such as "table1" and "fig4". All experiments if empty.
    scale : {"smoke", "quick", "standard", "paper"}, default="quick"
        How many trials to run. "smoke" has small problems, all others have the paper's sizes.
    out : path, default="build/reproduction"
        Folder of the trials. Trials that are stored there are not run again.
    jobs : int, default=1
        Number of worker processes.
    source : Source, default=None
        Where the data come from.
    run : bool, default=True
        If False, only summarise the stored trials.
    progress : bool, default=False
        Show a progress bar on the standard error.

    Returns
    -------
    sections : list of Section
    """
    source = Source() if source is None else source
    ids = list(ids)
    experiments = [_with_data_kind(e, source) for e in (find(ids) if ids else all_experiments())]
    if run:
        records = run_experiments(
            experiments, scale, out, jobs=jobs, source=source, progress=progress
        )
    else:
        records = stored_records(experiments, scale, out)
    return [e.summarise(records[e.id], source) for e in experiments]


def _with_data_kind(experiment: Experiment, source: Source) -> Experiment:
    """Add "real" or "stand-in" to the parameters of every trial, so that the two are not mixed."""
    if experiment.needs is None:
        return experiment
    kind, trials = source.kind(experiment.needs), experiment.trials

    def trials_of_kind(scale: str) -> list[Params]:
        return [{**params, "data": kind} for params in trials(scale)]

    return replace(experiment, trials=trials_of_kind)
