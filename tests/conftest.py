"""Fixtures and settings that all tests share."""

import os

# Read by SciPy when it is first imported; without it scikit-learn skips its array API checks.
os.environ["SCIPY_ARRAY_API"] = "1"

import array_api_strict
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Fits take milliseconds to seconds on a busy machine: no deadline, and nothing depends on time.
settings.register_profile(
    "polyspan",
    deadline=None,
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("polyspan")


@pytest.fixture(params=[np, array_api_strict], ids=["numpy", "strict"])
def xp(request):
    """Array namespaces that the solver functions must work with."""
    return request.param
