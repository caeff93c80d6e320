"""One run lists the tests that it skips, and another runs those alone."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import os
import pytest

def test_always():
    pass

@pytest.mark.parametrize("k", [1, 2])
def test_sometimes(k):
    if k == 2 and "TOOL" not in os.environ:
        pytest.skip("no tool")

@pytest.mark.xfail
def test_expected_to_fail():
    assert False
"""


def run(folder, *options, **variables):
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, f"--rootdir={folder}", *options, str(folder)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


def test_what_was_skipped_runs_where_it_can(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "test_others.py").write_text("def test_other():\n    pass\n", encoding="utf-8")
    listed = tmp_path / "skipped.txt"
    assert "3 passed, 1 skipped, 1 xfailed" in run(tmp_path, "-n1", f"--list-skipped={listed}")
    assert listed.read_text(encoding="utf-8") == "test_some.py::test_sometimes[2]\n"
    # Of other files no test is collected.
    assert "1 passed, 3 deselected" in run(tmp_path, f"--only-listed={listed}", TOOL="there")
