"""The first sentences of the report, by hand; and the colours of verdicts."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest

from reproduction.page import About, report_files
from reproduction.page.findings import findings
from reproduction.sections import (
    CANNOT_TELL,
    DIFFERS,
    DOES_NOT_HOLD,
    HOLDS,
    NEW,
    NOT_REACHABLE,
    Claim,
    Row,
    Section,
    Value,
)


def section(id_, where, topic, verdicts, rows=()):
    claims = [Claim(f"claim {k}", verdict, "") for k, verdict in enumerate(verdicts)]
    return Section(id_, "Title", where, "", rows, claims, topic=topic)


def row(verdict, ours=None):
    improved = None if ours is None else Value(ours, 0.1, 3)
    return Row("n", None if verdict == NEW else 1.0, Value(1.0, 0.1, 3), improved, verdict)


ROWS = [row(HOLDS, 0.5), row(DIFFERS, 0.9), row(NOT_REACHABLE), row(NEW, 0.8), row(NEW, 1.2)]
SECTIONS = [
    section("table1", "Table I and Fig. 2 (a, c)", "synthetic", [HOLDS, HOLDS, DOES_NOT_HOLD]),
    section("fig3", "Fig. 3", "", []),
    section("fig5", "Fig. 5", "a photograph", [HOLDS, CANNOT_TELL, CANNOT_TELL], ROWS),
    section("fig7", "Fig. 7", "", [HOLDS, DOES_NOT_HOLD]),
    section("table4", "Table IV", "digits", [DOES_NOT_HOLD, CANNOT_TELL]),
]


def test_five_sentences():
    assert findings(SECTIONS) == [
        "Of the 10 claims of the paper that we checked, 4 hold, 3 do not hold, and 3 cannot be "
        "told from this run.",
        "Most of the decided claims hold in Table I (synthetic) and Fig. 5 (a photograph): 3 of 4.",
        "Half of them or fewer hold in Fig. 7 (1 of 2) and Table IV (digits, 0 of 1).",
        "Of 3 numbers that we compared with printed ones, 1 agrees and 1 differs; 1 decides "
        "nothing, because the data, the settings or the machine are not the paper's.",
        "Our best method has the smaller error in 3 of 4 comparisons with the paper's methods; in "
        "the median its error is 15 % smaller.",
    ]


def test_sentences_follow_the_verdicts():
    good = [section("a", "Fig. 1", "", [HOLDS]), section("b", "Fig. 2", "", [HOLDS])]
    assert findings(good)[1:] == [
        "Most of the decided claims hold in Fig. 1 and Fig. 2: 2 of 2.",
        "There is no table or figure where only half of them or fewer hold.",
    ]
    bad = [section("a", "Fig. 1", "", [DOES_NOT_HOLD])]
    assert findings(bad)[1] == "In no table or figure do most of the decided claims hold."
    open_ = [section("a", "Fig. 1", "", [CANNOT_TELL, CANNOT_TELL])]
    assert findings(open_) == [
        "None of the 2 claims of the paper that we checked can be told from this run."
    ]
    worse = [section("a", "Fig. 1", "", [], [row(NEW, 1.5)])]
    assert findings(worse) == [
        "Our best method has the smaller error in 0 of 1 comparisons with the paper's methods; in "
        "the median its error is 50 % larger."
    ]
    assert findings([]) == []


def test_they_are_escaped():
    evil = [replace(SECTIONS[0], where="<script>*x*", topic="`|")]
    made = report_files(evil, about=About())
    assert rb"&lt;script&gt;\*x\* (\`\|)" in made["summary.md"]
    assert b"&lt;script&gt;*x* (`|)" in made["index.html"]


def test_better_is_green_and_worse_has_the_colour_of_what_does_not_hold():
    rows = [row(HOLDS, 0.5), row(HOLDS, 1.5), row(HOLDS, 1.0)]
    page = report_files([section("a", "", "", [], rows)], about=About())["index.html"].decode()
    assert re.findall(r'<span class="gain (\w+)">([^<]*)<', page) == [
        ("better", "better by 50 %"),
        ("worse", "worse by 50 %"),
        ("same", "the same"),
    ]
    assert ".gain.better { color: var(--holds);" in page
    assert ".gain.worse { color: var(--differs);" in page


# Every pair of text and background that the page has.
PAIRS = [
    *((text, ground) for text in ("ink", "soft", "new") for ground in ("bg", "panel", "shade")),
    *((kind, "panel") for kind in ("holds", "differs", "open")),
    *((kind, f"{kind}-bg") for kind in ("holds", "differs", "open", "new")),
    ("ink", "code"),
    ("soft", "code"),
    ("differs", "bg"),
    ("panel", "ink"),
]


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_text_can_be_read(mode):
    colours = _colours(mode)
    pale = {}
    for pair in PAIRS:
        one, other = sorted((_luminance(colours[name]) for name in pair), reverse=True)
        if (one + 0.05) / (other + 0.05) < 4.5:
            pale[pair] = [colours[name] for name in pair]
    assert pale == {}


def _colours(mode):
    start = {
        "light": "\n",
        "dark": r"\(prefers-color-scheme: dark\) \{\s*",
        "print": r"print \{\s*",
    }
    folder = files("reproduction.templates")
    sheet = "".join(
        "\n" + folder.joinpath(f"{name}.css").read_text(encoding="utf-8")
        for name in ("chart", "page")
    )
    blocks = re.findall(start[mode] + r":root \{([^}]*)\}", sheet)
    assert len(blocks) == 2
    return dict(re.findall(r"--([\w-]+): (#\w{6})", "".join(blocks)))


def _luminance(colour):
    """Return the relative luminance, as WCAG defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
