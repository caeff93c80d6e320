"""What tests of several folders share."""

import os
from importlib import import_module
from importlib.util import find_spec

import array_api_strict
import numpy as np
import pandas as pd
import pytest

from polyspan import MCKUSaL, MiCUSaL, RobustMCKUSaL, SubspaceClustering, SubspaceMixture
from polyspan.baselines import KernelKMeans
from polyspan.linear.linear_union import LinearUnion


def require_torch():
    """Return the namespace of PyTorch; where it is missing skip, but fail if it is required."""
    try:
        import array_api_compat.torch as torch
    except ImportError as error:
        if os.environ.get("POLYSPAN_REQUIRE_TORCH"):
            pytest.fail(f"PyTorch is missing, which is required here ({error}): run make torch")
        pytest.skip("PyTorch is not installed: run make torch")
    return torch


class Accelerator:
    """array-api-strict whose new arrays are on a device that is not the CPU.

    It refuses to mix devices and to hand its arrays to NumPy, as a GPU does: what runs here has
    no hidden transfer. `asarray` is all that tests need of it.
    """

    device = array_api_strict.Device("device1")

    def asarray(self, a, **options):
        return array_api_strict.asarray(a, device=self.device, **options)


#: The check that a weight of 2 equals the sample twice. It cannot give a start, and draws of a
#: start depend on the number of samples. From one start it holds, which has tests of its own. The
#: classes and reasons stand in docs/guide/pipelines.md too.
EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
START_DEPENDS_ON_N = "the default start is drawn in the span of the samples: it depends on N"


def expected_failures(estimator):
    """Return the checks of scikit-learn that an estimator may fail, with the reason."""
    if isinstance(estimator, MCKUSaL | RobustMCKUSaL):
        if getattr(estimator, "low_rank", None) is not None:
            return {EQUIVALENCE: "another map: landmarks drawn depend on the number of samples"}
        if estimator.init == "gkiop":
            return {EQUIVALENCE: "another start: random seeds depend on the number of samples"}
        if estimator.residual == "loo":
            return {EQUIVALENCE: "another start: neighbours depend on the number of samples"}
        # The start happens to be the same, and all but one distance agree.
        return {EQUIVALENCE: "a distance of 0 differs by the root of rounding errors"}
    if isinstance(estimator, SubspaceMixture):
        return {EQUIVALENCE: "another start: the samples drawn depend on their number"}
    if isinstance(estimator, KernelKMeans):
        return {EQUIVALENCE: "another start: k-means++ draws depend on the number of samples"}
    if getattr(estimator, "solver", None) == "grouse":
        names = ("check_sample_weights_list", "check_sample_weights_not_overwritten", EQUIVALENCE)
        return dict.fromkeys(names, "solver='grouse' takes no weights")
    linear = isinstance(estimator, LinearUnion) and hasattr(estimator, "trim")
    return {EQUIVALENCE: START_DEPENDS_ON_N} if linear else {}


#: Classes whose defaults are checked with PyTorch too, one for each way to learn. The others share
#: their solvers; array-api-strict, which allows less, judges them all.
WITH_TORCH = (MiCUSaL, MCKUSaL, SubspaceMixture, SubspaceClustering)


def is_default_with_torch(estimator):
    """Tell whether an estimator is one of those with its default parameters."""
    if type(estimator) not in WITH_TORCH:
        return False
    given = {**estimator.get_params(), "random_state": None}
    return given == type(estimator)().get_params()


def can_run(check, estimator):
    """Tell whether a check of scikit-learn is for this estimator, and finds its namespace here.

    Checks of PyTorch on the processor count: without PyTorch they skip themselves and say so, and
    CI runs what was skipped once it is there.
    """
    options = getattr(check, "keywords", {})
    if "torch" in str(options) and not is_default_with_torch(estimator):
        return False
    package = (options.get("array_namespace") or "numpy").split(".")[0]
    device = str(options.get("device_name") or options.get("device") or "cpu")
    if package == "torch" and device == "cpu":
        return True
    if find_spec(package) is None:
        return False
    if package != "torch":
        return True
    torch = import_module("torch")
    if device == "mps":  # without the fallback scikit-learn runs nothing there
        return os.environ.get("PYTORCH_ENABLE_MPS_FALLBACK") == "1" and torch.mps.is_available()
    return getattr(torch, device).is_available()


def link_to(target, link):
    """Make a symbolic link, or skip the test."""
    try:
        link.symlink_to(target)
    except (OSError, NotImplementedError) as error:  # Windows asks for a right that few users have
        pytest.skip(f"no symbolic links here: {error}")


def read_csv(path):
    """Read a table with every number as the nearest double, which not every pandas does itself."""
    return pd.read_csv(path, float_precision="round_trip")


def made_picture(height=64, width=64):
    """Return a picture between 0 and 1: shading, a disc, a slanted edge and some stripes."""
    i, j = np.indices((height, width)) / min(height, width)
    picture = 0.25 + 0.3 * j + 0.1 * np.sin(3 * i)
    picture[(i - 0.4) ** 2 + (j - 0.35) ** 2 < 0.06] = 0.85
    picture[i + 0.4 * j > 1.05] -= 0.2
    stripes = (i < 0.3) & (j > 0.7)
    picture[stripes] += 0.1 * np.sin(25 * (i + j)[stripes])
    return picture


def noisy_picture(sigma=0.1, shape=(64, 64), seed=0):
    """Return that picture, and one with white noise."""
    clean = made_picture(*shape)
    return clean, clean + sigma * np.random.default_rng(seed).standard_normal(shape)


def psnr(a, b):
    """Return the peak signal-to-noise ratio of pictures between 0 and 1, in decibels."""
    return -10 * np.log10(np.mean((np.asarray(a) - np.asarray(b)) ** 2))
