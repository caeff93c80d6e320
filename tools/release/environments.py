"""Empty environments: the wheel is installed into them as a user would, and used."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from release.readme import first_snippet, promise_problems
from release.report import FailedCheckError, require, run

SMOKE = Path(__file__).with_name("smoke.py")


def empty_environment(folder: Path, python: str) -> Path:
    """Make an environment with nothing in it, not even pip, and return its interpreter."""
    run([python, "-m", "venv", "--without-pip", folder])
    return folder / "bin" / "python"


def pip(python: Path, *arguments: str | Path) -> str:
    """Run the pip of this environment for another one."""
    quiet = ("--disable-pip-version-check", "--no-input", "--no-color")
    return run([sys.executable, "-m", "pip", "--python", python, *quiet, *arguments])


def installed(python: Path) -> dict[str, str]:
    """Return the version of every package of an environment, by name."""
    listed = json.loads(pip(python, "list", "--format", "json"))
    return {package["name"]: package["version"] for package in listed}


def use(python: Path, readme: str, version: str) -> str:
    """Run the README's first lines and the three main jobs, and say with which versions.

    Parameters
    ----------
    python : Path
        The interpreter of an environment with the wheel.
    readme : str
        The README, whose first snippet promises what it prints.
    version : str
        What `polyspan.__version__` must be.
    """
    pip(python, "check")
    folder = python.parents[1] / "empty"
    folder.mkdir()
    snippet = first_snippet(readme)
    script = folder / "ten_lines.py"
    script.write_text(snippet, encoding="utf-8")
    # -I: neither this repository nor anything of the user is on the path.
    require(promise_problems(snippet, run([python, "-I", script], cwd=folder)))
    said = run([python, "-I", SMOKE], cwd=folder).strip()
    if said != version:
        raise FailedCheckError(f"polyspan.__version__ is {said}, not {version}")
    packages = [f"{name} {number}" for name, number in installed(python).items()]
    return f"README's lines and smoke test with {', '.join(packages)}"
