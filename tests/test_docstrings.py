"""Docstrings of public names say what every parameter is and what comes back."""

import importlib
import inspect
import sys
from pathlib import Path

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

#: No docstring; parameters without type or description; no description of what is returned.
CODES = {"GL08", *(f"PR{i:02d}" for i in range(1, 11)), *(f"RT{i:02d}" for i in range(1, 6))}


def helpers():
    folder = str(Path(__file__).parents[1] / "docs" / "_ext")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("public_names")
    finally:
        sys.path.remove(folder)
        sys.modules.pop("public_names", None)


NAMES = helpers()
# Types such as `polyspan.geometry.Dims` are aliases: they have no docstring of their own.
PUBLIC = {
    name: value
    for module in NAMES.MODULES
    for name, value in NAMES.public_names(module).items()
    if callable(value)
}


def findings(name, value):
    parts = {name: value}
    if inspect.isclass(value):
        parts |= {f"{name}.{member}": getattr(value, member) for member in NAMES.own_members(value)}
    for part, found in parts.items():
        # The object, not its name: `polyspan.compare` is a module and a function.
        for code, text in validate(get_doc_object(found))["errors"]:
            if code in CODES:
                yield f"{part}: {code} {text}"


def test_docstrings_are_complete():
    assert len(PUBLIC) > 50
    found = [line for name, value in PUBLIC.items() for line in findings(name, value)]
    assert not found, "\n" + "\n".join(found)


def test_a_bare_docstring_is_found(monkeypatch):
    monkeypatch.setattr(PUBLIC["polyspan.MiCUSaL"].fit, "__doc__", "Fit.")
    found = list(findings("polyspan.MiCUSaL", PUBLIC["polyspan.MiCUSaL"]))
    assert [line.split()[:2] for line in found if ".fit:" in line] == [
        ["polyspan.MiCUSaL.fit:", "PR01"],
        ["polyspan.MiCUSaL.fit:", "RT01"],
    ]
