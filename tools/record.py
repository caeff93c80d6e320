"""Compare what the library computes with what was recorded: `python tools/record.py`.

On the machine that recorded, results must agree to 1e-9, labels must be equal, and the PSNR of
pictures must agree to 0.001 dB: differences are printed by case, and the exit code is 1. On
another processor what a small change of the data does not move must agree to 1e-6: `make record`
chooses the same kernels of BLAS, NumPy and numba for all processors with AVX2. With other kernels
or versions rounding differs, and some fits end elsewhere: the script says so, and does not fail.

`--write` records anew, and lists what has changed; `--only TEXT` takes the cases with that text.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
from threadpoolctl import threadpool_limits

from recording.data import Data
from recording.outcomes import lines, outcome
from recording.stored import (
    ELSEWHERE,
    SAME,
    Kept,
    Record,
    allowed,
    difference,
    fingerprint,
    kept_of,
)

RECORD = Path(__file__).parents[1] / "tests" / "recorded" / "results.npz"
#: Data that are changed by so much of themselves tell what rounding can move.
CHANGE = 1e-13
#: Values that change their signs with those of axes, which rounding decides.
SIGNED = ("bases_", "coefs_", "coordinates")
#: A slice of a file has so many bytes while cases run, so that small files have several.
SLICE_BYTES = 32 * 10 * 8


def cut_files_small() -> None:
    """Let files be read in slices of a few rows."""
    found = [
        module
        for name, module in sys.modules.items()
        if name.startswith("polyspan") and hasattr(module, "SLICE_BYTES")
    ]
    if not found:
        raise SystemExit("no module of polyspan has SLICE_BYTES: nothing is read in slices")
    for module in found:
        module.__dict__["SLICE_BYTES"] = SLICE_BYTES


def computed(chosen: dict[str, str], change: float = 0.0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run cases, and yield their values."""
    cut_files_small()
    with (
        threadpool_limits(1),
        dask.config.set(scheduler="synchronous"),
        tempfile.TemporaryDirectory() as folder,
    ):
        data = Data(Path(folder), change)
        for line, kind in chosen.items():
            yield line, outcome(line, kind, data)


def unstable(old: dict[str, Kept], new: dict[str, Kept]) -> list[str]:
    """Return what rounding can move: signs of axes, and what a small change of the data moves."""
    return [
        name
        for name, kept in old.items()
        if name.startswith(SIGNED)
        or name not in new
        or difference(kept, new[name]) > 0.1 * allowed(name, kept, ELSEWHERE)
    ]


def write(chosen: dict[str, str], before: Record | None) -> None:
    """Record the cases, keep what is recorded of others, and say what has changed."""
    old = before or Record({}, {}, {})
    if len(chosen) < len(lines()) and old.machine != fingerprint():
        raise SystemExit("what is recorded comes from another machine: record all, without --only")
    kept = {line: old.cases[line] for line in lines() if line in old.cases}
    moved = {line: old.unstable[line] for line in kept if line in old.unstable}
    changed = dict(computed(chosen, CHANGE))
    for line, values in computed(chosen):
        tell(line, old.differences(line, values, SAME) if line in kept else ["is new"])
        kept[line] = kept_of(values)
        moved[line] = unstable(kept[line], kept_of(changed[line]))
    for line in old.cases.keys() - kept.keys():
        tell(line, ["is gone"])
    Record(
        {line: kept[line] for line in lines() if line in kept},
        {line: names for line, names in moved.items() if names},
        fingerprint(),
    ).write(RECORD)
    print(f"{len(kept)} cases in {RECORD.name}, {RECORD.stat().st_size // 1024} KB")


def tell(line: str, found: list[str]) -> None:
    """Print the differences of a case."""
    if found:
        print("\n    ".join([line, *found]), flush=True)


def compare(chosen: dict[str, str], record: Record) -> bool:
    """Compare the cases with the record; return whether nothing that must agree differs."""
    here = fingerprint()
    other = [f"{key} {record.machine[key]} (here {here[key]})" for key in here
             if record.machine.get(key) != here[key]]  # fmt: skip
    if other:
        print(f"recorded elsewhere, with {'; '.join(other)}: only what is stable is compared")
    missing = [line for line in chosen if line not in record.cases]
    gone = [line for line in record.cases if line not in lines()]
    for line in missing:
        print(f"not recorded: {line}: python tools/record.py --write")
    for line in gone:
        print(f"recorded, but no case any more: {line}: python tools/record.py --write")
    differ = 0
    for line, values in computed({line: chosen[line] for line in chosen if line not in missing}):
        tolerance = ELSEWHERE if other else SAME
        found = record.differences(line, values, tolerance, stable=bool(other))
        tell(line, found)
        differ += bool(found)
    print(f"{len(chosen) - len(missing)} cases compared, {differ} differ")
    rounds_alike = all(here[key] == record.machine.get(key) for key in here if key != "processor")
    return not rounds_alike or not (differ or missing or gone)


def main() -> None:
    """Compare or record the cases."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="record anew")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this text")
    parser.add_argument("--times", action="store_true", help="print the seconds of each case")
    options = parser.parse_args()
    chosen = {line: kind for line, kind in lines().items() if options.only in line}
    if not chosen:
        raise SystemExit(f"no case has the text {options.only!r}")
    record = Record.read(RECORD) if RECORD.exists() else None
    if options.times:
        begin = time.perf_counter()
        for line, _ in computed(chosen):
            print(f"{time.perf_counter() - begin:6.2f} {line}", flush=True)
            begin = time.perf_counter()
    elif options.write:
        write(chosen, record)
    elif record is None:
        raise SystemExit("nothing is recorded: python tools/record.py --write")
    elif not compare(chosen, record):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
