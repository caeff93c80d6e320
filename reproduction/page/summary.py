"""Counts of the verdicts, and how our methods compare with the paper's."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reproduction.page.formats import MISSING, better_text, counted, duration
from reproduction.sections import (
    CANNOT_TELL,
    DIFFERS,
    DOES_NOT_HOLD,
    HOLDS,
    NEW,
    NOT_REACHABLE,
    Row,
    Section,
)

ROW_VERDICTS = (HOLDS, DIFFERS, NOT_REACHABLE)
"""Of numbers of the paper; NEW is not among them, since the paper does not have those."""
CLAIM_VERDICTS = (HOLDS, DOES_NOT_HOLD, CANNOT_TELL)
KINDS = {
    HOLDS: "holds",
    DIFFERS: "differs",
    DOES_NOT_HOLD: "differs",
    NOT_REACHABLE: "open",
    CANNOT_TELL: "open",
    NEW: "new",
}
"""The kind of each verdict, which the filter buttons and the colours use."""
SIGNS = {
    HOLDS: "✓",
    DIFFERS: "≠",
    DOES_NOT_HOLD: "✗",
    NOT_REACHABLE: "–",
    CANNOT_TELL: "?",
    NEW: "+",
}
"""One sign per verdict, for readers who do not see the colours."""


@dataclass(frozen=True)
class Counts:
    """Counts of the verdicts of one section or of all."""

    rows: Counter[str]
    """Verdicts on numbers of the paper."""
    claims: Counter[str]
    n_new: int
    """Numbers that were also measured and are not in the paper."""
    better: float | None
    """Median of `better_by` over the rows that have it."""
    n_better: int
    """Rows in which the error of our method is smaller."""
    n_compared: int
    """Rows that have both values, whether the paper prints the number or not."""

    @property
    def kinds(self) -> set[str]:
        """The kinds of verdict that occur on numbers and claims of the paper."""
        return {KINDS[verdict] for verdict in self.rows + self.claims}


def better_by(row: Row) -> float | None:
    """Return 1 - improved/measured, or None if one of them is missing."""
    if row.measured is None or row.improved is None:
        return None
    ours, theirs = row.improved.mean, row.measured.mean
    if not (math.isfinite(ours) and math.isfinite(theirs)) or theirs <= 0:
        return None
    return 1 - ours / theirs


def count(sections: Sequence[Section]) -> Counts:
    """Count verdicts and take the median improvement over sections."""
    rows = [row for section in sections for row in section.rows]
    gains = [gain for gain in map(better_by, rows) if gain is not None]
    return Counts(
        rows=Counter(row.verdict for row in rows if row.verdict != NEW),
        claims=Counter(claim.verdict for section in sections for claim in section.claims),
        n_new=sum(row.verdict == NEW for row in rows),
        better=statistics.median(gains) if gains else None,
        n_better=sum(gain > 0 for gain in gains),
        n_compared=len(gains),
    )


def counts_cells(sections: Sequence[Section]) -> list[str]:
    """Return the counts of both kinds of verdict, of other numbers, and the median improvement."""
    counts = count(sections)
    numbers = [counts.rows[verdict] for verdict in ROW_VERDICTS]
    numbers += [*(counts.claims[verdict] for verdict in CLAIM_VERDICTS), counts.n_new]
    return [*(str(n) if n else MISSING for n in numbers), better_text(counts.better) or MISSING]


def of_the_paper(section: Section) -> list[Row]:
    """Return the numbers that the paper prints."""
    return [row for row in section.rows if row.verdict != NEW]


def also_measured(section: Section) -> list[Row]:
    """Return the numbers that the paper does not print."""
    return [row for row in section.rows if row.verdict == NEW]


def trials_text(section: Section) -> str:
    """Say how many trials ran and how long they took."""
    if not section.n_trials:
        return "No trial has run at this scale."
    failed = f", {section.n_failed} failed" if section.n_failed else ""
    took = f", {duration(section.seconds)} of processor time" if section.seconds > 0 else ""
    return f"{counted(section.n_trials, 'trial')}{failed}{took}"


def check_sections(sections: Sequence[Section]) -> None:
    """Raise ValueError where a section cannot be rendered or linked to."""
    seen: set[str] = set()
    for section in sections:
        if not section.id.isidentifier() or not section.id.isascii():
            raise ValueError(
                f"section id {section.id!r} is part of links and file names: "
                "use letters, digits and underscores, such as 'table1'"
            )
        if section.id.lower() in seen:
            raise ValueError(f"two sections have the id {section.id!r}: each needs its own")
        seen.add(section.id.lower())
        for verdict, known in [
            *((row.verdict, (*ROW_VERDICTS, NEW)) for row in section.rows),
            *((claim.verdict, CLAIM_VERDICTS) for claim in section.claims),
        ]:
            if verdict not in known:
                raise ValueError(
                    f"section {section.id!r} has the verdict {verdict!r}: use one of {known}"
                )
