"""What `summary` returns: sentences and tables, which print as text and show as HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from polyspan.arrays import to_numpy

#: Most rows of a table that a notebook shows.
MOST_ROWS = 50

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
    """What a fitted model says: sentences, and a table with one row per subspace, column or sample.

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

    def __str__(self) -> str:
        if not self.table:
            return "\n".join(self.sentences)
        return "\n".join([*self.sentences, "", *self._lines()])

    def __repr__(self) -> str:
        return str(self)

    def _cells(self) -> list[list[str]]:
        columns = [[_name(name), *map(_cell, values)] for name, values in self.table.items()]
        return [list(row) for row in zip(*columns, strict=True)]

    def _lines(self) -> list[str]:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return ["  ".join(map(str.rjust, row, widths)) for row in cells]

    def _repr_html_(self) -> str:
        return card(sentences_html(self.sentences), self._table_html())

    def _table_html(self) -> str:
        if not self.table:
            return ""
        head, *body = self._cells()
        return table_html(head, body)

    def short_html(self) -> str:
        """Return the facts as HTML, with the sentences and the table below them, folded."""
        return card(
            facts_html(self.facts),
            folded("In words", sentences_html(self.sentences) if self.sentences else ""),
            folded(f"Each {_name(next(iter(self.table), ''))}", self._table_html()),
        )


def card(*parts: str) -> str:
    """Return pieces of HTML in one block with its style."""
    return f'<style>{CSS}</style><div class="polyspan-summary">{"".join(parts)}</div>'


def folded(title: str, content: str) -> str:
    """Return HTML that a click on its title unfolds."""
    if not content:
        return ""
    return f"<details><summary>{html.escape(title)}</summary>{content}</details>"


def sentences_html(sentences: Iterable[str]) -> str:
    """Return a paragraph with one line per sentence."""
    return f"<p>{'<br>'.join(map(html.escape, sentences))}</p>"


def facts_html(facts: Iterable[Sequence[str]]) -> str:
    """Return a table of names, values and, if there are any, notes."""
    rows = []
    for name, *values in facts:
        cells = "".join(f'<td class="polyspan-text">{html.escape(value)}</td>' for value in values)
        rows.append(
            f'<tr><th class="polyspan-text" scope="row">{html.escape(name)}</th>{cells}</tr>'
        )
    return f'<table class="polyspan-facts"><tbody>{"".join(rows)}</tbody></table>'


def table_html(
    head: Sequence[str], body: Sequence[Sequence[str]], best: Container[tuple[int, int]] = ()
) -> str:
    """Return a table; of many rows only the first ones. Columns of words are flush left.

    `best` are the cells, (row, column), that are emphasised.
    """
    words = [not all(map(_is_number, column)) for column in zip(*body, strict=True)]
    named = "".join(
        f'<th scope="col"{_class(word, False)}>{html.escape(cell)}</th>'
        for cell, word in zip(head, words or [True] * len(head), strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{_class(words[j], (i, j) in best)}>{html.escape(cell)}</td>"
            for j, cell in enumerate(row)
        )
        + "</tr>"
        for i, row in enumerate(body[:MOST_ROWS])
    )
    more = f"<p>… and {len(body) - MOST_ROWS} more rows.</p>" if len(body) > MOST_ROWS else ""
    table = f"<table><thead><tr>{named}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="polyspan-wide">{table}</div>{more}'


def _class(word: bool, best: bool) -> str:
    """Return the attribute of a cell."""
    kinds = ["polyspan-text"] * word + ["polyspan-best"] * best
    return f' class="{" ".join(kinds)}"' if kinds else ""


def records_html(records: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of dictionaries with the same keys."""
    if not records:
        return ""
    return table_html(
        [_name(key) for key in records[0]], [[_cell(v) for v in row.values()] for row in records]
    )


def html_with_summary(model: Any) -> str:
    """Return scikit-learn's HTML of an estimator and, where it is fitted, its summary below.

    It replaces `_html_repr`, from which scikit-learn makes all that a notebook asks for.
    """
    shown = str(estimator_html_repr(model))
    try:
        check_is_fitted(model)
        return shown + str(model._short_summary().short_html())
    # Labels that a file lacks, or attributes that a user changed: the model is shown all the same.
    except (NotFittedError, AttributeError, IndexError, TypeError, ValueError):
        return shown


def without_words(model: Any) -> Summary:
    """Return the summary of a model whose sentences say the same as its facts."""
    whole: Summary = model.summary()
    return replace(whole, sentences=())


def is_lazy(values: Any) -> bool:
    """Return whether values would have to be computed first, such as labels of a dask array."""
    return hasattr(values, "__dask_graph__")


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
    if cell == "–":
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True
