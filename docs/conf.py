"""How Sphinx builds the site; `make docs` runs it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext")]
# Examples and benchmarks of the docs run on one thread, as everything that is measured here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import polyspan  # noqa: E402 - after the number of threads is set

project = "polyspan"
author = "The polyspan developers"
copyright = "the polyspan developers"  # noqa: A001 - the name that Sphinx reads
version = release = polyspan.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "docstrings",
    "drawings",
    "mathml",
    "public_names",
]
default_role = "code"
exclude_patterns = ["_build", "_ext", "**/GALLERY_HEADER.rst", "reproduction/summary.md"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block", "attrs_inline"]
myst_heading_anchors = 3
nitpicky = False

# The reference: one page for every public name, its methods on the same page.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The gallery. What it makes lies beside the sources, and git ignores it.
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": [str(ROOT / "examples" / name) for name in ("tutorials", "gallery")],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": r"plot_",
    "doc_module": ("polyspan",),
    "backreferences_dir": "api/backreferences",
    "reference_url": {"polyspan": None},
    "show_memory": False,
    "write_computation_times": False,  # a page that loads scripts from elsewhere
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r".*\.rst",
}

html_theme = "pydata_sphinx_theme"
html_title = f"polyspan {version}"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "polyspan"},
    "github_url": "https://github.com/polyspan/polyspan",
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": True,
}
html_sidebars = {"index": []}
# Switching between versions: a list of versions beside the site turns it on, `DOCS_VERSIONS` names
# that file (docs/contributing says how).
if versions := os.environ.get("DOCS_VERSIONS"):
    html_theme_options["switcher"] = {"json_url": versions, "version_match": version}
    html_theme_options["navbar_start"] = ["navbar-logo", "version-switcher"]


def _anchors(app: Any, name: str, source: list[str]) -> None:
    """Turn anchors of HTML, which other viewers of Markdown follow too, into those of MyST."""
    source[0] = re.sub(r'<a id="([\w-]+)"></a>', r"(\1)=", source[0])


def setup(app: Any) -> None:
    """Connect what Markdown pages need."""
    app.connect("source-read", _anchors)
