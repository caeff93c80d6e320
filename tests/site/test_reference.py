"""What the site promises: every public name has a page, and every example is told."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))


@pytest.fixture
def names(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    yield importlib.import_module("public_names")
    sys.modules.pop("public_names", None)


def test_every_public_name_has_a_page(names):
    pages = {name for module in names.MODULES for name in names.public_names(module)}
    assert {"polyspan.MiCUSaL", "polyspan.images.denoise_image", "polyspan.export_model"} <= pages
    listed = re.findall(
        r"public-names:: (\S+)", (ROOT / "docs/api/index.md").read_text(encoding="utf-8")
    )
    assert listed == list(names.MODULES)


def test_pages_show_methods_of_parents_but_not_those_of_scikit_learn(names):
    from polyspan import MiCUSaL

    members = set(names.own_members(MiCUSaL))
    assert {"fit", "predict", "partial_fit", "summary", "subspace_dims_"} <= members
    assert not {"get_params", "set_fit_request", "set_output"} & members


def test_examples_have_a_title_and_a_figure():
    assert len(EXAMPLES) > 20
    texts = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES}
    untold = [
        name
        for name, text in texts.items()
        if not re.match(r'"""\n(.+)\n=+\n', text)
        or "plt.show()" not in text
        or text.count("# %%") < 2
    ]
    assert untold == []
