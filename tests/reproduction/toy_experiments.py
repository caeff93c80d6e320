"""Experiments of a few milliseconds, for the tests of the runner; also a program to be killed.

Run as a program, `python toy_experiments.py OUT JOBS` waits for a line of input, says "ready" and
runs the slow experiment.
"""

import os
import signal
import sys
import time

import numpy as np
from threadpoolctl import threadpool_info

from reproduction.registry import Experiment
from reproduction.run.runner import run_experiments, trial_seed

DRAWS = {"smoke": 2, "quick": 4, "standard": 8, "paper": 30}


def trials(scale):
    return [
        {"method": method, "lam": lam, "draw": draw}
        for draw in range(DRAWS[scale])
        for method, lam in (("ours", 4.0), ("theirs", float("inf")))
    ]


def compute(params, source):
    rng = np.random.default_rng(trial_seed("toy", params["draw"]))
    product = rng.standard_normal((60, 50)) @ rng.standard_normal((50, 40))
    params["draw"] = "changed"  # a run may spoil its own copy, never the name of the trial
    return {
        "norm": np.linalg.norm(product),
        "first": product[0, :3],
        "shape": product.shape,
        "lam": params["lam"],
        "gap": np.nan,
    }


def slow(params, source):
    # Long enough that a busy machine, too, kills a run five times before it ends.
    time.sleep(0.1 + trial_seed("sleep", params["draw"]) / 2**32 * 0.2)
    return compute(params, source)


def fails_on_odd_draws(params, source):
    if source == "broken" and params["draw"] % 2:
        raise RuntimeError(f"no data for draw {params['draw']}")
    return compute(params, source)


def counts_threads(params, source):
    return {"threads": [pool["num_threads"] for pool in threadpool_info()]}


def interrupts(params, source):
    if source == "interrupt" and params["draw"] == 1:
        raise KeyboardInterrupt
    return compute(params, source)


def kills_its_worker(params, source):
    if os.getpid() != source and params["draw"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(params, source)


def returns_an_object(params, source):
    return {"model": [object()]}


def returns_a_list(params, source):
    return [1, 2]


def raises_what_is_no_text(params, source):
    raise OSError("no file \udcff")


def summarise(records, source):
    # Imported late: processes that only run trials are to start fast.
    from reproduction.sections import Section

    return Section("toy", "Toy", "nowhere", "", n_trials=len(records))


def toy(id_="toy", run=compute, **changes):
    return Experiment(
        **{"id": id_, "title": "Toy", "where": "nowhere", "trials": trials, "run": run}
        | {"summarise": summarise}
        | changes
    )


SLOW = toy("slow", slow)


if __name__ == "__main__":
    # A shell that starts the tests in the background lets everything in them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin.readline()
    print("ready", flush=True)
    try:
        run_experiments([SLOW], "paper", sys.argv[1], jobs=int(sys.argv[2]))
    except KeyboardInterrupt as stop:
        sys.exit(str(stop))
