"""Time two commits against each other: `python benchmarks/compare.py BASE`, or make bench-compare.

Each commit runs in its own process, one per row. The two processes take turns, and alternate which
of them goes first. A row counts as slower if the median ratio of nine pairs of runs is above 1.05,
and again in a second round of nine pairs. The results (objectives, pictures) are compared too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SLOWER = 1.05
SAME = 1e-9  # largest relative difference of results that count as equal
#: Short workloads are repeated until one turn takes about this long, in seconds of processor time.
TURN = 0.25


class Worker:
    """One commit in its own process, which runs a workload on request."""

    def __init__(self, tree: Path, name: str) -> None:
        paths = [tree / "src", tree, HERE]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        }
        command = [sys.executable, str(Path(__file__)), "--serve", name]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def request(self, word: str) -> float:
        """Send one command (see `serve`) and return the number that it answers with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(word, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process ended with {self._process.wait()}")
        return float(answer)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(name: str) -> None:
    """Answer every line of the input with a number.

    "repeats N" sets how often a workload runs in one turn; "time" returns seconds, "memory" MiB,
    and "found" the number that stands for the result.
    """
    from workloads import WORKLOADS, figure_of

    run, repeats = WORKLOADS[name](), 1
    found = figure_of(run())  # the first run also imports and compiles
    for line in sys.stdin:
        word, *value = line.split()
        if word == "repeats":
            repeats = int(value[0])
            print(repeats, flush=True)
        elif word == "found":
            print(repr(found), flush=True)
        elif word == "memory":
            tracemalloc.start()
            run()
            print(tracemalloc.get_traced_memory()[1] / 2**20, flush=True)
            tracemalloc.stop()
        else:
            begin = time.process_time()
            for _ in range(repeats):
                run()
            print((time.process_time() - begin) / repeats, flush=True)


def compare_row(name: str, trees: tuple[Path, Path], pairs: int) -> dict[str, float]:
    """Return the median of new time / old time of one row, the seconds, and the memory of both."""
    old, new = (Worker(tree, name) for tree in trees)
    try:
        figures = new.request("found"), old.request("found")
        once = max(old.request("time"), new.request("time"), 1e-4)
        for worker in (old, new):
            worker.request(f"repeats {max(1, round(TURN / once))}")
        ratios, seconds = [], []
        for turn in range(pairs):
            order = (old, new) if turn % 2 else (new, old)
            spent = {worker: worker.request("time") for worker in order}
            ratios.append(spent[new] / spent[old])
            seconds.append(spent[new])
        if not pairs:
            ratios, seconds = [1.0], [once]
        memory = new.request("memory"), old.request("memory")
    finally:
        old.close()
        new.close()
    return {
        "ratio": median(ratios),
        "lowest": min(ratios),
        "highest": max(ratios),
        "CPU s": median(seconds),
        "MiB": memory[0],
        "MiB before": memory[1],
        "found": figures[0],
        "found before": figures[1],
        "difference": abs(figures[0] - figures[1]) / max(abs(figures[1]), 1e-300),
    }


def base_tree(commit: str) -> Path:
    """Check a commit out into build/bench, if that has not been done before."""
    git = ["git", "-C", str(ROOT)]
    asked = [*git, "rev-parse", "--short=12", f"{commit}^{{commit}}"]
    full = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    tree = ROOT / "build" / "bench" / full
    if not tree.is_dir():
        tree.parent.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run([*git, "archive", full], check=True, capture_output=True).stdout
        tree.mkdir()
        subprocess.run(["tar", "-x", "-C", str(tree)], input=packed, check=True)
    return tree


def format_row(name: str, row: dict[str, float]) -> str:
    return (
        f"{name:28s} {row['ratio']:.3f} ({row['lowest']:.3f} to {row['highest']:.3f})  "
        f"{row['CPU s']:.4f} s  {row['MiB']:.1f} MiB, before {row['MiB before']:.1f}  "
        f"found {row['found']:.6g}, relative difference {row['difference']:.0e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", nargs="?", help="commit to compare with")
    parser.add_argument("rows", nargs="*", help="names, or beginnings of names, of workloads")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of runs; 0: results only")
    parser.add_argument("--output", type=Path, default=Path("build/bench-compare.json"))
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    if not options.base:
        parser.error("give the commit to compare with, such as HEAD~1")
    names = subprocess.run(
        [sys.executable, "-c", "from workloads import WORKLOADS; print(*WORKLOADS, sep='\\n')"],
        check=True, capture_output=True, text=True, cwd=HERE,
    ).stdout.splitlines()  # fmt: skip
    wanted = [n for n in names if not options.rows or n.startswith(tuple(options.rows))]
    if not wanted:
        parser.error(f"no row begins with {', '.join(options.rows)}; there are {', '.join(names)}")
    trees = base_tree(options.base), ROOT
    found: dict[str, Any] = {}
    for name in wanted:
        found[name] = compare_row(name, trees, options.pairs)
        print(format_row(name, found[name]), flush=True)
    suspects = [name for name in wanted if found[name]["ratio"] > SLOWER]
    slower = []
    for name in suspects:
        again = found[f"{name}, again"] = compare_row(name, trees, options.pairs)
        print(format_row(f"{name}, again", again), flush=True)
        slower += [name] if again["ratio"] > SLOWER else []
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(found, indent=2))
    different = [name for name in wanted if not found[name]["difference"] <= SAME]
    print(f"slower by more than 5 % in both rounds: {', '.join(slower) or 'none'}")
    print(f"other results: {', '.join(different) or 'none'}")
    if slower or different:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
