"""The files beside the page: the same numbers, no half-written and no outdated files."""

import csv
import io
import math
import os
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from reproduction.page import About, report_files, write_report
from reproduction.page.formats import fixed, short, value_text
from reproduction.page.pictures import png
from reproduction.page.summary import better_by, count
from reproduction.sections import NEW, Claim, Panel, Picture, Row, Section, Value


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_value(line, name):
    if not line[name]:
        return None
    error = float(line[f"{name}_error"] or "nan")
    return Value(float(line[name]), error, int(line[f"{name}_n"]))


def cells_of(markdown):
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    return {cell.strip() for line in lines for cell in re.split(r"(?<!\\)\|", line)}


def test_results_csv_has_every_row_in_full(report, sections, about):
    lines = read_csv(report / "results.csv")
    rows = [(section, row) for section in sections for row in section.rows]
    assert len(lines) == len(rows)
    for line, (section, row) in zip(lines, rows, strict=True):
        assert (line["section"], line["name"]) == (section.id, row.name)
        assert (line["verdict"], line["note"]) == (row.verdict, row.note)
        number = "" if row.published is None else repr(float(row.published))
        assert line["published"] == (row.published_as or number)
        for name in ("measured", "improved"):
            # NaN is not equal to itself; its text is.
            assert str(as_value(line, name)) == str(getattr(row, name))
        assert line["commit"] == about.commit


def test_page_and_markdown_print_what_the_csv_holds(report, sections):
    page, markdown = (
        (report / "index.html").read_text(encoding="utf-8"),
        (report / "report.md").read_text(encoding="utf-8"),
    )
    cells = cells_of(markdown)
    rows = [row for section in sections for row in section.rows]
    for line, row in zip(read_csv(report / "results.csv"), rows, strict=True):
        texts = [value_text(as_value(line, "measured"), row.digits)]
        if row.published is not None:
            texts.append(fixed(float(line["published"]), row.digits))
        elif line["published"]:
            texts.append(line["published"])
        for text in texts:
            assert f">{text}</td>" in page
            assert text in cells
    points = read_csv(report / "curves.csv")
    curves = [c for section in sections for panel in section.panels for c in panel.curves]
    assert len(points) == sum(len(curve.x) for curve in curves)
    for line in points:
        text = short(float(line["y"] or "nan"))
        assert re.search(rf">(?:[^<]*; )?{re.escape(text)}(?: ±[^<]*|; [^<]*)?</td>", page), line
        assert any(text in cell for cell in cells)


def test_claims_csv(report, sections):
    claims = [claim for section in sections for claim in section.claims]
    lines = read_csv(report / "claims.csv")
    assert [(x["claim"], x["verdict"], x["evidence"]) for x in lines] == [
        (claim.text, claim.verdict, claim.evidence) for claim in claims
    ]


def test_markdown_shows_files_that_are_there_and_no_html_of_others(report, sections):
    markdown = (report / "report.md").read_text(encoding="utf-8")
    shown = re.findall(r"(?<!\\)\]\((figures/[^)]+)\)", markdown)
    assert sorted(shown) == sorted(f"figures/{p.name}" for p in (report / "figures").iterdir())
    # What stands in code spans means itself; beyond them, only our own tags are left.
    tags = re.findall(r"<[^>]*>?", re.sub(r"(?<!\\)`[^`]*`", "", markdown))
    assert set(tags) <= {"<details>", "<summary>", "</summary>", "</details>", "</a>"} | {
        f'<a id="{section.id}">' for section in sections
    }
    # Every row of a table has as many cells as its head.
    for block in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_without_pictures_none_is_left(tmp_path, sections, about):
    page = write_report(sections, tmp_path, about=about)
    kept = tmp_path / "figures" / "mine.png"
    kept.write_bytes(b"not ours")
    assert len(list(tmp_path.glob("figures/fig6-*.png"))) == 6
    assert write_report(sections, tmp_path, about=about, pictures=False) == page
    assert list(tmp_path.glob("figures/*.png")) == [kept]
    text = page.read_text(encoding="utf-8")
    assert "data:image" not in text
    assert "6 pictures left out" in text
    assert "6 pictures left out" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "(b) error" in text  # the curves of the same figure stay


def test_a_failed_write_leaves_the_old_report(tmp_path, sections, about, monkeypatch):
    page = write_report(sections[:1], tmp_path, about=about)
    before = page.read_bytes()
    names = sorted(path.name for path in tmp_path.iterdir())

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_report(sections, tmp_path, about=replace(about, title="new"))
    monkeypatch.undo()
    assert page.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "figures") == [
        name for name in names if name != "figures"
    ]
    assert not list((tmp_path / "figures").glob(".*"))


def test_the_same_input_gives_the_same_bytes(sections, about):
    assert report_files(sections, about=about) == report_files(sections, about=about)


def test_an_empty_report_is_a_page():
    made = report_files([], about=About(title="Nothing yet"))
    assert b"<h1>Nothing yet</h1>" in made["index.html"]
    assert made["results.csv"].count(b"\n") == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([Section("fig 2", "", "", "")], "letters, digits and underscores"),
        ([Section("a", "", "", ""), Section("A", "", "", "")], "two sections"),
        ([Section("a", "", "", "", [Row("r", 1, None, verdict="maybe")])], "'maybe'"),
        ([Section("a", "", "", "", claims=[Claim("c", NEW, "")])], "'also measured'"),
        ([Section("a", "", "", "", panels=[Panel("p", pictures=[Picture(np.ones(3), "c")])])],
         r"shape \(3,\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said(bad, message):
    with pytest.raises(ValueError, match=message):
        report_files(bad, about=About())


def test_png_holds_the_pixels():
    pixels = np.array([[0.0, 0.5, 1.0], [-1.0, math.nan, 2.0]])
    read = imread(io.BytesIO(png(Picture(pixels, "c"))))
    for channel in range(3):
        expected = np.nan_to_num(np.clip(pixels, 0, 1))
        np.testing.assert_allclose(read[..., channel], expected, atol=1 / 255)
    assert (read[..., 3] == 1).all()


def test_better_by():
    def row(theirs, ours):
        return Row("r", None, Value(theirs, 0.1, 2), Value(ours, 0.1, 2))

    assert better_by(row(2.0, 0.5)) == 0.75
    assert better_by(row(1.0, 2.0)) == -1
    assert better_by(row(0.0, 1.0)) is None
    assert better_by(row(math.nan, 1.0)) is None
    assert better_by(Row("r", None, None, Value(1, 1, 1))) is None
    rows = [row(1, 0.9), row(1, 0.5), row(1, 1.5)]
    counts = count([Section("a", "", "", "", rows)])
    assert counts.better == pytest.approx(0.1)
    assert (counts.n_better, counts.n_compared) == (2, 3)
