"""The draft of the software paper: its references, and numbers that the docs have."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
BIB = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")


def references():
    """Return the keys of the bibliography."""
    found = re.findall(r"^@\w+\{([^,\s]+),", BIB, flags=re.MULTILINE)
    assert len(found) == len(set(found)), "an entry is there twice"
    return set(found)


def cited():
    _, _, text = re.split(r"^---$", PAPER, maxsplit=2, flags=re.MULTILINE)
    body = re.sub(r"`[^`]*`", "", text)
    return set(re.findall(r"(?<![\w.])@([\w:-]+)", body))


def test_every_citation_has_its_entry_and_every_entry_is_cited():
    assert cited() == references()


def test_the_counts_of_the_reproduction_are_those_of_its_report():
    summary = (ROOT / "docs" / "reproduction" / "summary.md").read_text(encoding="utf-8")
    for there, here in (
        (
            r"Of the (\d+) claims .* (\d+) hold, (\d+) do not hold, and (\d+) cannot",
            r"Of (\d+) claims .*? (\d+) hold, (\d+) do not hold, and (\d+) cannot",
        ),
        (
            r"Of (\d+) numbers .* (\d+) agree and (\d+) differ; (\d+) decide",
            r"Of (\d+) printed numbers, (\d+) agree and (\d+) differ; (\d+) decide",
        ),
    ):
        expected = re.search(there, summary).groups()
        assert re.search(here, " ".join(PAPER.split())).groups() == expected


@pytest.mark.parametrize(
    ("page", "numbers"),
    [
        ("denoising", ["27.85", "28.15"]),
        ("inpainting", ["25.46", "27.51"]),
        ("tables", ["2.46", "1.37"]),
        ("speed", ["38 %", "1.6 %", "2.3 to 2.7", "3,700"]),
        ("clustering", ["36.2", "1.7"]),
        ("large", ["571 MB"]),
    ],
)
def test_numbers_are_those_of_the_evidence(page, numbers):
    evidence = (ROOT / "docs" / "evidence" / f"{page}.md").read_text(encoding="utf-8")
    for number in numbers:
        alone = rf"(?<![\d.]){re.escape(number)}(?!\d)"
        assert re.search(alone, PAPER), f"{number} is not in the paper"
        assert re.search(alone, evidence), f"{number} is not in docs/evidence/{page}.md"
