"""Forge model files in many ways, load each, and call all methods of the model.

A forged file must be refused, or lead to a clean error or to some result. It must not end the
process, take more than 10 seconds, or more memory than ten times the file and 100 MB. The files are
opened in a process of their own, which is started again when it ends.

    python tools/forge.py --n 5000 --seed 1
    python tools/forge.py --seed 1 --only 1234     # one file again, by its number
"""

from __future__ import annotations

import argparse
import os
import pickle
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from forging.calls import outcome_of
from forging.kinds import forged
from forging.models import Example, examples
from polyspan.storage.models import model_bytes

#: Seconds of the processor that a file may take, and seconds on the clock: others may be busy.
MOST_SECONDS, MOST_WAITED = 10.0, 90.0
MEMORY_FACTOR, MEMORY_MORE = 10, 100 * 2**20
#: Of address space above what the process has at its start; beyond, allocations fail.
ROOM = 4 * 2**30
TICK = os.sysconf("SC_CLK_TCK")  # of the kernel's counts of time; Linux alone is measured
BAD = ("crash", "hang", "memory", "load")


@dataclass(frozen=True)
class Answer:
    """What came of one file: "refused", "errors", "results", or one of BAD, and why."""

    verdict: str
    why: str


class Worker:
    """A process that opens files, and is started again when one of them has ended it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--worker", str(self.folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            self._line(self._process, 600.0, 600.0)  # it is ready
            self._seen.clear()
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def answer(self, name: str, content: bytes) -> Answer:
        """Open a file that was forged of an example."""
        (self.folder / "forged.skops").write_bytes(content)
        process = self._started()
        if name not in self._seen:  # compiled loops and libraries are loaded by the model itself
            self._ask(process, name, f"{name}.skops", 600.0, 600.0)
            self._seen.add(name)
        line = self._ask(process, name, "forged.skops", MOST_SECONDS, MOST_WAITED)
        if line is None:
            self._end()
            return Answer("hang", f"after {MOST_SECONDS:.0f} seconds")
        if not line:
            status = process.wait()
            self._end()
            return Answer("crash", f"exit status {status}")
        outcome, _, used = line.decode(errors="replace").rstrip("\n").rpartition("\t")
        limit = MEMORY_FACTOR * len(content) + MEMORY_MORE
        if int(used) > limit:
            return Answer("memory", f"{int(used) >> 20} MB of {limit >> 20} MB: {outcome}")
        return Answer(outcome.split()[0].strip(":"), outcome)

    def _ask(
        self, process: subprocess.Popen[bytes], name: str, file: str, seconds: float, waited: float
    ) -> bytes | None:
        assert process.stdin is not None
        process.stdin.write(f"{name}\t{file}\n".encode())
        process.stdin.flush()
        return self._line(process, seconds, waited)

    @staticmethod
    def _line(process: subprocess.Popen[bytes], seconds: float, waited: float) -> bytes | None:
        """Return the next line; b"" where the process ended, None where it takes too long."""
        assert process.stdout is not None
        began, used = time.monotonic(), _processor_seconds(process.pid)
        while not select.select([process.stdout], [], [], 0.25)[0]:
            late = time.monotonic() - began > waited
            if late or _processor_seconds(process.pid) - used > seconds:
                return None
        return process.stdout.readline()


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def _memory(name: str) -> int:
    """Return a size of this process in bytes: VmSize, VmRSS, or VmHWM, the peak of the second."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    raise ValueError(name)


def work(folder: Path) -> None:
    """Open a file in the folder for every name of an example that is asked for."""
    import resource  # not on Windows

    X: dict[str, Any] = pickle.loads((folder / "data.pickle").read_bytes())
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + ROOM,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what models print
    out.write(b"ready\n")
    out.flush()
    for line in sys.stdin:
        before = _memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
        name, file = line.rstrip("\n").split("\t")
        outcome = outcome_of(str(folder / file), X[name])
        used = max(0, _memory("VmHWM") - before)
        out.write(f"{' '.join(outcome.split())}\t{used}\n".encode())
        out.flush()


def write(folder: Path, chosen: dict[str, Example]) -> dict[str, bytes]:
    """Write the files of some examples, and the data of their methods; return the files."""
    contents = {name: model_bytes(one.model) for name, one in chosen.items()}
    for name, content in contents.items():
        (folder / f"{name}.skops").write_bytes(content)
    data = {name: one.X for name, one in chosen.items()}
    (folder / "data.pickle").write_bytes(pickle.dumps(data))
    return contents


def draw(seed: int, number: int, contents: dict[str, bytes]) -> tuple[str, bytes, str, str]:
    """Return the example, the file, the kind of forgery and what was done, for a number."""
    rng = np.random.RandomState([seed, number])
    name = list(contents)[rng.randint(len(contents))]
    return name, *forged(rng, contents[name])


def main() -> int:
    """Forge files, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker is not None:
        work(asked.worker)
        return 0
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary, Worker(Path(temporary)) as worker:
        contents = write(worker.folder, examples())
        began = time.monotonic()
        for number in range(asked.n) if asked.only is None else [asked.only]:
            name, content, kind, done = draw(asked.seed, number, contents)
            answer = worker.answer(name, content)
            verdicts[answer.verdict] += 1
            if answer.verdict in BAD or asked.only is not None:
                print(
                    f"{number}: {answer.verdict}: {name}: {kind}: {done}: {answer.why}", flush=True
                )
            if (number + 1) % 500 == 0:
                print(f"{number + 1} files, {time.monotonic() - began:.0f} s", flush=True)
    found = ", ".join(f"{verdicts[name]} {name}" for name in ("refused", "errors", "results", *BAD))
    print(f"{sum(verdicts.values())} forged files of {len(contents)} models: {found}")
    return int(any(verdicts[name] for name in BAD))


if __name__ == "__main__":
    sys.exit(main())
