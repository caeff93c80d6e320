"""scikit-learn's checks of every public estimator, with its default parameters."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

import polyspan
from polyspan import baselines
from support import EQUIVALENCE, WITH_TORCH, expected_failures

PUBLIC = [
    found
    for module in (polyspan, baselines)
    for found in (getattr(module, name) for name in module.__all__)
    if isinstance(found, type) and issubclass(found, BaseEstimator)
]
# scikit-learn before 1.9 fits twice in `check_array_api_input` without setting the random state.
SEED = {} if find_spec("sklearn.callback") else {"random_state": 0}
DEFAULTS = [
    kind().set_params(**{name: SEED[name] for name in SEED if name in kind().get_params()})
    for kind in PUBLIC
]


@pytest.mark.filterwarnings("ignore")  # of data that are drawn without any structure
@parametrize_with_checks(DEFAULTS, expected_failed_checks=expected_failures)
def test_every_estimator_passes(estimator, check):
    check(estimator)  # fails by raising


WITHOUT_TORCH = """
import sys, warnings
from unittest import SkipTest
class NoTorch:  # as where it is not installed
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, NoTorch())
warnings.simplefilter("ignore")
import polyspan
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
weights, *names = sys.argv[1:]
passed = check_estimator(polyspan.MiCUSaL(), expected_failed_checks={weights: "another start"})
# Only checks of arrays look for PyTorch; of the other classes these are enough.
for name in names:
    for estimator, check in estimator_checks_generator(getattr(polyspan, name)()):
        if "array_api" in check.func.__name__:
            try:
                check(estimator)
            except SkipTest as skipped:
                assert "torch" not in str(check) or "torch" in str(skipped), skipped
print(len(passed))
"""


def test_without_torch():
    names = [kind.__name__ for kind in WITH_TORCH]
    command = [sys.executable, "-c", WITHOUT_TORCH, EQUIVALENCE, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40


def test_the_page_lists_what_may_fail():
    page = Path(__file__).parents[2] / "docs" / "guide" / "pipelines.md"
    text = page.read_text(encoding="utf-8")
    assert f"`{EQUIVALENCE}`" in text
    table = text.split(f"`{EQUIVALENCE}`")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \| (.+) \|$", table, flags=re.MULTILINE)
    listed = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    weighted = [model for model in DEFAULTS if has_fit_parameter(model, "sample_weight")]
    expected = {type(model).__name__: expected_failures(model) for model in weighted}
    assert listed == {name for name, failures in expected.items() if failures}
    assert {check for failures in expected.values() for check in failures} == {EQUIVALENCE}
