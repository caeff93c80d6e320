"""The text of a `MissingSummary`: at most about 40 lines, also for wide tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

#: So many columns; patterns, pairs and hints.
MOST_LINES, FEWER_LINES = 10, 5
#: Longer names, and lists of names, are cut.
WIDEST_NAME, WIDEST_LIST = 30, 76


def report(summary: Any) -> str:
    """Return what a `MissingSummary` says, as text."""
    parts = [[_first_line(summary)], _odd_columns(summary)]
    if summary.n_missing:
        parts += [_columns(summary), _patterns(summary), _together(summary), _hints(summary)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _first_line(summary: Any) -> str:
    n, total = summary.n_missing, summary.n_rows * summary.n_columns
    size = f"{_number(summary.n_rows, 'row')} and {_number(summary.n_columns, 'column')}"
    if not n:
        return f"{size}: nothing is missing."
    be = "is" if summary.n_complete_rows == 1 else "are"
    return (
        f"{size}: {n} of {total} entries ({_percent(summary.fraction_missing)}) are missing; "
        f"{_number(summary.n_complete_rows, 'row')} {be} complete."
    )


def _odd_columns(summary: Any) -> list[str]:
    """Name the columns that are empty or constant."""
    lines = []
    for word, names in (("empty", summary.empty), ("constant", summary.constant)):
        if names:
            count = _number(len(names), "column")
            lines.append(f"{count} with no information, {word}: {_listed(names)}")
    return lines


def _columns(summary: Any) -> list[str]:
    """Return a table of the columns with most missing entries."""
    lost = [column for column in summary.columns if column.n_missing]
    shown = sorted(lost, key=lambda column: -column.n_missing)[:MOST_LINES]
    names = [_short(column.name) for column in shown]
    width = max(len("column"), *map(len, names))
    kinds = max(len("kind"), *(len(column.kind) for column in shown))
    lines = [
        "Columns with missing entries:" if len(shown) == len(lost)
        else f"Columns with missing entries, the first {len(shown)} of {len(lost)}:",
        f"  {'column':{width}s}  {'kind':{kinds}s}  missing  fraction  distinct values",
    ]  # fmt: skip
    for name, column in zip(names, shown, strict=True):
        lines.append(
            f"  {name:{width}s}  {column.kind:{kinds}s}  {column.n_missing:7d}  "
            f"{_percent(column.fraction_missing):>8s}  {column.n_distinct:15d}"
        )
    return lines


def _patterns(summary: Any) -> list[str]:
    """Say in how many rows which columns are missing."""
    if summary.n_patterns == summary.n_rows > FEWER_LINES:
        return ["No two rows miss the same columns."]
    shown = summary.patterns[:FEWER_LINES]
    width = max(len(str(pattern.n_rows)) for pattern in shown)
    title = "Rows by what is missing"
    if len(shown) < summary.n_patterns:
        title += f", the first {len(shown)} of {summary.n_patterns} patterns"
    return [
        f"{title}:",
        *(f"  {pattern.n_rows:{width}d}  {_listed(pattern.columns)}" for pattern in shown),
    ]


def _together(summary: Any) -> list[str]:
    shown = summary.together[:FEWER_LINES]
    lines = [
        f"  {_short(pair.first)} and {_short(pair.second)}: {_number(pair.n_rows, 'row')}, "
        f"correlation {pair.correlation:.2f}"
        for pair in shown
    ]
    title = "Columns that are missing together, more often than by chance:"
    return [title, *lines, *_more(summary.together, shown)] if lines else []


def _hints(summary: Any) -> list[str]:
    order = sorted(summary.dependences, key=lambda found: found.p_value)
    shown = order[:FEWER_LINES]
    title = "What is missing depends on observed values:"
    lines = [
        f"  {replace(found, column=_short(found.column), other=_short(found.other)).hint}"
        for found in shown
    ]
    return [title, *lines, *_more(order, shown)] if lines else []


def _more(all_of_them: Sequence[Any], shown: Sequence[Any]) -> list[str]:
    rest = len(all_of_them) - len(shown)
    return [f"  and {rest} more"] if rest else []


def _listed(names: Sequence[Any]) -> str:
    """Return names of columns, cut where they are many or long."""
    if not names:
        return "nothing"
    text = ""
    for k, name in enumerate(names):
        longer = f"{text}, {_short(name)}" if text else _short(name)
        if k and len(longer) > WIDEST_LIST:
            return f"{text} and {len(names) - k} more"
        text = longer
    return text


def _short(name: Any) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= WIDEST_NAME else f"{text[: WIDEST_NAME - 1]}…"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _percent(fraction: float) -> str:
    """Return a percentage; what is neither nothing nor all does not round to it."""
    if 0.0 < fraction < 0.001:
        return "< 0.1 %"
    if 0.999 < fraction < 1.0:
        return "> 99.9 %"
    return f"{100 * fraction:.1f} %"
