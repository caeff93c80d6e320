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


def require_torch():
    """Return the namespace of PyTorch; where it is missing skip, but fail in CI."""
    try:
        import array_api_compat.torch as torch
    except ImportError as error:
        if os.environ.get("CI") or os.environ.get("POLYSPAN_REQUIRE_TORCH"):
            pytest.fail(f"PyTorch is missing, which is required here ({error}): run make torch")
        pytest.skip("PyTorch is not installed: run make torch")
    return torch


class Accelerator:
    """array-api-strict whose new arrays lie on a device that is not the CPU.

    It refuses to mix devices and to hand its arrays to NumPy, as a GPU does: what runs here has
    no hidden transfer. `asarray` is all that tests need of it.
    """

    device = array_api_strict.Device("device1")

    def asarray(self, a, **options):
        return array_api_strict.asarray(a, device=self.device, **options)


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
