"""The page of licences names what the shipped file was learned from, and goes with the wheel."""

import ast
import re
import tomllib
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = "docs/licences-of-pictures.md"


def used_photographs():
    tree = ast.parse((ROOT / "tools" / "picture_crops.py").read_text(encoding="utf-8"))
    (table,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "SCALES"
    ]
    return set(ast.literal_eval(table))


def test_every_photograph_has_its_line():
    names = re.findall(
        r"^\| (\w+) \| (?:scikit-image|scikit-learn|SciPy) \| .+ \| .+ \|$",
        (ROOT / PAGE).read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert len(names) == len(set(names))
    assert set(names) == used_photographs()


def test_the_page_goes_with_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license-files"] == ["LICENSE", PAGE]


def test_the_shipped_file_is_small():
    file = resources.files("polyspan.images").joinpath("learned.npz")
    assert 0 < len(file.read_bytes()) <= 15e6
