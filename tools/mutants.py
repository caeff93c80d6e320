"""Change the code in small ways and see whether the tests notice: `make mutants`.

First the tests of the folders run once and note which test runs which line. Then every mutant, one
operator or constant that is changed, runs against the tests of its line, until one fails: all
mutants against the fastest, then what is left against the other tests of its folder. What survives
is printed, and every outcome is kept in a file, from which a later run goes on.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src/polyspan"
#: A file of the package and the number of the place that is changed.
Mutant = tuple[str, int]
Outcome = dict[str, Any]
#: For every file and line the tests that run it, the fastest first.
Lines = dict[str, dict[int, list[str]]]
#: Which tests judge which folder of the package.
FOLDERS = {
    "linear/_solve": "tests/linear",
    "kernel/_solve": "tests/kernel",
    "mixture/_solve": "tests/mixture",
    "images": "tests/images",
}
#: So many tests, the fastest, run first: nearly all mutants that die do so here.
FIRST_TESTS = 60
#: Seconds for the first tests, in which an endless loop shows, and for the rest.
LIMITS = (180, 1200)
SWAPS: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip


def places(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every node that can be changed, in the order of the source."""
    for node in _judged(tree):
        swapped = isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS
        compared = isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS
        number = isinstance(node, ast.Constant) and isinstance(node.value, int | float | bool)
        branch = isinstance(node, ast.If | ast.IfExp | ast.While | ast.Break)
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub)
        if swapped or compared or number or branch or negated:
            yield node


