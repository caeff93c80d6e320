"""Which columns of a table are used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polyspan.base.checks import first_ten
from polyspan.cli.errors import CommandError, say


def positions(
    path: Path, n_columns: int, names: tuple[str, ...] | None, asked: Sequence[str]
) -> list[int]:
    """Return the positions of columns that were asked for, in that order."""
    known = {name: k for k, name in enumerate(names or ())}
    found: list[int] = []
    for item in asked:
        # A name may itself contain commas.
        for word in [item] if item in known else item.split(","):
            word = word.strip()
            first, colon, last = word.partition(":")
            if word in known:
                found.append(known[word])
            elif colon and all(part == "" or part.isdigit() for part in (first, last)):
                found.extend(range(n_columns)[int(first or 0) : int(last or n_columns)])
            elif word.isdigit() and int(word) < n_columns:
                found.append(int(word))
            else:
                shown = ", ".join(list(known)[:10]) or f"numbered 0 to {n_columns - 1}"
                raise CommandError(f"{path} has no column {word!r}: its columns are {shown}")
    return found


def by_name(path: Path, place: dict[str, int], wanted: tuple[str, ...], carried: bool) -> list[int]:
    """Return the places of the columns that a model knows, in its order; all must be there."""
    missing = [name for name in wanted if name not in place]
    if missing:
        raise CommandError(
            f"{path} lacks {len(missing)} of the {len(wanted)} columns that the model was fitted "
            f"to: {first_ten(missing)}"
        )
    others = [name for name in place if name not in set(wanted)]
    if others:
        fate = "not used, carried over unchanged" if carried else "left out"
        say("note", f"columns that the model does not know, {fate}: {first_ten(others)}")
    return [place[name] for name in wanted]
