"""The page as text: well formed, complete, and safe for any content of the sections."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from reproduction.page import About, report_files
from reproduction.page.findings import findings
from reproduction.sections import Curve, Panel, Row, Section, Value

VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Balanced tags, ids, links, addresses and the text of cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.sources = [], [], [], [], []
        self.cells, self.scripts = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        assert not [name for name in found if name.startswith("on")], found
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if "href" in found:
            self.links.append(found["href"])
        if "src" in found:
            self.sources.append(found["src"])
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data
        if "script" in self.open:
            self.scripts.append(data)


@pytest.fixture(scope="module")
def text(report):
    return (report / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_ids_are_unique_and_links_lead_somewhere(page, report):
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        elif not link.startswith("data:"):
            assert (report / link).is_file()
    for tag, attributes in page.tags:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name, page.ids[0]) in page.ids, tag


def test_nothing_comes_from_elsewhere(page, text):
    assert page.sources
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    # A drawing may name a part of itself, and nothing else.
    assert not re.search(r"url\((?!#)|@import|https?://", text)
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert "default-src 'none'" in policy


def test_text_never_becomes_markup(page, text, sections):
    # Pictures are the only images, and the page's own script the only one.
    n_pictures = sum(len(panel.pictures) for section in sections for panel in section.panels)
    assert len(page.sources) == n_pictures
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert 'Error("ran")' not in "".join(page.scripts)
    # Once in each place where the section says it, all of it, escaped once.
    assert text.count("&lt;script&gt;throw new Error(") > 10
    assert "&amp;lt;" not in text


def test_only_the_pages_own_script_may_run(page):
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert f"script-src 'sha256-{digest}'" in policy


def test_what_the_run_says_of_itself_is_escaped():
    evil = "`</code><script>x</script>|\n\x00"
    about = About(evil, evil, evil, evil, evil, {evil: evil}, evil, [evil])
    made = report_files([Section("a", "", "", "")], about=about)
    page = Page(made["index.html"].decode())
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert b"<script" not in made["report.md"]
    assert not any(b"\0" in content for content in made.values())


def test_the_page_says_what_it_is_and_how_it_was_run(page, text, about, sections):
    assert ("html", {"lang": "en"}) in page.tags
    for fact in (about.command, about.commit, about.date, about.machine, "numpy 2.4.0"):
        assert fact in text
    for section in sections:
        assert section.id in page.ids
        assert f"python -m reproduction {section.id} --scale smoke" in text
    assert "stand-in data" in text
    assert "SVD did not converge" in text
    assert "No trial has run at this scale." in text


def test_light_dark_and_print(text):
    def defined(before):
        blocks = re.findall(before + r":root \{([^}]*)\}", text)
        return set(re.findall(r"(--[\w-]+):", "".join(blocks)))

    light = defined("\n")
    colours = {f"--c{k}" for k in range(8)}  # of curves: as many as the figures have
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) | colours == light
    assert defined(r"@media \(prefers-color-scheme: dark\) \{\s*") == light
    assert defined(r"@media print \{\s*") == light


@pytest.mark.parametrize(
    "cell",
    [
        "0.1331",
        "4 to 5",
        "0.1331 ± 0.0021 (20)",
        "0.1268 (1)",
        "1.2e-06 ± 1e-09 (3)",
        "0.068 ± 0.004",
    ],
)
def test_numbers_are_in_cells(page, cell):
    assert cell in page.cells


def test_summary_counts(page):
    first = page.cells.index("Table I Distance to the true subspaces")
    # Numbers of the paper, its claims, also measured, ours.
    counts = [*"311", *"111", "1", "better by 11 %"]
    assert page.cells[first + 1 : first + 9] == counts
    total = page.cells.index("All")
    counts = [*"321", *"211", "2", "better by 38 %"]
    assert page.cells[total + 1 : total + 9] == counts


def test_numbers_that_the_paper_does_not_print_stand_apart(text, report):
    table = text[text.index('id="table1"') : text.index('id="fig2"')]
    of_paper, also = table.split("<h3>Also measured</h3>")
    assert "number of subspaces" in of_paper
    assert "seconds per fit" not in of_paper
    assert "seconds per fit" in also.split("<h3>")[0]
    tiles = text[text.index('class="tiles"') : text.index('class="summary"')]
    assert '<li><b class="holds">3</b> holds</li>' in tiles
    assert '<p class="also">Also measured, and counted in neither: 2 numbers' in tiles
    markdown = (report / "report.md").read_text(encoding="utf-8").split("## Fig. 2")[0]
    assert markdown.index("| number of subspaces | 4 to 5 |") < markdown.index("| Also measured")
    assert markdown.index("| Also measured") < markdown.index("| seconds per fit |")


def test_results_come_first_and_the_run_last(text, report, about, sections):
    sentence = findings(sections)[0]
    for whole in (text[text.index("<main>") :], (report / "report.md").read_text(encoding="utf-8")):
        assert whole.index(sentence) < whole.index("Summary") < whole.rindex("How this was run")
        # Nothing of the run is said before its own part.
        before = whole[: whole.rindex("How this was run")]
        assert about.commit not in before
        assert about.machine not in before
    start = (report / "report.md").read_text(encoding="utf-8").split("## Summary")[0]
    assert (report / "summary.md").read_text(encoding="utf-8").strip() in start


def test_images_and_drawings_have_names(page):
    for tag, attributes in page.tags:
        if tag == "img":
            assert attributes["alt"]
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]


def test_a_full_report_is_small():
    x = np.arange(20)
    curves = [Curve(f"method {k}", x, x * k, x / 9, k == 4) for k in range(5)]
    panels = [Panel(f"({k})", "x", "y", curves) for k in range(3)]
    rows = [Row(f"row {k}", 0.5, Value(0.5, 0.1, 9), note="why it is so") for k in range(20)]
    full = [
        Section(f"fig{k}", "Title", f"Fig. {k}", "Text.", rows, panels=panels) for k in range(11)
    ]
    made = report_files(full, about=About())
    assert len(made["index.html"]) < 1_500_000
    ElementTree.fromstring(made["figures/fig0-panel-1.svg"])
