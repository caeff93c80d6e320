"""Run the trials of experiments in any number of processes; continue an interrupted run."""

from __future__ import annotations

import hashlib
import multiprocessing
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
from reproduction.run.progress import expected_seconds, progress_bar
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
from reproduction.run.store import open_store, read_records

#: Name of the file of trials in the output folder.
TRIALS_FILE = "trials.sqlite"

# How often a worker checks whether its parent process still exists.
SECONDS_BETWEEN_CHECKS = 0.5
WINDOWS = os.name == "nt"
HAS_INITIALIZERS = tuple(map(int, joblib.__version__.split(".")[:2])) >= (1, 5)


def trial_seed(*parts: Any) -> int:
    """Return a seed of 32 bits that depends only on the arguments.

    It does not depend on the scale, the order of trials or the process. (Python's own `hash` of a
    string changes from one process to the next.)

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
    progress: bool = False,
) -> dict[str, list[Record]]:
    """Run every trial that has not run yet, and return all trials of this scale.

    Each trial is stored in `<out>/trials.sqlite` when it ends, so a kill loses only the trials that
    were running. A trial that raises is stored with its error and runs again in the next run.

    Parameters
    ----------
    experiments : iterable of Experiment
    scale : one of SCALES
    out : path of the output folder
    jobs : int, default=1
        Number of processes; -1 is one per core, 1 runs in this process. Every trial has one BLAS
        thread, so results do not depend on this number.
    source : object, default=None
        Where trials take data from. It is pickled for the workers, so it should load lazily.
    progress : bool, default=False
        Show a progress bar on the standard error.

    Returns
    -------
    records : dict of lists
        By the id of the experiment, in the order of its trials.

    Raises
    ------
    KeyboardInterrupt
        With a message that says where the finished trials are stored.
    """
    wanted = _wanted(experiments, scale)
    with open_store(Path(out) / TRIALS_FILE) as store:
        kept = f"trials that have ended are kept in {store.path}; run the same again to go on"
        known = store.records()
        expected = expected_seconds(known.values())
        # Long trials first, so that at the end no process waits for a single long trial.
        pending = sorted(
            (t for trials in wanted.values() for t in trials if not _done(t, known)),
            key=lambda trial: -expected(trial.experiment, trial.params),
        )
        work = sum(expected(trial.experiment, trial.params) for trial in pending)
        try:
            # The generator is closed before the lock is released, so that no worker runs after it.
            with (
                progress_bar(
                    len(pending), work, expected, hidden=not (progress and pending)
                ) as report,
                closing(_run_all(pending, jobs, source)) as finished,
            ):
                for record in finished:
                    store.append(record)
                    report(record)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted: {kept}") from None
        except BrokenProcessPool as error:
            raise RuntimeError(
                "a worker process was ended from outside, most often for lack of memory: "
                f"{kept}, with fewer jobs"
            ) from error
        return _collected(wanted, store.records())


def stored_records(
    experiments: Iterable[Experiment], scale: str, out: str | os.PathLike[str]
) -> dict[str, list[Record]]:
    """Return the stored trials of this scale; run nothing."""
    return _collected(_wanted(experiments, scale), read_records(Path(out) / TRIALS_FILE))


@dataclass(frozen=True)
class _Trial:
    """One trial to run; it is pickled for a worker."""

    experiment: str
    revision: int
    params: Params
    run: Callable[[Params, Any], dict[str, Any]]

    @property
    def key(self) -> Key:
        return trial_key(self.experiment, self.revision, self.params)


def _wanted(experiments: Iterable[Experiment], scale: str) -> dict[str, list[_Trial]]:
    """Return the trials of every experiment at a scale."""
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}: give one of {', '.join(SCALES)}")
    wanted = {
        e.id: [_Trial(e.id, e.revision, plain(p, "params"), e.run) for p in e.trials(scale)]
        for e in experiments
    }
    counts = Counter(trial.key for trials in wanted.values() for trial in trials)
    for (id_, _, params), n in counts.most_common(1):
        if n > 1:
            raise ValueError(
                f"experiment {id_!r} lists the trial {params} {n} times: "
                "give each a draw number or seed of its own"
            )
    return wanted


def _done(trial: _Trial, records: dict[Key, Record]) -> bool:
    record = records.get(trial.key)
    return record is not None and record.error is None


def _collected(
    wanted: dict[str, list[_Trial]], records: dict[Key, Record]
) -> dict[str, list[Record]]:
    return {
        id_: [records[trial.key] for trial in trials if trial.key in records]
        for id_, trials in wanted.items()
    }


def _run_all(pending: Sequence[_Trial], jobs: int, source: Any) -> Generator[Record, None, None]:
    """Yield the record of every trial as it ends."""
    stamp = {"versions": versions(), "commit": commit()}
    parent = os.getpid()
    # joblib before 1.5 has no initializers: there a worker starts to watch with its first trial.
    early = {"initializer": _end_with_parent, "initargs": (parent,)} if HAS_INITIALIZERS else {}
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1, **early):
        # Trials are sent one by one: with batches, a kill would lose a whole batch.
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(
            joblib.delayed(_run_in_worker)(t, source, stamp, parent) for t in pending
        )


def _run_in_worker(trial: _Trial, source: Any, stamp: dict[str, Any], parent: int) -> Record:
    """Run one trial in a process that ends when its parent does; with one job, in the parent."""
    if os.getpid() != parent:
        _end_with_parent(parent)
    return _run_trial(trial, source, stamp)


@cache
def _end_with_parent(parent: int) -> None:
    """Start a thread that ends this worker soon after its parent process, even a killed one.

    Otherwise its trial would run to the end although nobody stores it, and joblib's workers then
    wait for five minutes and occupy memory that the next run needs.
    """

    def watch() -> None:
        while _is_running(parent):
            time.sleep(SECONDS_BETWEEN_CHECKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _is_running(parent: int) -> bool:
    """Tell whether the parent of this process is still there."""
    if not WINDOWS:
        return os.getppid() == parent
    # There the number stays after the end of the parent.
    known = multiprocessing.parent_process()
    return known is None or known.is_alive()


def _run_trial(trial: _Trial, source: Any, stamp: dict[str, Any]) -> Record:
    """Run one trial; an exception becomes part of its record."""
    results, error = None, None
    started = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        with threadpool_limits(limits=1):
            # A copy, because the parameters identify the trial in the file and must not change.
            results = plain(trial.run(plain(trial.params), source), "results")
        if not isinstance(results, dict):
            raise TypeError(f"run returned a {type(results).__name__}: return a dictionary")
    except Exception as raised:  # whatever fails, the other trials go on
        results, error = None, _describe(raised)
    return Record(
        experiment=trial.experiment,
        revision=trial.revision,
        params=trial.params,
        results=results,
        error=error,
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        started=started,
        **stamp,
    )


def _describe(error: Exception) -> str:
    """Return type, message and last line of the traceback; the same text on every machine."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}, line {last.lineno}, in {last.name}: {last.line}"
    text = f"{type(error).__name__}: {error} ({place})"
    # File names in the message may contain bytes that are not valid text.
    return text.encode(errors="backslashreplace").decode()
