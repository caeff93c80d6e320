"""Compare ratios with the stored baseline: `python benchmarks/check.py`, or make bench-check.

The quick rows of `make bench` are measured three times, each time in new processes. A ratio whose
median is worse than that of `benchmarks/baseline.json` by more than its tolerance is measured
again, and counts only if the second round says so too. The exit code is then 1.
`python benchmarks/check.py --update` (make bench-baseline) measures and writes a new baseline.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ratios import NOISY, Finding, Rows, check, collect, entries, failing
from timing import machine

HERE = Path(__file__).resolve().parent
#: Rows of `make bench` that need no files and no other packages; about 80 s for all of them.
QUICK = ("scene", "product", "missing", "restarts", "annealed")
Measure = Callable[[Sequence[str], int], list[Rows]]


def measure(groups: Sequence[str], times: int) -> list[Rows]:
    """Run each row several times in turn, each time in a new process; return what it printed."""
    found: list[Rows] = []
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows.json"
        for turn in range(times):
            found.append({})
            for group in groups:
                print(f"measurement {turn + 1} of {times}: {group}", file=sys.stderr, flush=True)
                command = [sys.executable, str(HERE / "run.py"), group, "--output", str(output)]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                found[-1] |= {group: json.loads(output.read_text(encoding="utf-8"))["rows"]}
    return found


def two_rounds(
    baseline: Sequence[dict[str, Any]], groups: Sequence[str], times: int, run: Measure
) -> list[Finding]:
    """Check the groups; those that fail are measured again, and the second round decides."""
    findings = check(baseline, collect(run(groups, times)), groups)
    suspects = sorted({found.key[0] for found in failing(findings)})
    if not suspects:
        return findings
    again = {found.key: found for found in check(baseline, collect(run(suspects, times)), suspects)}
    first = {found.key for found in failing(findings)}
    return [again.get(found.key, found) if found.key in first else found for found in findings]


def format_finding(found: Finding) -> str:
    group, row, value = found.key
    numbers = f"{found.now:.4g}, baseline {found.was:.4g}"
    if found.said in ("same", "worse", "better"):
        kind = "worse" if found.change > 0 else "better"
        by = abs(found.change) if found.change > 0 else 1 / (1 + found.change) - 1
        numbers += f": {by:.0%} {kind}, allowed {found.tolerance:.0%}"
    return f"{found.said:20s} {group}: {row}, {value} {numbers}"


def update(path: Path, times: int, run: Measure) -> None:
    """Measure all quick rows and write the baseline."""
    stored = entries(collect(run(QUICK, times)))
    about = {"machine": machine(), "measurements": times, "ratios": stored}
    path.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for entry in stored:
        if entry["tolerance"] > NOISY:
            print(
                f"noisy: {entry['row']}, {entry['value']} may get {entry['tolerance']:.0%} worse "
                "unseen; measure again on a quiet machine"
            )
    print(f"{len(stored)} ratios written to {path.name}")


def main(arguments: Sequence[str] | None = None, run: Measure = measure) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="row", help=f"of {', '.join(QUICK)}")
    parser.add_argument("--measurements", type=int, default=3, help="how often each row is run")
    parser.add_argument("--baseline", type=Path, default=HERE / "baseline.json")
    parser.add_argument("--update", action="store_true", help="write a new baseline, of all rows")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.rows if name not in QUICK]
    if unknown:
        parser.error(f"no quick row is named {', '.join(unknown)}; there are {', '.join(QUICK)}")
    if options.measurements < 1:
        parser.error(f"--measurements {options.measurements}: at least 1")
    if options.update:
        if options.rows:
            parser.error("a baseline is of all rows: give no names with --update")
        update(options.baseline, options.measurements, run)
        return 0
    stored = json.loads(options.baseline.read_text(encoding="utf-8"))
    about = stored["machine"]
    print(f"baseline of {about['date']}, commit {about['commit']}, {about['processor']}")
    findings = two_rounds(stored["ratios"], options.rows or QUICK, options.measurements, run)
    print("\n".join(map(format_finding, findings)))
    wrong = failing(findings)
    print(f"{len(wrong)} of {len(findings)} ratios are worse than the baseline allows")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
