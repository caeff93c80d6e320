"""What tests of pictures share."""

import array_api_strict
import numpy as np
import pytest

from support import require_torch


@pytest.fixture(params=["numpy", "strict", "torch", "accelerator"])
def place(request, accelerator):
    """Return where arrays are made: a namespace, or a device that is not the CPU."""
    if request.param == "torch":
        return require_torch()
    return {"numpy": np, "strict": array_api_strict, "accelerator": accelerator}[request.param]
