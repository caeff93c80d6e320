"""What is said where a package of an extra is missing."""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from polyspan import MiCUSaL, compare, plotting
from polyspan.base.optional import EXTRAS, import_optional
from polyspan.datasets import make_union_of_subspaces

DATA = make_union_of_subspaces((20, 20), n_features=6, subspace_dim=2, spread=0.5, random_state=0)
MODEL = MiCUSaL(2, 2, random_state=0).fit(DATA.X)
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_extras_bring_the_packages():
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for module, extra in EXTRAS.items():
        package = "pillow" if module == "PIL" else module
        assert any(line.startswith(f"{package}>") for line in extras[extra]), module


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plotting.plot_residuals(MODEL, DATA.X),
        lambda: plotting.plot_subspaces(MODEL),
        lambda: plotting.plot_samples(MODEL, DATA.X),
        lambda: plotting.plot_basis_images(MODEL, (2, 3)),
        lambda: compare(DATA.X, {"model": MODEL}).plot(),
    ],
)
def test_figures_say_what_to_install(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'needs matplotlib: pip install "polyspan\[plot\]"'):
        draw()


def test_a_table_of_results_says_what_to_install(monkeypatch):
    result = compare(DATA.X, {"model": MODEL})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'to_pandas needs pandas: pip install "polyspan\[cli\]"'):
        result.to_pandas()


def test_what_else_can_be_done_and_packages_of_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"^a frame needs polars: pip install polars, or none$"):
        import_optional("polars", "a frame", "or none")
    assert import_optional("numpy", "everything") is np


def test_a_package_that_lacks_another_says_so_itself(monkeypatch, tmp_path):
    (tmp_path / "half_there.py").write_text("import missing_part", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'missing_part'$"):
        import_optional("half_there", "a figure")
