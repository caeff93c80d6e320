"""Print a table of what polyspan needs, with versions and licences: `python tools/licences.py`.

It reads what is installed beside it. `docs/dependencies.md` holds its output.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def licence(found: Distribution) -> str:
    """Return what a package says about its licence, in the order of how exact that is."""
    metadata = found.metadata
    if said := metadata["License-Expression"]:
        return str(said)
    prefix = "License :: OSI Approved :: "
    classifiers = metadata.get_all("Classifier") or []
    named = [one.removeprefix(prefix) for one in classifiers if one.startswith(prefix)]
    return ", ".join(named) or str(metadata["License"] or "not said").splitlines()[0]


def walk(requirement: str, why: str, found: dict[str, tuple[str, str, str]]) -> None:
    """Note a package and what it needs itself, unless it is known or not installed."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    name = match[0].lower().replace("_", "-") if match else ""
    if "extra ==" in requirement or name in found or name == "polyspan":
        return
    try:
        package = distribution(name)
    except PackageNotFoundError:  # for another system or another Python
        return
    found[name] = (package.version, licence(package), why)
    for further in package.requires or []:
        walk(further, name, found)


def main() -> None:
    """Print the table."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    found: dict[str, tuple[str, str, str]] = {}
    for requirement in project["dependencies"]:
        walk(requirement, "polyspan", found)
    for extra, requirements in project["optional-dependencies"].items():
        for requirement in requirements if extra not in ("dev", "peers", "release") else []:
            walk(requirement, f"polyspan[{extra}]", found)
    print("| package | version seen | licence | needed by |\n|---|---|---|---|")
    for name, (version, said, why) in sorted(found.items()):
        print(f"| {name} | {version} | {said} | {why} |")


if __name__ == "__main__":
    main()
