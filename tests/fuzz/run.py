"""Run many fuzzing cases: `python tests/fuzz/run.py --n 20000 --seed 1`, or one: `--case 17`."""

import argparse
import os
import sys
import time
import traceback

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from fuzz_cases import draw_case
from fuzz_contract import check
from joblib import Parallel, delayed

SLOW = 30.0


def run_case(seed):
    """Return what one case ended with, and why it failed."""
    case = draw_case(seed)
    began = time.process_time()
    try:
        ended, why = check(case), None
    except Exception as error:
        ended, why = "failure", f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    if why is None and seconds > SLOW:
        ended, why = "failure", f"it took {seconds:.0f} s"
    return ended, why, case.described


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="which cases: each seed has its own")
    parser.add_argument("--case", type=int, help="one case, with its traceback")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.case is not None:
        case = draw_case(options.case)
        print(case.described)
        try:
            print(check(case))
        except Exception:
            traceback.print_exc()
            return 1
        return 0
    seeds = range(options.seed * 1_000_000, options.seed * 1_000_000 + options.n)
    found = Parallel(n_jobs=options.jobs, return_as="generator")(map(delayed(run_case), seeds))
    counts = {"result": 0, "error": 0, "failure": 0}
    for seed, (ended, why, described) in zip(seeds, found, strict=True):
        counts[ended] += 1
        if why is not None:
            print(f"make fuzz CASE={seed}  # {described}: {why}".replace("\n", " "), flush=True)
    print(f"{counts['result']} results, {counts['error']} errors, {counts['failure']} failures")
    return min(counts["failure"], 1)


if __name__ == "__main__":
    sys.exit(main())
