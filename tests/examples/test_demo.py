"""The demo runs, says what it should and leaves a figure."""

import importlib.util
from pathlib import Path

import matplotlib.image
import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture
def demo():
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["demo"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["demo"]


def test_demo(demo, tmp_path, capsys):
    output = tmp_path / "nested" / "demo.png"
    demo.main(["--draws", "1", "--output", str(output)])
    shown = capsys.readouterr().out
    for name in (*demo.METHODS, "PCA, s=10", "polyspan MiCUSaL"):
        assert name in shown
    picture = matplotlib.image.imread(output)
    assert picture.shape[0] > 200
    assert picture.std() > 0.05


def test_the_bound_is_a_bound(demo):
    found = demo.measure_synthetic(1)
    printed, ours, bound = (found[name][0].distance for name in demo.METHODS)
    assert bound < ours < printed


def test_data_with_holes(tmp_path, capsys):
    path = DEMO.with_name("data_with_holes.py")
    spec = importlib.util.spec_from_file_location("data_with_holes", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    output = tmp_path / "holes.png"
    module.main(["--samples", "150", "--output", str(output)])
    shown = capsys.readouterr().out
    for name in ("KNNImputer", "IterativeImputer", "RobustMiCUSaL"):
        assert name in shown
    assert matplotlib.image.imread(output).std() > 0.05
