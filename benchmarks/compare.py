"""Time two commits against each other: `python benchmarks/compare.py BASE`, or make bench-compare.

Each commit runs in its own process, one per row, on one thread. The two processes take turns and
alternate which of them goes first, so that whatever slows the machine slows both. A row is
"slower" or "faster" if the interval of the median ratio is beyond the limit, "same" if it is
within. Rows that are slower or unclear are measured again with twice as many pairs, and that round
alone decides. The results (objectives, pictures) are compared too. The exit code is 1 if a row is
slower, has another result, or runs on the base only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from paired import FEWEST_PAIRS, complaints, difference, median_interval, verdict
from timing import machine
from worker import HERE, Worker, WorkloadError

ROOT = HERE.parent
#: Short workloads are repeated until one turn takes about this long, in seconds of processor time.
TURN = 0.25
Row = dict[str, Any]


class Runner(Protocol):
    """What a pair needs of a worker."""

    def request(self, word: str) -> float:
        """Send a command and return the number of the answer."""
        ...


def take_turns(old: Runner, new: Runner, pairs: int) -> tuple[list[float], list[float]]:
    """Return new time / old time of every pair, and the new times; the order alternates."""
    ratios, seconds = [], []
    for turn in range(pairs):
        order = (old, new) if turn % 2 else (new, old)
        spent = {id(worker): worker.request("time") for worker in order}
        ratios.append(spent[id(new)] / spent[id(old)])
        seconds.append(spent[id(new)])
    return ratios, seconds


def measure(old: Runner, new: Runner, pairs: int, limit: float) -> Row:
    """Compare results, times and memory of two workers; without pairs nothing is timed."""
    found, before = new.request("found"), old.request("found")
    row: Row = {"found": found, "found before": before, "difference": difference(found, before)}
    if not pairs:
        return row | {"verdict": "not timed"}
    once = max(old.request("time"), new.request("time"), 1e-4)
    for worker in (old, new):
        worker.request(f"repeats {max(1, round(TURN / once))}")
    ratios, seconds = take_turns(old, new, pairs)
    interval = median_interval(ratios)
    return row | {
        "verdict": verdict(interval, limit),
        **interval._asdict(),
        "pairs": pairs,
        "CPU s": median(seconds),
        "MiB": new.request("memory"),
        "MiB before": old.request("memory"),
    }


def compare_row(name: str, trees: tuple[Path, Path], pairs: int, limit: float) -> Row:
    """Measure one row on both trees; where it cannot run, say on which and why."""
    with Worker(trees[0], name) as old, Worker(trees[1], name) as new:
        failed = {}
        for side, worker in (("base", old), ("new", new)):
            try:
                worker.wait_until_ready()
            except WorkloadError as error:
                failed[side] = str(error)
        return {"failed": failed} if failed else measure(old, new, pairs, limit)


def tree_of(commit: str) -> Path:
    """Check a commit out into build/bench, if that has not been done before."""
    git = ["git", "-C", str(ROOT)]
    asked = [*git, "rev-parse", "--short=12", f"{commit}^{{commit}}"]
    full = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    tree = ROOT / "build" / "bench" / full
    if not tree.is_dir():
        tree.parent.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run([*git, "archive", full], check=True, capture_output=True).stdout
        part = Path(tempfile.mkdtemp(dir=tree.parent))  # an interrupt leaves no half of a tree
        subprocess.run(["tar", "-x", "-C", str(part)], input=packed, check=True)
        part.rename(tree)
    return tree


def format_row(name: str, row: Row, limit: float) -> str:
    if "failed" in row:
        reasons = "; ".join(f"{side}: {reason}" for side, reason in row["failed"].items())
        return f"{name:28s} not run ({reasons})"
    result = f"found {row['found']:.6g}, relative difference {row['difference']:.0e}"
    if "ratio" not in row:
        return f"{name:28s} {row['verdict']}  {result}"
    said = f"same within {100 * limit:g} %" if row["verdict"] == "same" else row["verdict"]
    return (
        f"{name:28s} {said:16s} {row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})  "
        f"{row['CPU s']:.4f} s  {row['MiB']:.1f} MiB, before {row['MiB before']:.1f}  {result}"
    )


def judge(rows: dict[str, Row], tolerance: float) -> list[str]:
    """Return what is wrong with a comparison, in lines; none where it passes."""
    ran = {name: row for name, row in rows.items() if "failed" not in row}
    lines = complaints(
        {name: row["verdict"] for name, row in ran.items()},
        {name: row["difference"] for name, row in ran.items()},
        tolerance,
    )
    lost = [name for name, row in rows.items() if list(row.get("failed", ())) == ["new"]]
    lines += [f"runs on the base only: {'; '.join(lost)}"] if lost else []
    return lines if ran else [*lines, "no row ran on both commits"]


def workload_names() -> list[str]:
    code = "from workloads import WORKLOADS; print(*WORKLOADS, sep='\\n')"
    asked = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=HERE
    )
    return asked.stdout.splitlines()


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="commit to compare with, such as HEAD~1")
    parser.add_argument("rows", nargs="*", help="names, or beginnings of names, of workloads")
    parser.add_argument("--new", help="commit to judge; without it the working tree")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of runs; 0: results only")
    parser.add_argument("--limit", type=float, default=5.0, help="per cent that count as slower")
    parser.add_argument(
        "--tolerance", type=float, default=1e-9, help="largest relative difference of results"
    )
    parser.add_argument("--output", type=Path, default=Path("build/bench-compare.json"))
    options = parser.parse_args(arguments)
    if 0 < options.pairs < FEWEST_PAIRS:
        parser.error(
            f"--pairs {options.pairs} are too few for an interval: at least {FEWEST_PAIRS}, or 0"
        )
    names = workload_names()
    beginnings = tuple(options.rows)
    options.rows = [name for name in names if not beginnings or name.startswith(beginnings)]
    if not options.rows:
        parser.error(f"no row begins with {', '.join(beginnings)}; there are {', '.join(names)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    limit = options.limit / 100
    trees = tree_of(options.base), tree_of(options.new) if options.new else ROOT
    about = machine() | {"base": trees[0].name, "new": options.new or "working tree"}
    first, rows = {}, {}
    for name in options.rows:
        first[name] = compare_row(name, trees, options.pairs, limit)
        print(format_row(name, first[name], limit), flush=True)
    for name, row in first.items():
        rows[name] = row
        if row.get("verdict") in ("slower", "unclear"):
            rows[name] = compare_row(name, trees, 2 * options.pairs, limit)
            print(format_row(f"{name}, again", rows[name], limit), flush=True)
    saved = {"machine": about, "limit": limit, "first round": first, "rows": rows}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(saved, indent=2), encoding="utf-8")
    for word in ("faster", "unclear"):
        found = [name for name, row in rows.items() if row.get("verdict") == word]
        print(f"{word}: {'; '.join(found) or 'none'}")
    wrong = judge(rows, options.tolerance)
    timed = f"no row is slower by more than {options.limit:g} %; " if options.pairs else ""
    print("\n".join(wrong) or f"{timed}same results")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
