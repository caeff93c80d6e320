"""Fixtures and settings that all tests share."""

import os
from importlib.util import find_spec

# Read by SciPy when it is first imported; without it scikit-learn skips its array API checks.
os.environ["SCIPY_ARRAY_API"] = "1"

import array_api_strict
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from support import Accelerator, can_run, require_torch

# Fits take milliseconds to seconds on a busy machine: no deadline, and nothing depends on time.
settings.register_profile(
    "polyspan",
    deadline=None,
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("polyspan")

# scikit-learn has callbacks since 1.9.
collect_ignore_glob = [] if find_spec("sklearn.callback") else ["*/test_callbacks.py"]


@pytest.fixture(params=["numpy", "strict", "torch"])
def xp(request):
    """Array namespaces that the solver functions must work with."""
    if request.param == "torch":
        return require_torch()
    return {"numpy": np, "strict": array_api_strict}[request.param]


@pytest.fixture
def accelerator():
    """Return a namespace that behaves like that of a GPU."""
    return Accelerator()


@pytest.fixture(params=["torch", "strict", "accelerator"])
def place(request, accelerator):
    """Return where arrays are made: a namespace that is not NumPy, or a device like a GPU."""
    if request.param == "torch":
        return require_torch()
    return {"strict": array_api_strict, "accelerator": accelerator}[request.param]


# Files that take longest: they start first, so that no process waits for them at the end.
LONGEST = (
    "data/test_dask.py", "cli/test_shell.py", "ecosystem/test_estimator_checks.py",
    "reproduction/test_smoke.py", "site/test_pages.py", "reproduction/test_runner.py",
    "cli/test_console.py", "ecosystem/test_ecosystem.py", "tables/test_imputer_inputs.py",
    "examples/test_demo.py", "reproduction/test_in_browser.py", "linear/test_unequal_dims.py",
    "cli/test_jpeg.py", "mixture/test_arrays.py", "mixture/test_dimensions.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Leave out array API checks that cannot run here, and put the longest files first."""
    items[:] = [item for item in items if is_check_to_run(item)]
    rank = {name: k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(file_of(item), len(rank)))


def is_check_to_run(item):
    """Tell whether a test is none of scikit-learn's checks, or one that can run here."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    checks = {"check", "estimator"} <= given.keys()
    return not checks or can_run(given["check"], given["estimator"])


def file_of(item):
    """Return the folder and name of the file of a test."""
    return "/".join(item.path.parts[-2:])
