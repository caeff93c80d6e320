"""The shell examples of docs/cli.md run, and its table of exit codes agrees with the code."""

import re
import shlex
from pathlib import Path

from polyspan.cli.errors import EXPLAINED

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def test_the_examples_run(run, tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    ((program,),) = [re.findall(r"<<'END'\n(.*?)END", blocks[0], flags=re.DOTALL)]
    exec(compile(program, "docs/cli.md", "exec"), {})
    commands = [line for block in blocks[1:] for line in block.splitlines()]
    assert len(commands) >= 10
    for line in commands:
        name, *words = shlex.split(line)
        assert name == "polyspan"
        done = run(*words)
        assert done.exit_code == 0, f"{line}\n{done.output}"
        assert "warning" not in done.output
    written = (tmp_path / "filled.csv").read_text().splitlines()
    assert written[1].startswith("s000,")
    assert ",," not in written[1]


def test_the_exit_codes_are_those_of_the_code():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, flags=re.MULTILINE)
    assert [int(code) for code, _ in rows] == [int(code) for code in EXPLAINED]
