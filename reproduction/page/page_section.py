"""One table or figure of the paper as a part of the page."""

from __future__ import annotations

from reproduction.page.about import About
from reproduction.page.cells import panel_table, row_cells, trials_text
from reproduction.page.chart import Styles, chart, curve_styles, remarks
from reproduction.page.elements import badge, bullets, number_cell, paragraphs, scrolling
from reproduction.page.formats import better_text, counted, escape, value_text
from reproduction.page.pictures import data_uri
from reproduction.page.summary import KINDS, better_by
from reproduction.sections import Panel, Row, Section


def section_html(section: Section, about: About) -> str:
    """Return all that the page says about one table or figure."""
    name = escape(section.id)
    parts = [
        f'<section id="{name}" data-section aria-labelledby="{name}-title">',
        f'<h2 id="{name}-title"><span class="where">{escape(section.where)}</span> '
        f"{escape(section.title)}</h2>",
        paragraphs(section.text),
        _source(section),
        _results(section),
        _claims(section),
        _figures(section),
        _notes(section),
        _run(section, about),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _source(section: Section) -> str:
    if not section.source and not section.stand_in:
        return ""
    stand_in = ' <span class="badge stand-in">stand-in data</span>' if section.stand_in else ""
    return f'<p class="source"><strong>Data:</strong> {escape(section.source)}{stand_in}</p>'


def _results(section: Section) -> str:
    if not section.rows:
        return ""
    with_ours = any(row.improved is not None for row in section.rows)
    head = (
        '<th scope="col">Number</th><th scope="col" class="n">Published</th>'
        '<th scope="col" class="n">Measured ± standard error (trials)</th>'
        + ('<th scope="col">Ours</th>' if with_ours else "")
        + '<th scope="col">Verdict</th>'
    )
    body = "\n".join(_row(row, with_ours) for row in section.rows)
    table = (
        f'<table class="results"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'
    )
    label = f"Numbers of {section.where}"
    return f'<div class="group"><h3>Numbers</h3>{scrolling(table, label)}</div>'


def _row(row: Row, with_ours: bool) -> str:
    name, published, measured, _, _, note = row_cells(row)
    ours = ""
    if with_ours:
        ours = (
            f'<td class="ours" data-label="Ours">{_ours(row)}</td>' if row.improved else "<td></td>"
        )
    return (
        f'<tr data-kind="{KINDS[row.verdict]}"><th scope="row">{escape(name)}</th>'
        f"{number_cell(published, 'Published')}{number_cell(measured, 'Measured')}{ours}"
        f'<td class="verdict">{badge(row.verdict)}{paragraphs(note, "note")}</td></tr>'
    )


def _ours(row: Row) -> str:
    by = better_by(row)
    css = "gain better" if by is not None and by > 0 else "gain"
    return (
        escape(value_text(row.improved, row.digits))
        + (f'<span class="{css}">{escape(better_text(by))}</span>' if by is not None else "")
        + (f"<small>{escape(row.improved_by)}</small>" if row.improved_by else "")
    )


def _claims(section: Section) -> str:
    if not section.claims:
        return ""
    items = "\n".join(
        f'<li data-kind="{KINDS[claim.verdict]}">{badge(claim.verdict)}'
        f"<div><p>{escape(claim.text)}</p>"
        f'<p class="evidence">{escape(claim.evidence)}</p></div></li>'
        for claim in section.claims
    )
    return f'<div class="group"><h3>Claims</h3><ul class="claims">\n{items}\n</ul></div>'


def _figures(section: Section) -> str:
    if not section.panels:
        return ""
    styles = curve_styles(section.panels)
    figures = "\n".join(_figure(panel, styles) for panel in section.panels)
    return f'<h3>Figure</h3><div class="figures">\n{figures}\n</div>'


def _figure(panel: Panel, styles: Styles) -> str:
    parts = [f"<figcaption>{escape(panel.title)}</figcaption>"]
    if panel.curves:
        parts.append(chart(panel, styles))
        if remark := remarks(panel):
            parts.append(f'<p class="remark">{escape(remark)}</p>')
        table = scrolling(_panel_table(panel), f"Numbers of {panel.title}")
        parts.append(f"<details><summary>All numbers of this figure</summary>{table}</details>")
    if panel.pictures:
        images = "".join(
            f'<li><img src="{data_uri(picture)}" alt="{escape(picture.caption)}">'
            f"{escape(picture.caption)}</li>"
            for picture in panel.pictures
        )
        parts.append(f'<ul class="pictures">{images}</ul>')
    wide = ' class="wide"' if panel.pictures else ""
    return f"<figure{wide}>{''.join(parts)}</figure>"


def _panel_table(panel: Panel) -> str:
    head, body = panel_table(panel)
    cells = "".join(
        f'<th scope="col"{" class=n" if k else ""}>{escape(text)}</th>'
        for k, text in enumerate(head)
    )
    lines = "\n".join(
        f'<tr><th scope="row">{escape(line[0])}</th>{"".join(map(number_cell, line[1:]))}</tr>'
        for line in body
    )
    return (
        f'<table class="points"><thead><tr>{cells}</tr></thead><tbody>\n{lines}\n</tbody></table>'
    )


def _notes(section: Section) -> str:
    parts = [f"<h3>Notes</h3>{bullets(section.notes)}" if section.notes else ""]
    if section.n_failed or section.failures:
        n_failed = max(section.n_failed, len(section.failures))
        texts = "".join(f"<pre>{escape(text)}</pre>" for text in section.failures)
        parts.append(
            f'<details class="failures"><summary>{counted(n_failed, "trial")} failed</summary>'
            f"{texts or '<p>No message was kept.</p>'}</details>"
        )
    return "".join(parts)


def _run(section: Section, about: About) -> str:
    commit = f"<p>Commit <code>{escape(about.commit)}</code></p>" if about.commit else ""
    return (
        f'<footer class="run"><p>Run again: <code>{escape(about.rerun(section.id))}</code></p>'
        f"{commit}<p>{escape(trials_text(section))}</p></footer>"
    )
