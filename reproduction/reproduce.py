"""From ids and a scale to what the page says: run what is missing, then sum up."""

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

#: Where trials and page go.
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
        Such as "table1" and "fig4"; none: all.
    scale : {"smoke", "quick", "standard", "paper"}, default="quick"
        How many trials; "smoke" has small problems, all others the paper's.
    out : path, default="build/reproduction"
        Folder of the trials. What has run there already is not run again.
    jobs : int, default=1
        Worker processes.
    source : Source, default=None
        Where data come from.
    run : bool, default=True
        False: sum up what is there, and run nothing.
    progress : bool, default=False
        Show a bar on the standard error.

    Returns
    -------
    sections : list of Section
    """
    source = Source() if source is None else source
    ids = list(ids)
    experiments = [_on(e, source) for e in (find(ids) if ids else all_experiments())]
    if run:
        records = run_experiments(
            experiments, scale, out, jobs=jobs, source=source, progress=progress
        )
    else:
        records = stored_records(experiments, scale, out)
    return [e.summarise(records[e.id], source) for e in experiments]


def _on(experiment: Experiment, source: Source) -> Experiment:
    """Say in every trial whether it ran on real data, so that the two are never mixed."""
    if experiment.needs is None:
        return experiment
    kind, trials = source.kind(experiment.needs), experiment.trials

    def told(scale: str) -> list[Params]:
        return [{**params, "data": kind} for params in trials(scale)]

    return replace(experiment, trials=told)
