"""The bill of materials: what an installed polyspan consists of, as CycloneDX."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection
from pathlib import Path

from release.archives import path_problems
from release.report import FailedCheckError, require, run


def write_sbom(python: Path, project: Path, target: Path, epoch: str) -> None:
    """Write what an environment holds, validated by the schema of CycloneDX.

    Parameters
    ----------
    python : Path
        The interpreter of the environment.
    project : Path
        The pyproject.toml of the package that it is about.
    target : Path
        The file to write.
    epoch : str
        The time that the file names. There is no serial number: the same environment gives the
        same file.
    """
    options = ("--output-reproducible", "--validate", "--output-format", "JSON")
    about = ("--mc-type", "library", "--pyproject", str(project), "--output-file", str(target))
    tool = (sys.executable, "-m", "cyclonedx_py", "environment")
    run([*tool, *options, *about, str(python)], env={"SOURCE_DATE_EPOCH": epoch})


def sbom_problems(sbom: str, version: str, packages: Collection[str]) -> list[str]:
    """Return what is wrong with a bill of materials.

    Parameters
    ----------
    sbom : str
        The file, in JSON.
    version : str
        The version of the release.
    packages : collection of str
        The packages of the environment.
    """
    bill = json.loads(sbom)
    about = bill["metadata"]["component"]
    found = []
    if (about["name"], about["version"]) != ("polyspan", version):
        found.append(f"it is about {about['name']} {about['version']}")
    listed = {_normal(one["name"]) for one in bill["components"]}
    wanted = {_normal(name) for name in packages} - {"polyspan"}
    found += [f"{name} is not listed" for name in sorted(wanted - listed)]
    return found + [f"{name} is listed, but not installed" for name in sorted(listed - wanted)]


def checked_sbom(
    python: Path, tree: Path, target: Path, release: tuple[str, str], packages: Collection[str]
) -> str:
    """Write the bill of materials twice, compare both, look into it, and say what it is."""
    version, epoch = release
    again = target.with_suffix(".again")
    for path in (target, again):
        write_sbom(python, tree / "pyproject.toml", path, epoch)
    first, second = target.read_bytes(), again.read_bytes()
    again.unlink()
    if first != second:
        raise FailedCheckError("two runs give different files")
    folders = [python.parents[1], tree]
    require(sbom_problems(first.decode(), version, packages))
    require(path_problems({target.name: first}, folders))
    return (
        f"{target.name}: CycloneDX, valid, {len(packages) - 1} packages; without a serial number, "
        "with the commit's time, so the same versions give the same file"
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
