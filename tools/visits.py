"""Count the files and functions that a call visits: `python tools/visits.py`, with -v their names.

It prints the table of ARCHITECTURE.md; `--write` puts it there, and `--check` fails where the page
says something else. Functions of `base.arrays` and `geometry` are not counted, nor are lambdas and
comprehensions. Where a call fits another public estimator, that `fit` is one function, and what it
visits is not counted: the estimator has a row of its own, or can be read on its own.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import polyspan
from polyspan import baselines
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.images import denoise_image

ROOT = Path(polyspan.__file__).parent
PAGE = Path(__file__).parents[1] / "ARCHITECTURE.md"
HEAD = "| | files | functions | steps between files | own classes above |\n|---|---|---|---|---|\n"


@cache
def counted_file(name: str) -> str:
    """Return a file's path below polyspan, or an empty text if the file is not counted."""
    path = Path(name)
    file = str(path.relative_to(ROOT)) if ROOT in path.parents else ""
    return "" if file == "base/arrays.py" or file.startswith("geometry") else file


def is_public(estimator: Any) -> bool:
    """Tell whether users can make an estimator of this class themselves."""
    name = type(estimator).__name__
    return type(estimator) in (getattr(polyspan, name, None), getattr(baselines, name, None))


def first_argument(frame: FrameType) -> Any:
    """Return what a function was given first; None without parameters."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def is_nested_fit(frame: FrameType) -> bool:
    """Tell whether a function is `fit` of a public estimator that another call of ours makes."""
    if frame.f_code.co_name != "fit" or not is_public(first_argument(frame)):
        return False
    outermost, above = frame, frame.f_back
    while above is not None:
        if counted_file(above.f_code.co_filename):
            outermost = above
        above = above.f_back
    return first_argument(outermost) is not first_argument(frame)


def visited(run: Callable[[], Any]) -> tuple[dict[str, set[str]], int]:
    """Return the functions that a call visits by their file, and the steps between files.

    A step is a pair of files: a function of the first file calls a function of the second.
    """
    run()  # a first run, so that imports are not counted
    found: dict[str, set[str]] = {}
    steps: set[tuple[str, str]] = set()
    nested: list[FrameType] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if nested:
            if event == "return" and frame is nested[0]:
                nested.clear()
            return
        if event != "call" or frame.f_code.co_name.startswith("<"):
            return
        file = counted_file(frame.f_code.co_filename)
        if not file:
            return
        found.setdefault(file, set()).add(frame.f_code.co_qualname)
        caller = counted_file(frame.f_back.f_code.co_filename) if frame.f_back else ""
        if caller and caller != file:
            steps.add((caller, file))
        if is_nested_fit(frame):
            nested.append(frame)

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


def table(verbose: bool = False) -> str:
    """Return the table of all calls; if verbose, the functions of each below its row."""
    rows = HEAD
    for name, (run, kind) in calls().items():
        found, steps = visited(run)
        functions = sum(len(names) for names in found.values())
        above = "" if kind is None else str(own_classes(kind))
        rows += f"| {name} | {len(found)} | {functions} | {steps} | {above} |\n"
        if verbose:
            rows += "".join(f"    {file}: {', '.join(sorted(found[file]))}\n" for file in found)
    return rows


def with_table(page: str, new: str) -> str:
    """Return the text of a page with a new table in place of its own."""
    found = re.search(re.escape(HEAD) + r"(\|.*\|\n)*", page)
    if found is None:
        raise SystemExit(f"{PAGE.name} has no table that begins with\n{HEAD}")
    return page[: found.start()] + new + page[found.end() :]


def main(arguments: list[str] | None = None) -> None:
    """Print the table, write it to the page, or compare the page with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true", help="name the functions")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--check", action="store_true", help="fail where the page differs")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    page = PAGE.read_text(encoding="utf-8")
    with_table(page, HEAD)  # before it is counted
    new = table(options.verbose and not (options.write or options.check))
    if options.write:
        PAGE.write_text(with_table(page, new), encoding="utf-8")
    elif options.check and with_table(page, new) != page:
        raise SystemExit(f"{PAGE.name} is not true; python tools/visits.py --write writes\n{new}")
    else:
        print(new, end="")


if __name__ == "__main__":
    main()
