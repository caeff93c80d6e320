"""One commit in a process of its own, which runs a workload whenever it is asked to."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).resolve().parent
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class WorkloadError(Exception):
    """A workload cannot run in this process: a name, a package or a file is missing."""


class Worker:
    """A process that loads polyspan from `tree` and runs the workload `name`, on one thread."""

    def __init__(self, tree: Path, name: str) -> None:
        paths = [tree / "src", tree, HERE]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            **dict.fromkeys(THREADS, "1"),
        }
        self._tree = tree
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def wait_until_ready(self) -> None:
        """Wait for the first run; raise WorkloadError where it failed."""
        word, _, rest = self._answer().partition(" ")
        if word != "ready":
            raise WorkloadError(rest)
        if Path(rest).resolve() != (self._tree / "src" / "polyspan").resolve():
            raise RuntimeError(f"loaded polyspan from {rest} instead of {self._tree}")

    def request(self, word: str) -> float:
        """Send one command (see `serve`) and return the number that it answers with."""
        assert self._process.stdin is not None
        print(word, file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"the process ended with {self._process.wait()}")
        return answer


def serve(name: str) -> None:
    """Say "ready" and where polyspan is, then answer every line of the input with a number.

    "repeats N" sets how often a workload runs in one turn; "time" returns seconds of processor
    time, "memory" MiB, and "found" the number that stands for the result.
    """
    warnings.simplefilter("ignore")  # both commits would say the same, in every turn
    try:
        import polyspan
        from workloads import WORKLOADS, figure_of

        run, repeats = WORKLOADS[name](), 1
        found = figure_of(run())  # the first run also imports and compiles
    except Exception as error:  # whatever it is, the other process decides what it means
        print(f"failed {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
        return
    print(f"ready {Path(polyspan.__file__).parent}", flush=True)
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


if __name__ == "__main__":
    serve(sys.argv[1])
