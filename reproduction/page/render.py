"""The page and the Markdown, from their templates."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reproduction.page import formats, points, summary
from reproduction.page.about import About
from reproduction.page.findings import findings
from reproduction.page.pictures import data_uri
from reproduction.sections import Section


def panel_file(section: Section, index: int) -> str:
    """Return the path of a drawing, from the report's folder."""
    return f"figures/{section.id}-panel-{index + 1}.svg"


def picture_file(section: Section, index: int, number: int) -> str:
    """Return the path of a picture, from the report's folder."""
    return f"figures/{section.id}-panel-{index + 1}-picture-{number + 1}.png"


def _escape_markdown(value: object) -> str:
    """Escape text for Markdown and put it on one line; text that is marked safe stays as it is."""
    if isinstance(value, Markup):
        return value
    text = re.sub(r"([\\`*_\[\]|~$#])", r"\\\1", " ".join(str(value).split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_LOADER = PackageLoader("reproduction")
_HTML = Environment(
    loader=_LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
for _module, _names in (
    (formats, "MISSING better_kind better_text counted published_text value_text"),
    (points, "panel_table remarks"),
    (summary, "CLAIM_VERDICTS KINDS ROW_VERDICTS SIGNS better_by count counts_cells"),
    (summary, "also_measured of_the_paper trials_text"),
):
    _HTML.globals |= {name: getattr(_module, name) for name in _names.split()}
_HTML.globals |= {"panel_file": panel_file, "picture_file": picture_file}
_HTML.globals |= {"data_uri": data_uri, "findings": findings}
# `finalize` is called on every value: as in the page, text is escaped unless marked safe.
_MARKDOWN = _HTML.overlay(autoescape=False, finalize=_escape_markdown)


def page(sections: Sequence[Section], about: About, drawings: Mapping[str, str]) -> str:
    """Return the whole page.

    Its content security policy allows only its own script, by hash, and no requests. So even text
    that was not escaped by mistake could do no harm.

    Parameters
    ----------
    sections : sequence of Section
    about : About
    drawings : mapping
        The charts, as SVG, by their `panel_file`.
    """
    script = _source("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return _HTML.get_template("page.html").render(
        sections=sections,
        about=about,
        drawings={name: Markup(drawing) for name, drawing in drawings.items()},
        style=_source("chart.css") + _source("page.css"),
        script=script,
        script_hash=f"sha256-{digest}",
    )


def markdown(sections: Sequence[Section], about: About) -> str:
    """Return the report as GitHub's Markdown, with the figures as files beside it."""
    text = _MARKDOWN.get_template("report.md").render(sections=sections, about=about)
    return _tidy(text)


def first_sentences(sections: Sequence[Section]) -> str:
    """Return the first sentences of the report as Markdown, to be included by other pages."""
    return _tidy(_MARKDOWN.get_template("findings.md").render(sections=sections))


def _tidy(text: str) -> str:
    """Remove the empty lines of parts that a section does not have."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _source(name: str) -> Markup:
    """Return a style sheet or script as it is, not as a template."""
    return Markup(_LOADER.get_source(_HTML, name)[0])
