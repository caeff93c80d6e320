"""What is in the wheel and in the source archive, and what must not be there."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

#: In bytes. The learned file of the pictures is 10 MB of either.
WHEEL_LIMIT = 14_000_000
SDIST_LIMIT = 20_000_000
LICENCES = ("LICENSE", "docs/licences-of-pictures.md")
TYPED = "polyspan/py.typed"  # says something by being there, and is empty
OUTPUTS = {"__pycache__", ".venv", "build", "dist", "htmlcov", ".git", ".mypy_cache", "shared"}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheel_files(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel, by name."""
    with zipfile.ZipFile(path) as wheel:
        return {one.filename: wheel.read(one) for one in wheel.infolist() if not one.is_dir()}


def sdist_files(path: Path) -> dict[str, bytes]:
    """Return the files of a source archive, by name; links and devices have no content."""
    with tarfile.open(path) as archive:
        members = [one for one in archive.getmembers() if not one.isdir()]
        contents = {one.name: archive.extractfile(one) if one.isfile() else None for one in members}
        return {name: file.read() if file else b"" for name, file in contents.items()}


def wheel_problems(files: Mapping[str, bytes], version: str) -> list[str]:
    """Return what is wrong with the files of a wheel.

    Parameters
    ----------
    files : mapping from str to bytes
        The files of the wheel, by name.
    version : str
        The version of the release.
    """
    info = f"polyspan-{version}.dist-info"
    wanted = [TYPED, "polyspan/__init__.py", "polyspan/images/learned.npz"]
    wanted += [f"{info}/METADATA", *(f"{info}/licenses/{name}" for name in LICENCES)]
    found = [f"{name} is missing" for name in wanted if name not in files]
    found += [f"{name} is empty" for name in wanted if files.get(name) == b"" and name != TYPED]
    for name in files:
        top, *rest = PurePosixPath(name).parts
        if top not in ("polyspan", info):
            found.append(f"{name} is no part of polyspan")
        if _is_output(rest):
            found.append(f"{name} is build output")
        if any(part in ("tests", "conftest.py") or part.startswith("test_") for part in rest):
            found.append(f"{name} is a test")
    return found


def sdist_problems(files: Mapping[str, bytes], version: str, tracked: Collection[str]) -> list[str]:
    """Return what is wrong with the files of a source archive.

    Parameters
    ----------
    files : mapping from str to bytes
        The files of the archive, by name.
    version : str
        The version of the release.
    tracked : collection of str
        The files that git knows. All others are build output, or data of somebody.
    """
    prefix = f"polyspan-{version}/"
    found = [f"{name} is not in {prefix}" for name in files if not name.startswith(prefix)]
    names = {name.removeprefix(prefix) for name in files if name.startswith(prefix)}
    wanted = ["PKG-INFO", "README.md", "pyproject.toml", "src/polyspan/py.typed", *LICENCES]
    found += [f"{name} is missing" for name in wanted if name not in names]
    if not any(name.startswith("tests/") for name in names):
        found.append("the tests are missing")
    found += [f"{name} is not in git" for name in sorted(names - set(tracked) - {"PKG-INFO"})]
    outputs = [name for name in sorted(names) if _is_output(PurePosixPath(name).parts)]
    return found + [f"{name} is build output, or data" for name in outputs]


def path_problems(files: Mapping[str, bytes], paths: Collection[Path]) -> list[str]:
    """Return which files name a folder of this machine."""
    marks = {path: f"{path}/".encode() for path in paths if len(path.parts) > 1}
    return [
        f"{name} names a folder of this machine, {path}"
        for name, content in files.items()
        for path, mark in marks.items()
        if mark in content
    ]


def size_problems(path: Path, limit: int) -> list[str]:
    """Return a line if a file is larger than its limit."""
    size = path.stat().st_size
    return [f"{path.name} has {size:,} bytes, more than {limit:,}"] if size > limit else []


def _is_output(parts: Collection[str]) -> bool:
    return any(part in OUTPUTS or part.endswith((".pyc", ".egg-info")) for part in parts)
