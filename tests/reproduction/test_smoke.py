"""Everything once at scale "smoke": the sections, the page, the commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser import check_page
from typer.testing import CliRunner

from reproduction.command import app
from reproduction.experiments.source import Source
from reproduction.registry import all_experiments
from reproduction.reproduce import reproduce
from reproduction.run.store import open_store, read_records

ROOT = Path(__file__).parents[2]


def command(*words):
    """Run the command in a process of its own."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(
        [sys.executable, "-m", "reproduction", *words],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("smoke") / "report"
    done = command("--scale", "smoke", "--jobs", "2", "--out", str(out), "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out


def test_every_trial_ran(folder):
    records = read_records(folder / "trials.sqlite").values()
    assert {one.experiment for one in records} == {e.id for e in all_experiments()}
    assert [one for one in records if one.error] == []


def test_the_page_shows_every_table_and_figure(folder, tmp_path):
    seen = check_page(folder / "index.html", tmp_path)
    text = (folder / "index.html").read_text(encoding="utf-8")
    for experiment in all_experiments():
        assert f'id="{experiment.id}"' in text
    assert seen["sections"] == len(all_experiments())
    assert seen["charts"] == 18  # 2 + 2 of Fig. 2, 6, 2, 3 and 3 of Fig. 4 to 7
    assert seen["rows"] >= 100
    assert (folder / "report.md").read_text(encoding="utf-8").count("## ") >= len(all_experiments())


def test_a_second_run_runs_nothing_and_says_the_same(folder):
    before = (folder / "trials.sqlite").read_bytes()
    first = reproduce((), "smoke", folder, source=Source(), run=False)
    again = reproduce((), "smoke", folder, source=Source())
    assert (folder / "trials.sqlite").read_bytes() == before
    for one, other in zip(first, again, strict=True):
        assert [row.name for row in one.rows] == [row.name for row in other.rows]
        # As text, since NaN (the error of one trial) is not equal to itself.
        assert [str(row.measured) for row in one.rows] == [str(row.measured) for row in other.rows]
        assert one.n_failed == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["table9"], 1, "table1"),
        (["--scale", "huge"], 2, "unknown scale"),
        (["--data", "nowhere"], 3, "not a folder"),
        (["--no-run", "--out", "nothing"], 3, "python -m reproduction"),
    ],
)
def test_bad_arguments(words, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_and_a_damaged_one_are_refused(tmp_path):
    words = ["fig3", "--scale", "smoke", "--out", str(tmp_path)]
    with open_store(tmp_path / "trials.sqlite"):
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 5
    assert f"another run writes to {tmp_path}" in done.stderr
    (tmp_path / "trials.sqlite").write_text("no database " * 100, encoding="utf-8")
    for more in ([], ["--no-run"]):
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 3
        assert "move it away" in done.stderr


def test_the_page_can_be_written_again_without_pictures(folder):
    words = ["--no-run", "--scale", "smoke", "--out", str(folder), "--no-pictures"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    assert "smoke only checks that everything runs" in done.stdout
    assert "data:image/png" not in (folder / "index.html").read_text(encoding="utf-8")
