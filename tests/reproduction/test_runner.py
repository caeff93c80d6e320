"""Runs give the same records in any order, in any number of processes, and after a kill."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import toy_experiments
from threadpoolctl import threadpool_limits
from toy_experiments import SLOW, toy, trials

from reproduction.run.records import canonical
from reproduction.run.runner import TRIALS_FILE, run_experiments, stored_records, trial_seed
from reproduction.run.store import UnwritableError, open_store, read_records

ROOT = Path(__file__).parents[2]


def texts(records):
    """Return records as text, in which NaN is equal to itself."""
    return [canonical(asdict(one)) for one in records]


def timeless(records):
    """Return records as text without what differs from run to run."""
    return {
        id_: texts(replace(one, seconds=0, cpu_seconds=0, started="") for one in some)
        for id_, some in records.items()
    }


def stored(out):
    """Return what the folder of a run holds, with times, by key."""
    records = read_records(out / TRIALS_FILE)
    return dict(zip(records, texts(records.values()), strict=True))


def shuffled(scale):
    some = trials(scale)
    random.Random(0).shuffle(some)
    return some


@pytest.fixture
def run(tmp_path):
    def run(*experiments, out="out", scale="smoke", **options):
        return run_experiments(experiments, scale, tmp_path / out, **options)

    return run


def test_records_do_not_depend_on_processes_or_order(run):
    expected = run(toy(), SLOW, scale="standard", out="one")
    assert [one.params for one in expected["toy"]] == trials("standard")
    assert all(one.error is None for one in expected["toy"] + expected["slow"])
    assert timeless(run(toy(), SLOW, scale="standard", out="two", jobs=2)) == timeless(expected)
    other = run(SLOW, toy(trials=shuffled), scale="standard", out="three")
    assert {k: sorted(v) for k, v in timeless(other).items()} == {
        k: sorted(v) for k, v in timeless(expected).items()
    }


def test_known_durations_change_the_order_and_nothing_else(run, tmp_path):
    ready = run(toy(), scale="quick", out="one")
    with open_store(tmp_path / "two" / TRIALS_FILE) as store:
        for one in ready["toy"][:2]:
            store.append(replace(one, seconds=9.0 if one.params["method"] == "theirs" else 1.0))
    again = run(toy(), scale="quick", out="two", jobs=2)
    assert timeless(again) == timeless(ready)


def test_results_come_back_as_plain_numbers_the_same_from_file_and_run(run, tmp_path):
    fresh = run(toy())
    assert timeless(run(toy())) == timeless(fresh)
    assert timeless(stored_records([toy()], "smoke", tmp_path / "out")) == timeless(fresh)
    results = fresh["toy"][1].results
    assert results["shape"] == [60, 40]
    assert results["lam"] == float("inf")
    assert results["gap"] != results["gap"]
    assert [type(x) for x in results["first"]] == [float] * 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_trial_has_one_thread(run, jobs):
    with threadpool_limits(limits=2):
        records = run(toy("threads", toy_experiments.counts_threads), jobs=jobs)["threads"]
    found = [one.results["threads"] for one in records]
    assert all(threads and set(threads) == {1} for threads in found)


def test_nothing_runs_twice_at_any_scale(run, tmp_path):
    run(toy(), scale="quick")
    before = stored(tmp_path / "out")
    run(toy(), scale="smoke")
    assert stored(tmp_path / "out") == before
    everything = run(toy(), scale="standard")
    after = stored(tmp_path / "out")
    assert before.items() <= after.items()
    assert len(everything["toy"]) == len(after) == len(trials("standard"))


def test_a_new_revision_does_not_take_old_trials(run, tmp_path):
    run(toy())
    assert [one.revision for one in run(toy(revision=2))["toy"]] == [2] * len(trials("smoke"))
    assert [one.revision for one in run(toy())["toy"]] == [1] * len(trials("smoke"))
    assert len(stored(tmp_path / "out")) == 2 * len(trials("smoke"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trial_that_fails_is_recorded_and_tried_again(run, tmp_path, jobs):
    partly = toy("partly", toy_experiments.fails_on_odd_draws)
    first = run(partly, jobs=jobs, source="broken")["partly"]
    assert [one.error is None for one in first] == [True, True, False, False]
    assert first[2].results is None
    assert first[2].error.startswith("RuntimeError: no data for draw 1 (toy_experiments.py, line ")
    assert "in fails_on_odd_draws: raise RuntimeError(" in first[2].error
    second = run(partly, source="whole")
    assert timeless(second) == timeless(run(partly, out="other"))
    assert texts(second["partly"][:2]) == texts(first[:2]), "what had succeeded ran again"
    assert len(stored(tmp_path / "out")) == 4, "the failures are still there"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (toy_experiments.returns_an_object, r"TypeError: results['model'][0] is a object"),
        (toy_experiments.returns_a_list, "TypeError: run returned a list: return a dictionary"),
        (toy_experiments.raises_what_is_no_text, r"OSError: no file \udcff"),
    ],
)
def test_what_cannot_be_written_is_an_error_of_the_trial(run, function, message):
    assert all(one.error.startswith(message) for one in run(toy("toy", function))["toy"])


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_what_is_done(run, tmp_path, jobs):
    stops = toy("stops", toy_experiments.interrupts)
    with pytest.raises(KeyboardInterrupt, match=r"are kept in .*; run the same again to go on"):
        run(stops, source="interrupt", jobs=jobs)
    kept = stored_records([stops], "smoke", tmp_path / "out")["stops"]
    assert all(one.params["draw"] == 0 for one in kept)
    assert len(kept) == 2 or jobs > 1
    assert timeless(run(stops)) == timeless(run(stops, out="other"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs the signal SIGKILL")
def test_a_worker_that_dies_ends_the_run_with_advice(run):
    deadly = toy("deadly", toy_experiments.kills_its_worker)
    with pytest.raises(RuntimeError, match=r"lack of memory: trials .* with fewer jobs"):
        run(deadly, jobs=2, source=os.getpid())
    assert timeless(run(deadly, source=os.getpid())) == timeless(
        run(deadly, out="other", source=os.getpid())
    )


def test_two_runs_into_one_folder_are_refused(run, tmp_path):
    with (
        open_store(tmp_path / "out" / TRIALS_FILE),
        pytest.raises(UnwritableError, match=r"another run writes to .* give another folder"),
    ):
        run(toy())


def test_what_cannot_be_run_is_said(run):
    with pytest.raises(ValueError, match="unknown scale 'tiny': give one of smoke, quick"):
        run(toy(), scale="tiny")
    with pytest.raises(ValueError, match=r"lists the trial \{\"draw\":1\} 2 times: give each a"):
        run(toy(trials=lambda scale: [{"draw": 1}, {"draw": 1}, {"draw": 2}]))
    assert run(toy(trials=lambda scale: [])) == {"toy": []}


def test_seeds_depend_on_all_parts_and_on_nothing_else():
    draws = [("table1", i) for i in range(1000)] + [("fig9", i) for i in range(1000)]
    seeds = [trial_seed(*parts) for parts in draws]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert trial_seed("ab", "c") != trial_seed("a", "bc")
    assert trial_seed("a", 1) != trial_seed("a", "1")
    # Fixed, because Python's own hash of a string is another one in every process.
    assert trial_seed("fig9", 999) == 3135295095


needs_groups = pytest.mark.skipif(
    not hasattr(os, "killpg"), reason="needs groups of processes, which this system does not have"
)


def launch(out, jobs):
    """Start a process that will run the slow experiment; it has its imports before it."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with (out.parent / "said").open("a", encoding="utf-8") as said:
        # A group of its own, so that signals reach the workers and not the tests.
        return subprocess.Popen(
            [sys.executable, toy_experiments.__file__, str(out), str(jobs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )


def begin(process, out):
    """Let a process run."""
    with process.stdin as stdin:
        stdin.write(b"go\n")
    with process.stdout as stdout:
        assert stdout.readline() == b"ready\n", (out.parent / "said").read_text(encoding="utf-8")


def wait_for_a_trial(process, out):
    before = len(stored(out))
    while process.poll() is None and len(stored(out)) == before:
        time.sleep(0.01)


def wait_for_group(process):
    """Wait until no process of a run is left; a minute is far more than it takes."""
    process.wait(timeout=60)
    for _ in range(600):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("workers outlive the run that started them")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_experiments([SLOW], "paper", tmp_path_factory.mktemp("undisturbed"), jobs=2)


@needs_groups
def test_five_kills_at_random_moments_change_nothing(tmp_path, undisturbed):
    moments = random.Random(1)
    out = tmp_path / "killed"
    known = {}
    processes = [launch(out, jobs=2)]
    for i in range(5):
        process = processes[-1]
        begin(process, out)
        # The next one imports while this one runs.
        processes.append(launch(out, jobs=2))
        if i == 0:  # while the store is opened and the workers start
            time.sleep(moments.uniform(0, 0.2))
        else:
            wait_for_a_trial(process, out)
            time.sleep(moments.uniform(0, 0.1))
        process.kill()
        process.wait(timeout=60)
        found = stored(out)
        assert known.items() <= found.items(), "a trial was lost, or one that was done ran again"
        known = found
    spare = processes.pop()
    spare.kill()
    spare.communicate()
    for process in processes:
        wait_for_group(process)
    assert [process.returncode for process in processes] == [-signal.SIGKILL] * 5
    assert 0 < len(known) < len(undisturbed["slow"]), "the kills came too early or too late"
    assert timeless(run_experiments([SLOW], "paper", out, jobs=2)) == timeless(undisturbed)
    assert known.items() <= stored(out).items()


@needs_groups
def test_ctrl_c_stops_workers_and_tells_how_to_go_on(tmp_path, undisturbed):
    out = tmp_path / "out"
    process = launch(out, jobs=2)
    begin(process, out)
    wait_for_a_trial(process, out)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    wait_for_group(process)
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert process.returncode == 1, said
    assert f"are kept in {out / TRIALS_FILE}; run the same again" in said
    assert timeless(run_experiments([SLOW], "paper", out)) == timeless(undisturbed)


def test_a_folder_that_another_process_writes_to_is_refused(tmp_path):
    out = tmp_path / "out"
    with open_store(out / TRIALS_FILE):
        process = launch(out, jobs=1)
        begin(process, out)
        assert process.wait(timeout=60) == 1
    assert f"another run writes to {out}" in (tmp_path / "said").read_text(encoding="utf-8")
    assert stored(out) == {}
