"""Run the trials of experiments, in any number of processes, and go on where a run ended."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from reproduction.registry import SCALES, Experiment
from reproduction.run.progress import Durations, Report, Status, group_of, shown
from reproduction.run.records import (
    Key,
    Params,
    Record,
    canonical,
    commit,
    plain,
    trial_key,
    versions,
)
from reproduction.run.store import TrialStore, read_records

#: Name of the file of trials in the output folder.
TRIALS_FILE = "trials.jsonl"

# How long a worker may outlive a run that was killed.
SECONDS_BETWEEN_LOOKS = 0.5

Run = Callable[[Params, Any], dict[str, Any]]


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; the message says what is kept and how to go on."""


def trial_seed(*parts: Any) -> int:
    """Return a seed of 32 bits that depends on the parts alone.

    Not on the scale, the order of trials or the process: Python's own `hash` of a string changes
    from one process to the next.

    >>> trial_seed("table1", 0)
    3103960409
    """
    digest = hashlib.sha256(canonical(list(parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big")


def run_experiments(
    experiments: Iterable[Experiment],
    scale: str,
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    source: Any = None,
    progress: bool | Report | None = None,
) -> dict[str, list[Record]]:
    """Run every trial that has not run yet, and return all trials of this scale.

    Each trial is written to `<out>/trials.jsonl` as it ends, so a kill loses only those that were
    running. A trial that raises becomes a record with an error and is tried again in the next run.

    Parameters
    ----------
    experiments : iterable of Experiment
    scale : one of SCALES
    out : path of the output folder
    jobs : int, default=1
        Processes, -1 for one per core; 1 runs in this process. Every trial has one BLAS thread,
        whatever the number, so results do not depend on it.
    source : object, default=None
        Where trials take data from. It is pickled for the workers: let it load lazily.
    progress : bool, callable or None, default=None
        None shows a bar where the standard error is a terminal, True shows one or plain lines, a
        callable gets a `Status` after every trial.

    Returns
    -------
    records : dict of lists
        By the id of the experiment, in the order of its trials.

    Raises
    ------
    Interrupted
        After KeyboardInterrupt; what is done is kept.
    """
    wanted = _wanted(experiments, scale)
    jobs = _processes(jobs)
    with TrialStore(Path(out) / TRIALS_FILE) as store:
        durations = Durations(store.records.values())
        pending = [t for trials in wanted.values() for t in trials if not _done(t, store.records)]
        if jobs > 1:
            _longest_first(pending, durations)
        followed = _Follower(pending, durations, jobs)
        try:
            # Closed at once on the way out, so that no worker goes on after the lock is free.
            with (
                shown(progress, len(pending)) as report,
                closing(_run_all(pending, jobs, source)) as records,
            ):
                for record in records:
                    store.append(record)
                    report(followed.after(record))
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted: {followed.kept(store.path)}") from None
        except BrokenProcessPool as error:
            raise RuntimeError(
                "a worker process was ended from outside, most often for lack of memory: "
                f"{followed.kept(store.path)}, with fewer jobs"
            ) from error
        return _collected(wanted, store.records)


def stored_records(
    experiments: Iterable[Experiment], scale: str, out: str | os.PathLike[str]
) -> dict[str, list[Record]]:
    """Return what `run_experiments` would return of trials that have run, running nothing."""
    return _collected(_wanted(experiments, scale), read_records(Path(out) / TRIALS_FILE))


@dataclass(frozen=True)
class _Trial:
    """One trial to run; what travels to a worker."""

    experiment: str
    revision: int
    params: Params
    run: Run

    @property
    def key(self) -> Key:
        return trial_key(self.experiment, self.revision, self.params)


def _wanted(experiments: Iterable[Experiment], scale: str) -> dict[str, list[_Trial]]:
    """Return the trials of every experiment at a scale."""
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}: give one of {', '.join(SCALES)}")
    wanted: dict[str, list[_Trial]] = {}
    for experiment in experiments:
        if experiment.id in wanted:
            raise ValueError(f"experiment {experiment.id!r} is given twice: give it once")
        trials = [
            _Trial(experiment.id, experiment.revision, plain(params, "params"), experiment.run)
            for params in experiment.trials(scale)
        ]
        for often, n in Counter(trial.key[-1] for trial in trials).most_common(1):
            if n > 1:
                raise ValueError(
                    f"experiment {experiment.id!r} lists the trial {often} {n} times: "
                    "give each a draw number or seed of its own"
                )
        wanted[experiment.id] = trials
    return wanted


def _processes(jobs: int) -> int:
    """Return how many processes to use."""
    if jobs == 0:
        raise ValueError("jobs=0 would run nothing: give 1 or more, or -1 for one per core")
    return int(joblib.effective_n_jobs(jobs))


def _done(trial: _Trial, records: dict[Key, Record]) -> bool:
    record = records.get(trial.key)
    return record is not None and record.error is None


def _longest_first(pending: list[_Trial], durations: Durations) -> None:
    """Put long trials first, so that no process is left alone with one at the end.

    Where no duration is known, the order stays as it is.
    """
    pending.sort(key=lambda t: durations.of(group_of(t.experiment, t.params)) or 0, reverse=True)


def _collected(
    wanted: dict[str, list[_Trial]], records: dict[Key, Record]
) -> dict[str, list[Record]]:
    return {
        id_: [records[trial.key] for trial in trials if trial.key in records]
        for id_, trials in wanted.items()
    }


class _Follower:
    """Count trials and tell the time left."""

    def __init__(self, pending: Sequence[_Trial], durations: Durations, jobs: int) -> None:
        self._left = Counter(group_of(t.experiment, t.params) for t in pending)
        self._durations = durations
        self._jobs = jobs
        self._total = len(pending)
        self._done = self._failed = 0

    def after(self, record: Record) -> Status:
        """Count one more trial, and say how far the run is."""
        self._done += 1
        self._failed += record.error is not None
        self._left[group_of(record.experiment, record.params)] -= 1
        self._durations.add(record)
        left = self._durations.left(self._left, self._jobs)
        return Status(self._done, self._total, self._failed, left, record)

    def kept(self, path: Path) -> str:
        """Say what is kept and how to go on."""
        return (
            f"{self._done} of {self._total} trials were run and are kept in {path}; "
            "run the same again to go on from there"
        )


def _run_all(pending: Sequence[_Trial], jobs: int, source: Any) -> Generator[Record, None, None]:
    """Yield the record of every trial as it ends."""
    stamp = versions(), commit()
    jobs = min(jobs, len(pending))
    if jobs <= 1:
        yield from (_run_trial(trial, source, stamp) for trial in pending)
        return
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        # Trials go out one by one: in batches, a kill would lose all that a batch has done.
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        parent = os.getpid()
        yield from parallel(
            joblib.delayed(_run_in_worker)(trial, source, stamp, parent) for trial in pending
        )


def _run_in_worker(
    trial: _Trial, source: Any, stamp: tuple[dict[str, str], str | None], parent: int
) -> Record:
    """Run one trial in a process that ends when its parent does."""
    _end_with(parent)
    return _run_trial(trial, source, stamp)


@cache
def _end_with(parent: int) -> None:
    """Let this process end soon after its parent, even where that was killed.

    Otherwise the trials in flight would run to their end for nobody, and the workers then wait
    for five minutes, holding the memory that the next run needs.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_trial(trial: _Trial, source: Any, stamp: tuple[dict[str, str], str | None]) -> Record:
    """Run one trial, whatever comes of it."""
    results, error = None, None
    started = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        with threadpool_limits(limits=1):
            # A copy, because the parameters are the trial's name in the file.
            results = plain(trial.run(plain(trial.params), source), "results")
        if not isinstance(results, dict):
            raise TypeError(f"run returned a {type(results).__name__}: return a dictionary")
    except Exception as raised:  # whatever fails, the other trials go on
        results, error = None, _described(raised)
    return Record(
        experiment=trial.experiment,
        params=trial.params,
        results=results,
        error=error,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        versions=stamp[0],
        commit=stamp[1],
        started=started,
        revision=trial.revision,
    )


def _described(error: Exception) -> str:
    """Return type, message and last line of the traceback; the same text on every machine."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}, line {last.lineno}, in {last.name}: {last.line}"
    return f"{type(error).__name__}: {error} ({place})"
