"""The draft of the software paper: its header, its references, and numbers that the docs have."""

import re
from datetime import datetime
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
BIB = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
# What the Journal of Open Source Software asks for, and what this paper adds.
SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "Limitations",
    "AI usage disclosure",
    "Acknowledgements",
    "References",
]


def parts():
    """Return the header as a dictionary, and the text after it."""
    _, header, body = re.split(r"^---$", PAPER, maxsplit=2, flags=re.MULTILINE)
    return yaml.safe_load(header), body


def references():
    """Return the entries of the bibliography, each with its kind and fields."""
    found = {}
    for entry in re.split(r"^(?=@)", BIB, flags=re.MULTILINE)[1:]:
        kind, key = re.match(r"@(\w+)\{([^,\s]+),", entry).groups()
        assert key not in found, f"{key} is there twice"
        found[key] = {"kind": kind, **dict(re.findall(r"^  (\w+) = \{(.+)\},?$", entry, re.M))}
    return found


def cited():
    body = re.sub(r"`[^`]*`", "", parts()[1])
    return set(re.findall(r"(?<![\w.])@([\w:-]+)", body))


def test_the_header_has_what_the_journal_asks_for():
    header, _ = parts()
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= header.keys()
    assert "`" not in header["title"]
    assert "Python" in header["tags"]
    places = {str(place["index"]) for place in header["affiliations"]}
    assert all(place["name"] for place in header["affiliations"])
    for author in header["authors"]:
        assert author["name"]
        assert set(str(author["affiliation"]).split(", ")) <= places
    assert datetime.strptime(header["date"], "%d %B %Y").year >= 2026
    assert (ROOT / "paper" / header["bibliography"]).is_file()


def test_every_citation_has_its_entry_and_every_entry_is_cited():
    assert cited() == set(references())


def test_every_entry_says_who_what_where_and_when():
    place = {"article": "journal", "inproceedings": "booktitle", "book": "publisher"}
    for key, entry in references().items():
        needed = {"title", "author", "year", place[entry["kind"]]}
        assert needed <= entry.keys(), f"{key} lacks {needed - entry.keys()}"
        assert entry["year"] in key, f"{key} is of {entry['year']}"
        assert "doi.org" not in entry.get("doi", ""), f"{key}: the number alone"
        assert re.fullmatch(r"10\.\d{4,}/\S+", entry.get("doi", "10.0000/none"))


def test_sections_and_length():
    _, body = parts()
    assert re.findall(r"^# (.+)$", body, re.MULTILINE) == SECTIONS
    assert 750 <= len(body.split()) <= 1750


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
