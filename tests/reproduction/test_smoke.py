"""Everything once at scale "smoke": the sections, the page, the commands."""

import json
import os
import subprocess
import sys

import pytest
from browser import check_page

from reproduction.experiments.source import Source
from reproduction.registry import all_experiments
from reproduction.reproduce import reproduce


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("smoke") / "report"
    command = [sys.executable, "-m", "reproduction", "--scale", "smoke"]
    options = ["--jobs", "2", "--out", str(out), "--quiet"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_trial_ran(folder):
    lines = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    assert {line["experiment"] for line in lines} == {e.id for e in all_experiments()}
    assert [line for line in lines if line["error"]] == []


def test_the_page_shows_every_table_and_figure(folder, tmp_path):
    seen = check_page(folder / "index.html", tmp_path)
    text = (folder / "index.html").read_text()
    for experiment in all_experiments():
        assert f'id="{experiment.id}"' in text
    assert seen["sections"] == len(all_experiments())
    assert seen["charts"] == 18  # 2 + 2 of Fig. 2, 6, 2, 3 and 3 of Fig. 4 to 7
    assert seen["rows"] >= 100
    assert (folder / "report.md").read_text().count("## ") >= len(all_experiments())


def test_a_second_run_runs_nothing_and_says_the_same(folder):
    before = (folder / "trials.jsonl").read_bytes()
    first = reproduce((), "smoke", folder, source=Source(), run=False)
    again = reproduce((), "smoke", folder, source=Source(), progress=False)
    assert (folder / "trials.jsonl").read_bytes() == before
    for one, other in zip(first, again, strict=True):
        assert [row.name for row in one.rows] == [row.name for row in other.rows]
        # As text, since NaN (the error of one trial) is not equal to itself.
        assert [str(row.measured) for row in one.rows] == [str(row.measured) for row in other.rows]
        assert one.n_failed == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["reproduce", "table9"], 1, "table1"),
        (["reproduce", "--scale", "huge"], 2, "unknown scale"),
        (["reproduce", "--data", "nowhere"], 3, "not a folder"),
        (["--no-run", "--out", "nothing"], 3, "python -m reproduction"),
    ],
)
def test_bad_words(words, code, message, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "polyspan.cli", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_the_page_can_be_written_again_without_pictures(folder):
    done = subprocess.run(
        [
            sys.executable, "-m", "reproduction", "--no-run", "--scale", "smoke", "--out",
            str(folder), "--no-pictures",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "smoke only checks that everything runs" in done.stdout
    assert "data:image/png" not in (folder / "index.html").read_text()
