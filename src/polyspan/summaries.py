"""What `summary` returns: sentences and tables, which print as text and show as HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np

from polyspan.base.arrays import to_numpy

#: Most rows of a table that a notebook shows.
MOST_ROWS = 50
#: Most characters in a printed line of words: pages and terminals cut longer ones.
WIDTH = 80

# Text and background are those of the page, and lines are half transparent: so it can be read on
# every theme, light or dark, without a script. Notebooks have styles of their own for tables.
CSS = """
.polyspan-summary {color: inherit; font-size: 0.9em; margin: 0.4em}
.polyspan-summary .polyspan-wide {overflow-x: auto}
.polyspan-summary table {border-collapse: collapse; border: none; margin: 0.4em 0; color: inherit}
.polyspan-summary tr, .polyspan-summary tr:nth-child(n):hover {background: transparent}
.polyspan-summary :is(td, th) {border: none; border-bottom: 1px solid rgba(128, 128, 128, 0.35);
  color: inherit; background: transparent; padding: 0.25em 1em 0.25em 0;
  text-align: right; vertical-align: top; white-space: nowrap; font-weight: normal}
.polyspan-summary thead th {font-weight: bold}
.polyspan-summary :is(td, th).polyspan-text {text-align: left; white-space: normal}
.polyspan-summary .polyspan-facts th {opacity: 0.75; white-space: nowrap}
.polyspan-summary .polyspan-text, .polyspan-summary p {max-width: 50em}
.polyspan-summary .polyspan-best {font-weight: bold}
.polyspan-summary p {margin: 0.3em 0; color: inherit}
.polyspan-summary details > summary {cursor: pointer}
"""


@dataclass(frozen=True, repr=False)
class Summary:
    """What a fitted model says: sentences, and a table of subspaces, clusters, columns or samples.

    It prints as text; a notebook shows it as HTML.

    Attributes
    ----------
    sentences : tuple of str
    table : dict of arrays
        One entry per column, each of the same length; ``pandas.DataFrame(summary.table)`` is a
        frame.
    facts : tuple of (str, str)
        The most important sizes: a name and a value, as the notebook shows them with the model.
    """

    sentences: tuple[str, ...]
    table: dict[str, np.ndarray] = field(default_factory=dict)
    facts: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        words = [line for sentence in self.sentences for line in wrap(sentence, WIDTH)]
        return "\n".join([*words, *([""] if self.table else []), *self._lines()])

    def _cells(self) -> list[list[str]]:
        columns = [[_name(name), *map(_cell, values)] for name, values in self.table.items()]
        return [list(row) for row in zip(*columns, strict=True)]

    def _lines(self) -> list[str]:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return ["  ".join(map(str.rjust, row, widths)) for row in cells]

    def _repr_html_(self) -> str:
        lines = "<br>".join(map(html.escape, self.sentences))
        return card(f"<p>{lines}</p>", self._table_html())

    def _table_html(self) -> str:
        head, *body = self._cells() or [[]]
        return table_html(head, body) if head else ""

    def short_html(self) -> str:
        """Return the facts as HTML, with the table below them, folded."""
        each = folded(f"Each {_name(next(iter(self.table), ''))}", self._table_html())
        return card(facts_html(self.facts), each)


def card(*parts: str) -> str:
    """Return pieces of HTML in one block with its style."""
    return f'<style>{CSS}</style><div class="polyspan-summary">{"".join(parts)}</div>'


def folded(title: str, content: str) -> str:
    """Return HTML that a click on its title unfolds."""
    if not content:
        return ""
    return f"<details><summary>{html.escape(title)}</summary>{content}</details>"


def facts_html(facts: Iterable[Sequence[str]]) -> str:
    """Return a table of names, values and, if there are any, notes."""
    rows = "".join(
        f'<tr><th class="polyspan-text" scope="row">{html.escape(name)}</th>'
        + "".join(map(_cell_html, values, [True] * len(values)))
        + "</tr>"
        for name, *values in facts
    )
    return f'<table class="polyspan-facts"><tbody>{rows}</tbody></table>'


def table_html(
    head: Sequence[str], body: Sequence[Sequence[str]], best: Container[tuple[int, int]] = ()
) -> str:
    """Return a table; of many rows only the first ones. Columns of words are flush left.

    `best` are the cells, (row, column), that are emphasised.
    """
    words = [not all(map(_is_number, column)) for column in zip(*body, strict=True)]
    words = words or [True] * len(head)
    named = "".join(
        _cell_html(cell, word, tag="th") for cell, word in zip(head, words, strict=True)
    )
    rows = ""
    for i, row in enumerate(body[:MOST_ROWS]):
        cells = [_cell_html(cell, words[j], (i, j) in best) for j, cell in enumerate(row)]
        rows += f"<tr>{''.join(cells)}</tr>"
    more = f"<p>… and {len(body) - MOST_ROWS} more rows.</p>" if len(body) > MOST_ROWS else ""
    table = f"<table><thead><tr>{named}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="polyspan-wide">{table}</div>{more}'


def _cell_html(cell: str, word: bool, best: bool = False, tag: str = "td") -> str:
    kinds = " ".join(["polyspan-text"] * word + ["polyspan-best"] * best)
    named = f' class="{kinds}"' if kinds else ""
    return f"<{tag}{named}>{html.escape(cell)}</{tag}>"


def records_html(records: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of dictionaries with the same keys."""
    if not records:
        return ""
    return table_html(
        [_name(key) for key in records[0]], [[_cell(v) for v in row.values()] for row in records]
    )


def listed(values: Any) -> str:
    """Return numbers as text: those that are all equal once, of others the first ten."""
    values = to_numpy(values).tolist()
    if len(values) > 2 and len(set(values)) == 1:
        return f"{values[0]} each"
    return ", ".join(map(str, values[:10])) + (", …" if len(values) > 10 else "")


def counted(count: int, what: str) -> str:
    """Return a number and a noun, as "1 sample" or "2 samples"."""
    return f"{count} {what}" + ("" if count == 1 else "s")


def _name(column: str) -> str:
    return column.replace("_", " ")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, np.integer | int):
        return str(value)
    return "–" if math.isnan(value) else f"{value:.3g}"


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("–", "0"))
    except ValueError:
        return False
    return True
