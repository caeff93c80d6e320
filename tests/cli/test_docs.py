"""The guide to the command: examples run and print what it says, exit codes are those of the code.

The examples of a page run in one empty folder, one after the other, as a reader would run them.
"""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from polyspan.cli.errors import EXPLAINED

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(GUIDE.glob("cli*.md"))
FILLING = GUIDE / "cli-impute.md"
PROGRAM = re.compile(r"^python - <<'END'\n(.*?)^END$", flags=re.DOTALL | re.MULTILINE)


def blocks(page, kind):
    marked = re.compile(rf"^```{kind}\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
    return marked.findall(page.read_text(encoding="utf-8"))


def examples(page):
    """Yield what a page runs: the text of a Python program, or the words of a line."""
    for block in blocks(page, "sh"):
        for k, part in enumerate(PROGRAM.split(block)):
            if k % 2:
                yield part
            else:
                yield from filter(
                    None, (shlex.split(line, comments=True) for line in part.split("\n"))
                )


def run_examples(page, run):
    """Run all examples of a page, and check that it shows what they printed."""
    printed = ""
    for example in examples(page):
        if isinstance(example, str):
            exec(compile(example, str(page), "exec"), {})
            continue
        name, *words = example
        assert name in ("polyspan", "pip")
        if name == "polyspan":  # the rest is installed already
            done = run(*words)
            assert done.exit_code == 0, f"{shlex.join(example)}\n{done.output}"
            assert "error: " not in done.output
            printed += done.output
    for line in "".join(blocks(page, "text")).splitlines():
        assert line == "…" or " ".join(line.split()) in " ".join(printed.split())


def test_every_command_has_an_example():
    lines = [words for page in PAGES for words in examples(page) if words[0] == "polyspan"]
    assert {words[1] for words in lines} == {"cluster", "denoise", "impute", "inpaint", "outliers"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != FILLING], ids=lambda page: page.stem
)
def test_the_examples_run(page, run, tmp_path):
    run_examples(page, run)
    assert any(tmp_path.iterdir())


def test_the_examples_that_fill_run_and_keep_what_was_there(run, tmp_path):
    run_examples(FILLING, run)
    table, filled = (
        pd.read_csv(tmp_path / name, dtype=str) for name in ("table.csv", "filled.csv")
    )
    assert table.isna().to_numpy().any()
    assert not filled.isna().to_numpy().any()
    assert table.fillna(filled).equals(filled)
    assert len(list(tmp_path.glob("drawn-*.csv"))) == 5


def test_the_exit_codes_are_those_of_the_code():
    page = (GUIDE / "cli-reference.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page, flags=re.MULTILINE)
    assert [int(code) for code, _ in rows] == [int(code) for code in EXPLAINED]
    said = [re.sub(r"[`(),:]", "", meaning) for _, meaning in rows]
    assert said == [re.sub(r"[(),:]", "", meaning) for meaning in EXPLAINED.values()]
