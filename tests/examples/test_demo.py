"""The examples run, print their results and write a figure."""

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
    ("name", "size", "words"),
    [
        ("data_with_holes", "--samples=150", ("KNNImputer", "IterativeImputer", "RobustMiCUSaL")),
        ("kernel_denoising", "--samples=150", ("PCA", "kernel PCA", "MC-KUSaL")),
        ("denoise_photo", "--side=48", ("levels estimated", '"fast"', '"balanced"', '"best"')),
        ("how_denoising_works", "--side=64", ("with noise", "denoised")),
        ("how_sure", "--side=48", ("all pixels", "the surest tenth")),
        ("inpaint_photo", "--side=48", ("missing: 5", '"fast"', '"best"')),
        ("fill_table", "--samples=120", ("KNNImputer", "IterativeImputer", "SubspaceImputer")),
    ],
)
def test_example(name, size, words, tmp_path, capsys):
    output = tmp_path / "picture.png"
    run_example(name, [size, "--output", str(output)])
    shown = capsys.readouterr().out
    assert all(word in shown for word in words)
    assert matplotlib.image.imread(output).std() > 0.05
    assert output.stat().st_size < 250_000


def test_looking(tmp_path, capsys):
    run_example("looking", ["--samples=200", "--output", str(tmp_path)])
    assert "200 samples given" in capsys.readouterr().out
    names = {"subspaces", "residuals", "samples", "basis-images", "loadings"}
    assert {path.stem for path in tmp_path.glob("*.png")} == names
    for path in tmp_path.glob("*.png"):
        assert matplotlib.image.imread(path).std() > 0.05
        assert path.stat().st_size < 150_000


def test_examples_do_without_what_they_compare_with(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("denoise_photo", "inpaint_photo"):
        run_example(name, ["--side=32", "--output", str(tmp_path / f"{name}.png")])
        shown = capsys.readouterr().out
        assert "polyspan" in shown
        assert "BM3D" not in shown
        assert "biharmonic" not in shown
