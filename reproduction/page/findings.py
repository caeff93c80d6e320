"""The first sentences of the report: which claims of the paper hold, computed from the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.page.formats import percent
from reproduction.page.summary import count
from reproduction.sections import CANNOT_TELL, DIFFERS, DOES_NOT_HOLD, HOLDS, NOT_REACHABLE, Section


def findings(sections: Sequence[Section]) -> list[str]:
    """Return at most five sentences; one that has nothing to say is left out."""
    texts = (_claims(sections), *_places(sections), _numbers(sections), _ours(sections))
    return [text for text in texts if text]


def _claims(sections: Sequence[Section]) -> str:
    found = count(sections).claims
    if not found.total():
        return ""
    if found[CANNOT_TELL] == found.total():
        return (
            f"None of the {found.total()} claims of the paper that we checked can be told from "
            "this run."
        )
    return (
        f"Of the {found.total()} claims of the paper that we checked, {_do(found[HOLDS], 'hold')}, "
        f"{_do(found[DOES_NOT_HOLD], 'do not hold', 'does not hold')}, and {found[CANNOT_TELL]} "
        "cannot be told from this run."
    )


def _places(sections: Sequence[Section]) -> tuple[str, str]:
    """Name the tables and figures where most of the claims hold, and the others."""
    decided = [section for section in sections if _decided(section)]
    if not decided:
        return "", ""
    mostly = [section for section in decided if 2 * _holding(section) > _decided(section)]
    rest = [section for section in decided if section not in mostly]
    first = "In no table or figure do most of the decided claims hold."
    if mostly:
        first = (
            f"Most of the decided claims hold in {_listed([_name(one) for one in mostly])}: "
            f"{sum(map(_holding, mostly))} of {sum(map(_decided, mostly))}."
        )
    second = "There is no table or figure where only half of them or fewer hold."
    if rest:
        names = [_name(one, f"{_holding(one)} of {_decided(one)}") for one in rest]
        second = f"Half of them or fewer hold in {_listed(names)}."
    return first, second


def _numbers(sections: Sequence[Section]) -> str:
    found = count(sections).rows
    if not found.total():
        return ""
    return (
        f"Of {found.total()} numbers that we compared with printed ones, "
        f"{_do(found[HOLDS], 'agree')} and {_do(found[DIFFERS], 'differ')}; "
        f"{_do(found[NOT_REACHABLE], 'decide')} nothing, because the data, the settings or the "
        "machine are not the paper's."
    )


def _ours(sections: Sequence[Section]) -> str:
    counts = count(sections)
    if counts.better is None:
        return ""
    size = "smaller" if counts.better > 0 else "larger"
    return (
        f"Our best method has the smaller error in {counts.n_better} of {counts.n_compared} "
        f"comparisons with the paper's methods; in the median its error is "
        f"{percent(counts.better)} {size}."
    )


def _do(n: int, verb: str, verb_of_one: str = "") -> str:
    """Return a count and the verb that goes with it.

    >>> _do(2, "agree"), _do(1, "agree")
    ('2 agree', '1 agrees')
    """
    return f"{n} {verb}" if n != 1 else f"{n} {verb_of_one or verb + 's'}"


def _holding(section: Section) -> int:
    return sum(claim.verdict == HOLDS for claim in section.claims)


def _decided(section: Section) -> int:
    return sum(claim.verdict != CANNOT_TELL for claim in section.claims)


def _name(section: Section, detail: str = "") -> str:
    """Return "Table I (synthetic data)": the first name that the paper has for it, and its topic.

    >>> _name(Section("table1", "", "Table I and Fig. 2 (a, c)", "", topic="synthetic data"), "1")
    'Table I (synthetic data, 1)'
    """
    where, _, _ = section.where.partition(" and ")
    inside = ", ".join(text for text in (section.topic, detail) if text)
    return f"{where} ({inside})" if inside else where


def _listed(texts: Sequence[str]) -> str:
    """Join texts as in a sentence.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]
