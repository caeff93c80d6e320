"""The pages of the API reference, from what the package exports: no name can be forgotten."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

#: Modules whose public names have a page, in the order of the reference.
MODULES = (
    "polyspan",
    "polyspan.images",
    "polyspan.model_selection",
    "polyspan.metrics",
    "polyspan.plotting",
    "polyspan.callbacks",
    "polyspan.datasets",
    "polyspan.baselines",
    "polyspan.batch",
    "polyspan.kernels",
    "polyspan.geometry",
)
EXAMPLES = ".. minigallery:: {name}\n   :add-heading: Examples that use it\n"


def public_names(module: str) -> dict[str, Any]:
    """Return what a module exports by its full name, without submodules."""
    loaded = importlib.import_module(module)
    found = {name: getattr(loaded, name) for name in sorted(loaded.__all__, key=str.lower)}
    return {
        f"{module}.{name}": value
        for name, value in found.items()
        if not isinstance(value, ModuleType)
    }


def own_members(cls: type) -> Iterator[str]:
    """Yield public methods and properties that polyspan itself defines, also in parent classes."""
    for name in sorted(dir(cls)):
        owner = next((base for base in cls.__mro__ if name in base.__dict__), None)
        if (
            not name.startswith("_")
            and not name.endswith("_request")
            and owner
            and owner.__module__.startswith("polyspan")
        ):
            value = inspect.getattr_static(cls, name)
            if callable(value) or hasattr(value, "__get__"):
                yield name


def page_of(name: str, value: Any) -> str:
    """Return the source of the page of one name."""
    module, _, short = name.rpartition(".")
    title = name.removeprefix("polyspan.")
    lines = [title, "=" * len(title), "", f".. currentmodule:: {module}", ""]
    if inspect.isclass(value):
        lines += [f".. autoclass:: {short}", ""]
        members = list(own_members(value))
        if members:
            lines += [".. rubric:: Methods and properties", ""]
        for member in members:
            is_property = isinstance(inspect.getattr_static(value, member), property)
            kind = "autoproperty" if is_property else "automethod"
            lines += [f".. {kind}:: {short}.{member}", ""]
    elif callable(value):
        lines += [f".. autofunction:: {short}", ""]
    else:
        lines += [f".. autodata:: {short}", ""]
    return "\n".join([*lines, EXAMPLES.format(name=name)])


def write_pages(app: Any) -> None:
    """Write one page for every public name; those of names that are gone are removed."""
    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        f"{name}.rst": page_of(name, value)
        for module in MODULES
        for name, value in public_names(module).items()
    }
    for old in folder.glob("*.rst"):
        if old.name not in pages:
            old.unlink()
    for file, text in pages.items():
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class PublicNames(SphinxDirective):
    """`.. public-names:: module` is a table of the names of a module, with links to their pages."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        lines = [".. list-table::", "   :widths: 40 60", "   :class: names", ""]
        for name, value in public_names(self.arguments[0]).items():
            short = name.rpartition(".")[2]
            lines += [f"   * - :doc:`{short} <generated/{name}>`", f"     - {first_line(value)}"]
        parent = nodes.section()
        parent.document = self.state.document
        self.state.nested_parse(StringList([*lines, ""], "names"), 0, parent)
        return parent.children


def first_line(value: Any) -> str:
    """Return the first sentence of a docstring."""
    text = inspect.getdoc(value) or ""
    return re.sub(r"\s+", " ", text.split("\n\n")[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the directive and the writing of pages."""
    app.add_directive("public-names", PublicNames)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
