"""The report as Markdown, with the figures as files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reproduction.page.about import About
from reproduction.page.cells import (
    SUMMARY_HEAD,
    counts_cells,
    overall_text,
    panel_table,
    row_cells,
    trials_text,
)
from reproduction.page.chart import remarks
from reproduction.page.summary import CLAIM_VERDICTS, ROW_VERDICTS, count
from reproduction.sections import Panel, Section

ROW_HEAD = ("Number", "Published", "Measured ± standard error (trials)", "Ours", "Verdict", "Note")


def markdown(sections: Sequence[Section], about: About) -> str:
    """Return the report as GitHub's Markdown."""
    blocks = [f"# {plain(about.title)}"]
    blocks.append("\n".join(f"- {name}: {_literal(name, text)}" for name, text in about.facts()))
    blocks.append(_bullets(about.notes))
    blocks += ["## Summary", _counts_line(sections), plain(overall_text(sections))]
    lines = [
        [
            f"[{plain(section.where)}](#{section.id}) {plain(section.title)}",
            *counts_cells([section]),
        ]
        for section in sections
    ]
    blocks.append(_table(SUMMARY_HEAD, [*lines, ["All", *counts_cells(sections)]], ready=True))
    for section in sections:
        blocks += _section(section, about)
    return "\n\n".join(block for block in blocks if block) + "\n"


def plain(text: str) -> str:
    """Make text mean nothing but itself in Markdown, on one line."""
    text = re.sub(r"([\\`*_\[\]|~$#])", r"\\\1", " ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def panel_file(section: Section, index: int) -> str:
    """Return the path of a drawing, from the report's folder."""
    return f"figures/{section.id}-panel-{index + 1}.svg"


def picture_file(section: Section, index: int, number: int) -> str:
    """Return the path of a picture, from the report's folder."""
    return f"figures/{section.id}-panel-{index + 1}-picture-{number + 1}.png"


def _literal(name: str, text: str) -> str:
    return f"`{text}`" if name in {"Command", "Commit"} and "`" not in text else plain(text)


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {plain(text)}" for text in texts)


def _counts_line(sections: Sequence[Section]) -> str:
    counts = count(sections)
    rows = ", ".join(f"{counts.rows[verdict]} {verdict}" for verdict in ROW_VERDICTS)
    claims = ", ".join(f"{counts.claims[verdict]} {verdict}" for verdict in CLAIM_VERDICTS)
    return f"Numbers: {rows}. Claims: {claims}."


def _table(head: Sequence[str], body: Sequence[Sequence[str]], ready: bool = False) -> str:
    """Return a table; `ready` says that the cells of the body are Markdown already."""
    lines = [[plain(cell) for cell in head], ["---"] * len(head)]
    lines += [list(line) if ready else [plain(cell) for cell in line] for line in body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _section(section: Section, about: About) -> list[str]:
    # The anchor is written out: what a renderer makes of a heading with symbols varies.
    blocks = [
        f'<a id="{section.id}"></a>\n\n## {plain(section.where)}: {plain(section.title)}',
        *(plain(part) for part in section.text.split("\n\n")),
    ]
    if section.source or section.stand_in:
        stand_in = " **(stand-in data)**" if section.stand_in else ""
        blocks.append(f"Data: {plain(section.source)}{stand_in}")
    if section.rows:
        blocks.append(_table(ROW_HEAD, [row_cells(row) for row in section.rows]))
    blocks.append(
        "\n".join(
            f"- **{claim.verdict}**: {plain(claim.text)} ({plain(claim.evidence)})"
            for claim in section.claims
        )
    )
    for index, panel in enumerate(section.panels):
        blocks += _panel(section, panel, index)
    blocks.append(_bullets(section.notes))
    if section.failures:
        blocks += ["Failures:", _bullets(section.failures)]
    commit = f" at commit `{about.commit}`" if about.commit else ""
    blocks.append(f"Run again: `{about.rerun(section.id)}`{commit}. {trials_text(section)}")
    return blocks


def _panel(section: Section, panel: Panel, index: int) -> list[str]:
    blocks = [f"### {plain(panel.title)}"]
    if panel.curves:
        head, body = panel_table(panel)
        blocks += [
            f"![{plain(panel.title)}]({panel_file(section, index)})",
            plain(remarks(panel)),
            "<details><summary>All numbers of this figure</summary>",
            _table(head, body),
            "</details>",
        ]
    blocks += [
        f"![{plain(picture.caption)}]({picture_file(section, index, number)})"
        for number, picture in enumerate(panel.pictures)
    ]
    return blocks
