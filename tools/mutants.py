"""Change the code in small ways and see whether the tests notice: `make mutants`.

First the tests of the folders run once and note which test runs which line. Then every mutant, one
operator or constant that is changed, runs against the tests of its line, until one fails. What
survives is printed, and every outcome is kept in a file, from which a later run goes on.
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Which tests judge which folder of the package.
FOLDERS = {
    "union/_solve": "tests/union",
    "kernel/_solve": "tests/kernel",
    "mixture/_solve": "tests/mixture",
    "images": "tests/images",
}
#: Most tests that one mutant runs against, the fastest first.
MOST_TESTS = 60
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


def tests_by_line(folder: Path) -> dict[str, dict[int, list[str]]]:
    """Run all tests once; return the tests of every line, the fastest first."""
    kept = folder / "lines.json"
    if not kept.exists():
        data = folder / "coverage"
        report = folder / "times.json"
        environment = os.environ | {"COVERAGE_FILE": str(data), "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov=polyspan",
             "--cov-context=test", "--cov-report=", "--cov-fail-under=0", "-p", "mutant_times",
             *FOLDERS.values()],
            cwd=ROOT, check=True,
            env=environment | {"PYTHONPATH": f"{ROOT}/src:{ROOT}/tools", "TIMES": str(report)},
        )  # fmt: skip
        import coverage

        times = json.loads(report.read_text())
        found = coverage.CoverageData(str(data))
        found.read()
        lines: dict[str, dict[int, list[str]]] = {}
        for name in found.measured_files():
            contexts = found.contexts_by_lineno(name)
            short = str(Path(name).relative_to(ROOT / "src/polyspan"))
            lines[short] = {
                line: sorted({c.split("|")[0] for c in cs if c}, key=lambda t: times.get(t, 9e9))
                for line, cs in contexts.items()
            }
        kept.write_text(json.dumps(lines))
    read = json.loads(kept.read_text())
    return {name: {int(k): v for k, v in lines.items()} for name, lines in read.items()}


def users_of(source: str, line: int, lines: dict[int, list[str]]) -> list[str]:
    """Return the tests that run a line.

    Of a constant or a default value, which is read at import, those of its users.
    """
    if lines.get(line):
        return lines[line]
    tree = ast.parse(source)
    names = {
        node.id
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and statement.lineno <= line <= (statement.end_lineno or line)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    used = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in names]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line < node.body[0].lineno:
            used += [one.lineno for one in node.body]
    return list(dict.fromkeys(test for where in used for test in lines.get(where, [])))


def judge(tree: Path, name: str, index: int, lines: dict[int, list[str]]) -> dict[str, Any]:
    """Run one mutant in a copy of the tree."""
    path = tree / "src/polyspan" / name
    original = (ROOT / "src/polyspan" / name).read_text()
    mutant, line, what = mutate(original, index)
    tests = users_of(original, line, lines)[:MOST_TESTS]
    outcome = "survived" if tests else "not run"
    if tests:
        path.write_text(mutant)
        environment = os.environ | {
            "PYTHONPATH": f"{tree}/src:{tree}", "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(
                command, cwd=tree, env=environment, capture_output=True, timeout=180, check=False
            )
            outcome = "survived" if done.returncode == 0 else "killed"
        except subprocess.TimeoutExpired:
            outcome = "killed"  # an endless loop
        path.write_text(original)
    return {"file": name, "index": index, "line": line, "what": what, "outcome": outcome}


def main() -> None:
    """Draw mutants, run those that have no outcome yet, print what survived."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="run once more what survived")
    parser.add_argument("--out", type=Path, default=ROOT / "build/mutants")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = tests_by_line(options.out)
    sources = [
        path for folder in FOLDERS for path in sorted((ROOT / "src/polyspan" / folder).glob("*.py"))
    ]
    every = [
        (str(path.relative_to(ROOT / "src/polyspan")), index)
        for path in sources
        for index, _ in enumerate(places(ast.parse(path.read_text())))
    ]
    drawn = random.Random(options.seed).sample(every, min(options.n, len(every)))
    kept = options.out / f"outcomes-{options.seed}.jsonl"
    known = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    if options.again:  # after tests were added; the code must be what it was
        known = [one for one in known if one["outcome"] == "killed"]
        kept.write_text("".join(json.dumps(one) + "\n" for one in known))
        (options.out / "lines.json").unlink()
        lines = tests_by_line(options.out)
    done = {(one["file"], one["index"]) for one in known}
    with tempfile.TemporaryDirectory() as folder:
        trees: Queue[Path] = Queue()
        for k in range(options.jobs):
            ignore = shutil.ignore_patterns(".venv*", ".git", "build", "__pycache__", ".*_cache")
            trees.put(Path(shutil.copytree(ROOT, Path(folder) / str(k), ignore=ignore)))

        def run(one: tuple[str, int]) -> dict[str, Any]:
            tree = trees.get()
            try:
                return judge(tree, *one, lines.get(one[0], {}))
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as pool, kept.open("a") as file:
            for found in pool.map(run, [one for one in drawn if one not in done]):
                known.append(found)
                print(json.dumps(found), file=file, flush=True)
                if found["outcome"] != "killed":
                    print(f"{found['file']}:{found['line']} {found['outcome']}: {found['what']}")
    killed = sum(one["outcome"] == "killed" for one in known)
    print(f"{killed} of {len(known)} mutants killed: {killed / max(1, len(known)):.0%}")


if __name__ == "__main__":
    main()
