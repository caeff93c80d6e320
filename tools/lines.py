"""Count lines of code, files and layers: `python tools/lines.py`, or the lines of another folder.

Lines without comments, docstrings and empty lines, by folder.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = (
        node.body[0]
        for node in ast.walk(tree)
        if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None
    )
    return {number for text in texts for number in range(text.lineno, (text.end_lineno or 0) + 1)}


def lines_of_code(source: str) -> int:
    """Return how many lines of a file hold code."""
    docstrings = docstring_lines(ast.parse(source))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in docstrings
        for number, line in enumerate(source.splitlines(), 1)
    )


def number_of_layers() -> int:
    """Return how many layers the test of layers names."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    (layers,) = (node.value for node in assigned if ast.unparse(node.targets[0]) == "LAYERS")
    return len(ast.literal_eval(layers))


def main() -> None:
    """Print the lines of every folder, and of all."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src" / "polyspan"
    lines, files = Counter[str](), Counter[str]()
    for path in sorted(folder.rglob("*.py")):
        part = path.relative_to(folder).parts[0]
        lines[part] += lines_of_code(path.read_text(encoding="utf-8"))
        files[part] += 1
    for part, count in lines.most_common():
        print(f"{count:6} lines {files[part]:4} files  {part}")
    print(f"{lines.total():6} lines {files.total():4} files, {number_of_layers()} layers")


if __name__ == "__main__":
    main()
