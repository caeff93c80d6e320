"""Count the files and functions that a call visits: `python tools/visits.py`, with -v their names.

It prints the table of ARCHITECTURE.md. Functions of `arrays` and `geometry` are not counted, nor
are lambdas and comprehensions.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import polyspan
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.images import denoise_image

ROOT = Path(polyspan.__file__).parent


def counted_file(frame: FrameType | None) -> str:
    """Return the polyspan file of a frame, or an empty text if the frame is not counted."""
    path = Path("" if frame is None else frame.f_code.co_filename)
    file = str(path.relative_to(ROOT)) if ROOT in path.parents else ""
    return "" if file == "arrays.py" or file.startswith("geometry") else file


def visited(run: Callable[[], Any]) -> tuple[dict[str, set[str]], int]:
    """Return the functions that a call visits by their file, and the steps between files.

    A step is a pair of files: a function of the first file calls a function of the second.
    """
    run()  # a first run, so that imports are not counted
    found: dict[str, set[str]] = {}
    steps: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        file = counted_file(frame)
        if event != "call" or not file or frame.f_code.co_name.startswith("<"):
            return
        found.setdefault(file, set()).add(frame.f_code.co_qualname)
        caller = counted_file(frame.f_back)
        if caller and caller != file:
            steps.add((caller, file))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found, len(steps)


def calls() -> dict[str, tuple[Callable[[], Any], type | None]]:
    """Return the calls to count, each with the class of its estimator."""
    import dask
    import dask.array as da

    dask.config.set(scheduler="synchronous")
    X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    holes = mask_entries(X, 0.2, random_state=0)
    image = np.random.default_rng(0).random((32, 32))
    linear = polyspan.MiCUSaL(2, 2, random_state=0)
    robust = polyspan.RobustMiCUSaL(2, 2, random_state=0)
    kernel = polyspan.MCKUSaL(2, 2, random_state=0)
    imputer = polyspan.SubspaceImputer(random_state=0)
    lazy = da.from_array(X, chunks=(40, -1))
    return {
        "`MiCUSaL.fit`": (lambda: linear.fit(X), type(linear)),
        "`RobustMiCUSaL.fit`": (lambda: robust.fit(holes), type(robust)),
        "`MCKUSaL.fit`": (lambda: kernel.fit(X), type(kernel)),
        "`MCKUSaL.fit` and `reconstruct`": (lambda: kernel.fit(X).reconstruct(X), type(kernel)),
        "`SubspaceImputer.fit_transform`": (lambda: imputer.fit_transform(holes), type(imputer)),
        "`denoise_image`": (lambda: denoise_image(image, 0.1), None),
        "a dask array through `MiCUSaL.fit`": (lambda: linear.fit(lazy), None),
    }


def own_classes(kind: type) -> int:
    """Return how many base classes of an estimator are defined in polyspan."""
    return sum(base.__module__.startswith("polyspan") for base in kind.__mro__[1:])


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(
        "| | files | functions | steps between files | own classes above |\n|---|---|---|---|---|"
    )
    for name, (run, kind) in calls().items():
        found, steps = visited(run)
        functions = sum(len(names) for names in found.values())
        above = "" if kind is None else str(own_classes(kind))
        print(f"| {name} | {len(found)} | {functions} | {steps} | {above} |")
        if "-v" in sys.argv:
            for file, names in found.items():
                print(f"    {file}: {', '.join(sorted(names))}")


if __name__ == "__main__":
    main()
