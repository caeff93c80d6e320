"""Pieces of HTML that several parts of the page use."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.page.formats import MISSING, escape
from reproduction.page.summary import KINDS
from reproduction.sections import CANNOT_TELL, DIFFERS, DOES_NOT_HOLD, HOLDS, NOT_REACHABLE

# The sign says the same as the colour, for whoever does not see the colour.
SIGNS = {HOLDS: "✓", DIFFERS: "≠", DOES_NOT_HOLD: "✗", NOT_REACHABLE: "–", CANNOT_TELL: "?"}


def badge(verdict: str) -> str:
    """Return a verdict as a small coloured label."""
    sign = SIGNS.get(verdict, "+")
    return f'<span class="badge {KINDS[verdict]}">{sign} {escape(verdict)}</span>'


def paragraphs(text: str, css: str = "") -> str:
    """Return text as paragraphs, split at blank lines."""
    opening = f'<p class="{css}">' if css else "<p>"
    return "\n".join(
        f"{opening}{escape(part.strip())}</p>" for part in text.split("\n\n") if part.strip()
    )


def bullets(texts: Sequence[str], css: str = "notes") -> str:
    """Return a list; nothing where it would be empty."""
    if not texts:
        return ""
    return f'<ul class="{css}">{"".join(f"<li>{escape(text)}</li>" for text in texts)}</ul>'


def number_cell(text: str, label: str = "") -> str:
    """Return a table cell that is aligned as numbers are; the label is for narrow screens."""
    css = "n none" if text == MISSING else "n"
    shown = f' data-label="{escape(label)}"' if label else ""
    return f'<td class="{css}"{shown}>{escape(text)}</td>'


def scrolling(table: str, label: str) -> str:
    """Put a table into a box that scrolls by itself, so that the page never does."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">{table}</div>'
    )


def proportions(counts: Sequence[tuple[str, int]]) -> str:
    """Return a bar divided by verdicts; the numbers themselves stand beside it."""
    parts = "".join(
        f'<i class="{KINDS[verdict]}" style="flex:{n}"></i>' for verdict, n in counts if n
    )
    return f'<div class="stack" aria-hidden="true">{parts}</div>'
