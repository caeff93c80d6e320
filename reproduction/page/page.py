"""The page: head, navigation, summary and one part per table or figure."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from reproduction.page.about import About
from reproduction.page.cells import counts_cells, overall_text
from reproduction.page.elements import bullets, number_cell, proportions, scrolling
from reproduction.page.formats import escape
from reproduction.page.page_section import section_html
from reproduction.page.summary import CLAIM_VERDICTS, KINDS, ROW_VERDICTS, count
from reproduction.sections import Section

FILTERS = (
    ("all", "All", "Show all numbers and claims"),
    ("differs", "Differs", "Show only what differs or does not hold"),
    ("holds", "Holds", "Show only what holds"),
    ("open", "Open", "Show only what is not reachable or cannot be told"),
)


def page(sections: Sequence[Section], about: About) -> str:
    """Return the whole page.

    Its policy lets only its own script run, by hash, and nothing be fetched: text that slipped
    through the escaping could do no harm either.
    """
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return Template(_resource("page.html")).substitute(
        title=escape(about.title),
        style=_resource("chart.css") + _resource("page.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        links="\n".join(_link(section) for section in sections),
        filters="\n".join(
            f'<button type="button" data-filter="{kind}" title="{hint}" '
            f'aria-pressed="{"true" if kind == "all" else "false"}">{name}</button>'
            for kind, name, hint in FILTERS
        ),
        facts="\n".join(_fact(name, text) for name, text in about.facts()),
        notes=bullets(about.notes),
        tiles=_tiles(sections),
        overall=f'<p class="overall">{escape(text)}</p>'
        if (text := overall_text(sections))
        else "",
        summary=scrolling(_summary(sections), "Summary of all tables and figures"),
        sections="\n".join(section_html(section, about) for section in sections),
        commit=f" at commit <code>{escape(about.commit)}</code>" if about.commit else "",
    )


def _resource(name: str) -> str:
    return files("reproduction.templates").joinpath(name).read_text(encoding="utf-8")


def _link(section: Section) -> str:
    """Return a link with a dot for each kind of verdict that the section has."""
    counts = count([section])
    present = {KINDS[verdict] for verdict in counts.rows + counts.claims}
    dots = "".join(f'<i class="{kind}"></i>' for kind in ("holds", "differs") if kind in present)
    return (
        f'<a href="#{section.id}" title="{escape(section.title)}">{escape(section.where)}'
        f'<span class="dots" aria-hidden="true">{dots}</span></a>'
    )


def _fact(name: str, text: str) -> str:
    literal = name in {"Command", "Commit"}
    value = f"<code>{escape(text)}</code>" if literal else escape(text)
    return f"<dt>{escape(name)}</dt><dd>{value}</dd>"


def _tiles(sections: Sequence[Section]) -> str:
    counts = count(sections)
    return "\n".join(
        [
            _tile("Numbers of the paper", counts.rows, ROW_VERDICTS),
            _tile("Claims of the paper", counts.claims, CLAIM_VERDICTS),
        ]
    )


def _tile(title: str, found: Counter[str], verdicts: Sequence[str]) -> str:
    items = "".join(
        f'<li><b class="{KINDS[verdict]}">{found[verdict]}</b> {escape(verdict)}</li>'
        for verdict in verdicts
    )
    bar = proportions([(verdict, found[verdict]) for verdict in verdicts])
    return f'<div class="tile"><h3>{title}</h3>{bar}<ul>{items}</ul></div>'


def _summary(sections: Sequence[Section]) -> str:
    """Return one line per section, and all of them together at the foot."""
    verdicts = "".join(
        f'<th scope="col" class="n">{escape(verdict)}</th>'
        for verdict in (*ROW_VERDICTS, *CLAIM_VERDICTS)
    )
    groups = (
        f'<th rowspan="2" scope="col">In the paper</th>'
        f'<th colspan="{len(ROW_VERDICTS)}" scope="colgroup">Numbers</th>'
        f'<th colspan="{len(CLAIM_VERDICTS)}" scope="colgroup">Claims</th>'
        '<th rowspan="2" scope="col" class="n">Ours</th>'
    )
    lines = "\n".join(
        f'<tr><th scope="row"><a href="#{section.id}">{escape(section.where)}</a> '
        f"{escape(section.title)}</th>{_cells([section])}</tr>"
        for section in sections
    )
    return (
        f'<table class="summary"><thead><tr class="group-head">{groups}</tr><tr>{verdicts}</tr>'
        f"</thead><tbody>\n{lines}\n</tbody><tfoot><tr>"
        f'<th scope="row">All</th>{_cells(sections)}</tr></tfoot></table>'
    )


def _cells(sections: Sequence[Section]) -> str:
    return "".join(map(number_cell, counts_cells(sections)))