def _judged(node: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes, but not those of compiled functions, type hints, decorators and docstrings."""
    decorators = getattr(node, "decorator_list", [])
    for child in ast.iter_child_nodes(node):
        if child in decorators:
            continue
        if isinstance(child, ast.FunctionDef):
            if any("njit" in ast.unparse(one) for one in child.decorator_list):
                continue
            child.returns = None
            for argument in child.args.args + child.args.kwonlyargs:
                argument.annotation = None
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        yield child
        yield from _judged(child)


def mutate(source: str, index: int) -> tuple[str, int, str]:
    """Return the source with one place changed, its line, and what was changed."""
    tree = ast.parse(source)
    node: Any = list(places(tree))[index]
    before = ast.unparse(node).splitlines()[0]
    if isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        value: Any = node.value
        node.value = not value if isinstance(value, bool) else value * 2 + 1
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Invert()
        if isinstance(node.op, ast.Invert):
            node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
    else:  # break
        node.__class__ = ast.Continue
    line = node.lineno
    after = ast.unparse(node).splitlines()[0]
    return ast.unparse(ast.fix_missing_locations(tree)), line, f"{before}  ->  {after}"


def _paths(*folders: Path) -> str:
    """Return folders as the value of a variable of the environment."""
    return os.pathsep.join(map(str, folders))


def tests_by_line(folder: Path, judged: Sequence[str]) -> Lines:
    """Run the tests of some folders once; return the tests of every line, the fastest first."""
    kept = folder / "lines.json"
    if not kept.exists():
        data = folder / "coverage"
        report = folder / "times.json"
        environment = os.environ | {"COVERAGE_FILE": str(data), "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov=polyspan",
             "--cov-context=test", "--cov-report=", "--cov-fail-under=0", "-p", "mutant_times",
             *(FOLDERS[one] for one in judged)],
            cwd=ROOT, check=True,
            env=environment
            | {"PYTHONPATH": _paths(ROOT / "src", ROOT / "tools"), "TIMES": str(report)},
        )  # fmt: skip
        import coverage

        times = json.loads(report.read_text(encoding="utf-8"))
        found = coverage.CoverageData(str(data))
        found.read()
        lines: Lines = {}
        for name in found.measured_files():
            contexts = found.contexts_by_lineno(name)
            short = Path(name).relative_to(PACKAGE).as_posix()
            lines[short] = {
                line: sorted({c.split("|")[0] for c in cs if c}, key=lambda t: times.get(t, 9e9))
                for line, cs in contexts.items()
            }
        kept.write_text(json.dumps(lines), encoding="utf-8")
    read = json.loads(kept.read_text(encoding="utf-8"))
    return {name: {int(k): v for k, v in lines.items()} for name, lines in read.items()}


def users_of(name: str, line: int, lines: Lines) -> list[str]:
    """Return the tests that run a line of a file.

    Of a constant, a field or a default value, which is read at import, those of its users, also in
    other files. The compiler may leave out the line of a `break`: then those of the line before.
    """
    own = lines.get(name, {})
    if own.get(line):
        return own[line]
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    if any(isinstance(node, ast.Break) and node.lineno == line for node in ast.walk(tree)):
        return own.get(line - 1, [])
    names = {
        node.id
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and statement.lineno <= line <= (statement.end_lineno or line)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    used = [(file, where) for file in lines if names for where in _mentions(file, names)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line < node.body[0].lineno:
            used += [(name, one.lineno) for one in node.body]
    return list(dict.fromkeys(test for file, at in used for test in lines[file].get(at, [])))


def _mentions(file: str, names: set[str]) -> list[int]:
    """Return the lines of a file that use one of the names."""
    return [
        node.lineno
        for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8")))
        if (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
    ]


def _fails(tree: Path, tests: list[str], limit: float) -> bool:
    """Return whether one of the tests fails, or does not end."""
    environment = os.environ | {
        "PYTHONPATH": _paths(tree / "src", tree), "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def judge(tree: Path, mutant: Mutant, lines: Lines, *, rest: bool) -> Outcome:
    """Run one mutant in a copy of the tree, against the fastest tests or against the rest."""
    name, index = mutant
    path = tree / "src/polyspan" / name
    original = (PACKAGE / name).read_text(encoding="utf-8")
    changed, line, what = mutate(original, index)
    tests = users_of(name, line, lines)
    folder = next(tests for source, tests in FOLDERS.items() if name.startswith(source))
    slow = [test for test in tests[FIRST_TESTS:] if test.startswith(folder)]
    outcome = "left" if slow and not rest else "survived" if tests else "not run"
    path.write_text(changed, encoding="utf-8")
    try:
        batch = slow if rest else tests[:FIRST_TESTS]
        if batch and _fails(tree, batch, LIMITS[rest]):
            outcome = "killed"
    finally:
        path.write_text(original, encoding="utf-8")
    return {"file": name, "index": index, "line": line, "what": what, "outcome": outcome}


def run_all(
    mutants: list[Mutant], lines: Lines, jobs: int, kept: Path, *, rest: bool = False
) -> list[Outcome]:
    """Run mutants side by side, each in one of `jobs` copies of the tree; note every outcome."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        trees: Queue[Path] = Queue()
        for k in range(jobs):
            ignore = shutil.ignore_patterns(".venv*", ".git", "build", "__pycache__", ".*_cache")
            trees.put(Path(shutil.copytree(ROOT, Path(folder) / str(k), ignore=ignore)))

        def run(one: Mutant) -> Outcome:
            tree = trees.get()
            try:
                return judge(tree, one, lines, rest=rest)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool, kept.open("a", encoding="utf-8") as file:
            for outcome in pool.map(run, mutants):
                found.append(outcome)
                print(json.dumps(outcome), file=file, flush=True)
                if outcome["outcome"] != "killed":
                    print("{file}:{line} {outcome}: {what}".format(**outcome), flush=True)
    return found


def known_outcomes(kept: Path) -> dict[Mutant, Outcome]:
    """Return the last outcome of every mutant that was run."""
    text = kept.read_text(encoding="utf-8") if kept.exists() else ""
    every = [json.loads(line) for line in text.splitlines()]
    return {(one["file"], one["index"]): one for one in every}


def drawn_mutants(options: argparse.Namespace) -> list[Mutant]:
    """Draw mutants: of all chosen folders together, or as many of each."""
    every = {
        folder: [
            (path.relative_to(PACKAGE).as_posix(), index)
            for path in sorted((PACKAGE / folder).glob("*.py"))
            for index, _ in enumerate(places(ast.parse(path.read_text(encoding="utf-8"))))
        ]
        for folder in options.folders
    }
    random_draws = random.Random(options.seed)
    if options.each:
        groups = [(found, options.each) for found in every.values()]
    else:
        groups = [([one for found in every.values() for one in found], options.n)]
    return [one for found, n in groups for one in random_draws.sample(found, min(n, len(found)))]


def main() -> None:
    """Draw mutants, run those that have no outcome yet, print what survived."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--each", type=int, help="so many of every folder, instead of --n")
    parser.add_argument("--folders", nargs="+", choices=FOLDERS, default=list(FOLDERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="run once more what survived")
    parser.add_argument("--out", type=Path, default=ROOT / "build/mutants")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = tests_by_line(options.out, options.folders)
    drawn = drawn_mutants(options)
    kept = options.out / f"outcomes-{options.seed}.jsonl"
    if options.again:  # after tests were added; the code must be what it was
        killed = [one for one in known_outcomes(kept).values() if one["outcome"] == "killed"]
        kept.write_text("".join(json.dumps(one) + "\n" for one in killed), encoding="utf-8")
        (options.out / "lines.json").unlink()
        lines = tests_by_line(options.out, options.folders)
    known = known_outcomes(kept)
    run_all([one for one in drawn if one not in known], lines, options.jobs, kept)
    known = known_outcomes(kept)
    left = [one for one in drawn if known[one]["outcome"] == "left"]
    print(f"{len(left)} of {len(drawn)} run against the rest of their tests", flush=True)
    run_all(left, lines, options.jobs, kept, rest=True)
    killed = [one for one in known_outcomes(kept).values() if one["outcome"] == "killed"]
    print(f"{len(killed)} of {len(drawn)} mutants killed: {len(killed) / len(drawn):.1%}")


if __name__ == "__main__":
    main()
