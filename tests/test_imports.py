"""Modules that are imported only when they are used."""

import subprocess
import sys
from types import ModuleType

import pytest

import polyspan

CODE = """
import sys
import numpy as np
import polyspan, polyspan.baselines, polyspan.cli.inpaint
X = np.random.RandomState(0).standard_normal((40, 6))
polyspan.MiCUSaL(2, 2, random_state=0).fit(X).predict(X)
X[::7, 1] = np.nan
polyspan.RobustMiCUSaL(2, 2, random_state=0).fit(X)
assert "numba" not in sys.modules, "before a compiled solver"
polyspan.baselines.GROUSE(2, n_sweeps=1, random_state=0).fit(X)
assert "numba" in sys.modules, "by a compiled solver"
"""


def test_numba_is_imported_only_by_what_it_compiles():
    # In another process: here other tests have imported it.
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


LATER = """
import sys
import polyspan
assert polyspan.__version__
heavy = {"numpy", "scipy", "sklearn", "pandas"} & set(sys.modules)
assert not heavy, f"imported before they are used: {heavy}"
assert polyspan.MiCUSaL is polyspan.MiCUSaL
early = [name for name in NAMES if f"polyspan.{name}" in sys.modules]
assert not early, f"imported before they are used: {early}"
assert polyspan.model_selection.choose_size.__module__ == "polyspan.model_selection.sizes"
assert polyspan.plotting.plot_comparison
assert polyspan.baselines.KSubspaces
assert polyspan.batch.fit_micusal
assert polyspan.Comparison.__name__ == "Comparison"
assert polyspan.compare.__name__ == "compare", "the function, not a module of that name"
assert "matplotlib" not in sys.modules, "before something is drawn"
"""


def test_modules_are_reachable_and_imported_when_they_are_asked_for():
    names = ["baselines", "clustering", "images", "kernel", "mixture", "model_selection"]
    names += ["plotting", "storage", "cli"]
    code = LATER.replace("NAMES", repr(names))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there():
    for name in polyspan.__all__:
        assert getattr(polyspan, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'consensus'"):
        polyspan.consensus  # noqa: B018


def test_tab_completion_shows_public_names_alone():
    assert dir(polyspan) == sorted([*polyspan.__all__, "__version__"])
    modules = [getattr(polyspan, name) for name in polyspan.__all__]
    modules = [module for module in modules if isinstance(module, ModuleType)]
    assert len(modules) == 10
    for module in modules:
        assert dir(module) == sorted(module.__all__), module.__name__


STARS = "from polyspan import *; assert MiCUSaL and images and compare.__name__ == 'compare'"


def test_all_names_can_be_imported_at_once():
    done = subprocess.run([sys.executable, "-c", STARS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
