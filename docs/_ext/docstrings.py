"""Docstrings as Sphinx wants them, before numpydoc reads them."""

from __future__ import annotations

import re
from typing import Any

#: The line of a parameter or attribute: names, then the type.
TYPED = re.compile(r"^(\w[\w, *]* : )(.*)$")


def prepare(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Join lines that end in a backslash, and keep fitted attributes in types from being links."""
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] = joined[-1][:-1].rstrip() + " " + line.strip()
        else:
            joined.append(line)
    lines[:] = [TYPED.sub(_escaped, line) for line in joined]


def _escaped(found: re.Match[str]) -> str:
    return found[1] + re.sub(r"(?<=\w)_(?!\w)", r"\\_", found[2])


def setup(app: Any) -> dict[str, bool]:
    """Run before numpydoc, whose priority is 500."""
    app.connect("autodoc-process-docstring", prepare, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
