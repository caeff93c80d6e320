"""Write the files of the report; an interrupt leaves no half-written file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from polyspan.base.files import atomic_write
from reproduction.page.about import About
from reproduction.page.chart import chart, curve_styles, standalone
from reproduction.page.csv_tables import claims_csv, curves_csv, results_csv
from reproduction.page.formats import printable
from reproduction.page.pictures import png, without_pictures
from reproduction.page.render import first_sentences, markdown, page, panel_file, picture_file
from reproduction.page.summary import check_sections
from reproduction.sections import Section

_FIGURE_FILE = re.compile(r"\w+-panel-\d+(-picture-\d+\.png|\.svg)")


def write_report(
    sections: Sequence[Section], out: Path, *, about: About, pictures: bool = True
) -> Path:
    """Write the page, the Markdown with its figures, and the CSV tables into a folder.

    Parameters
    ----------
    sections : sequence of Section
        In the order of the page.
    out : Path
        The folder, which is created if it does not exist.
    about : About
        The run that the report is about.
    pictures : bool, default=True
        Whether to show pictures. Some data may be used for research but not published. If False,
        the pictures of an earlier report in the same folder are deleted as well.

    Returns
    -------
    Path
        The page, `out/index.html`. Beside it are `report.md`, `figures/`, `results.csv`,
        `curves.csv`, `claims.csv`, and `summary.md` with the first sentences alone.
    """
    made = report_files(sections, about=about, pictures=pictures)
    out = Path(out)
    for old in (out / "figures").glob("*-panel-*"):
        if _FIGURE_FILE.fullmatch(old.name) and f"figures/{old.name}" not in made:
            old.unlink()
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(out / name, overwrite=True) as part:
            part.write_bytes(content)
    return out / "index.html"


def report_files(
    sections: Sequence[Section], *, about: About, pictures: bool = True
) -> dict[str, bytes]:
    """Return the content of every file of the report by its path; the page comes last."""
    check_sections(sections)
    if not pictures:
        sections = without_pictures(sections)
    drawings: dict[str, str] = {}
    images: dict[str, bytes] = {}
    for section in sections:
        styles = curve_styles(section.panels)
        for index, panel in enumerate(section.panels):
            if panel.curves:
                name = panel_file(section, index)
                drawings[name] = chart(panel, styles, name)
            for number, picture in enumerate(panel.pictures):
                images[picture_file(section, index, number)] = png(picture)
    texts = {name: standalone(drawing) for name, drawing in drawings.items()} | {
        "results.csv": results_csv(sections, about),
        "curves.csv": curves_csv(sections),
        "claims.csv": claims_csv(sections),
        "summary.md": first_sentences(sections),
        "report.md": markdown(sections, about),
        "index.html": page(sections, about, drawings),
    }
    return images | {name: printable(text).encode() for name, text in texts.items()}
