"""Draws the pictures of "How it works" before the site is built; nothing drawn is committed.

A picture is drawn when its file is missing or older than the modules that draw.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import drawings_fit
import drawings_kernel
import drawings_missing
import drawings_mixture
import drawings_model
import drawings_speed
import matplotlib as mpl
from drawings_style import SETTINGS
from matplotlib.figure import Figure

#: Every picture by its file name, without the suffix.
DRAWINGS: dict[str, Callable[[], Figure]] = {
    **drawings_model.DRAWINGS,
    **drawings_fit.DRAWINGS,
    **drawings_missing.DRAWINGS,
    **drawings_kernel.DRAWINGS,
    **drawings_mixture.DRAWINGS,
    **drawings_speed.DRAWINGS,
}


def draw(folder: Path) -> list[Path]:
    """Draw what is missing or out of date, and return the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    newest = max(path.stat().st_mtime for path in Path(__file__).parent.glob("drawings*.py"))
    written = []
    for name, make in DRAWINGS.items():
        path = folder / f"{name}.svg"
        if path.exists() and path.stat().st_mtime >= newest:
            continue
        with mpl.rc_context(SETTINGS):
            make().savefig(path, format="svg", metadata={"Date": None})
        written.append(path)
    return written


def _before_build(app: Any) -> None:
    draw(Path(app.srcdir) / "images" / "drawn")


def setup(app: Any) -> dict[str, bool]:
    """Draw before Sphinx reads the pages."""
    app.connect("builder-inited", _before_build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
