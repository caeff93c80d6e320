"""The examples run, print their results and write a figure."""

import contextlib
import importlib.util
import io
import re
import socket
from pathlib import Path

import matplotlib.image
import pytest

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Run the demo once, on less data and without a network; return its lines and its figure."""
    output = tmp_path_factory.mktemp("demo") / "nested" / "demo.png"
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as shown:
        patch.syspath_prepend(DEMO.parent)
        patch.setattr(socket.socket, "connect", None, raising=False)
        run_example("demo", ["--quick", "--output", str(output)])
    return shown.getvalue().splitlines(), output


def result_of(lines, title):
    """Return the numbers of each method in the line of results of a job."""
    job = lines[next(k for k, line in enumerate(lines) if line.startswith(title)) :]
    line = next(line for line in job if "   polyspan " in line)
    return {
        re.match(r"[A-Za-z -]*[A-Za-z]", part)[0]: numbers_in(part)
        for part in line.strip().split("   ")
    }


def numbers_in(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def test_the_idea_is_shown(demo):
    rows = {
        line[2:42].strip(): numbers_in(line[42:])
        for line in demo[0]
        if line.startswith("  ") and line.endswith(tuple("0123456789")) and "%" in line[42:]
    }
    ours, start = rows["polyspan"], rows["K-subspaces, started like polyspan"]
    assert ours[0] < 5 < 20 < rows["the paper's algorithm, 8 random starts"][0]
    assert ours[0] < 5 < 20 < rows["K-subspaces, 8 random starts"][0]
    assert len(rows) == 4
    assert all(ours[1] < row[1] for name, row in rows.items() if name != "polyspan")
    assert start[0] < 5  # the start makes the labels right, as is printed


@pytest.mark.parametrize(
    ("title", "others"),
    [
        ("Cluster", {"k-means", "spectral clustering"}),
        ("Clean", {"with noise", "non-local means"}),
        ("Fill", {"KNNImputer", "IterativeImputer"}),
    ],
)
def test_polyspan_is_as_good_as_others_in_each_job(demo, title, others):
    result = result_of(demo[0], title)
    ours = result.pop("polyspan")
    assert set(result) == others
    for values in result.values():
        assert all(a <= b for a, b in zip(ours, values, strict=True))
        assert ours != values


def test_any_terminal_can_show_it(demo):
    lines, figure = demo
    lines = [line.replace(str(figure), "build/demo.png") for line in lines]
    assert max(len(line) for line in lines) <= 80
    assert all(line.isascii() and line.isprintable() for line in lines)
    for jargon in ("d_avg", "Algorithm 1", "lambda", "PSNR", "RMSE", "F1"):
        assert jargon not in "".join(lines)


def test_what_it_names_is_there(demo):
    named = re.findall(r"[\w/]+\.md", "\n".join(demo[0]))
    assert len(named) >= 5
    places = [ROOT, ROOT / "docs" / "guide"]
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_the_demo_draws_its_figure(demo):
    picture = matplotlib.image.imread(demo[1])
    assert picture.shape[0] > 400
    assert picture.std() > 0.05


def test_the_demo_shows_what_users_may_import():
    for path in DEMO.parent.glob("demo*.py"):
        assert re.findall(r"polyspan[\w.]*\._\w+", path.read_text(encoding="utf-8")) == []


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
    assert "5 affine subspaces of 64 features" in capsys.readouterr().out
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
