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


def run_example(name, arguments):
    spec = importlib.util.spec_from_file_location(name, DEMO.with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(arguments)


@pytest.mark.parametrize(
    ("name", "samples", "words"),
    [
        ("data_with_holes", "150", ("KNNImputer", "IterativeImputer", "RobustMiCUSaL")),
        ("kernel_denoising", "150", ("PCA", "kernel PCA", "MC-KUSaL")),
        ("jobs", "150", ("denoise_image", "inpaint_image", "SubspaceImputer")),
    ],
)
def test_example(name, samples, words, tmp_path, capsys):
    output = tmp_path / "picture.png"
    run_example(name, ["--samples", samples, "--output", str(output)])
    shown = capsys.readouterr().out
    assert all(word in shown for word in words)
    assert matplotlib.image.imread(output).std() > 0.05
