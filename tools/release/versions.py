"""Every place that names the version names the same one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HEADING = re.compile(r"^## (?P<version>\S+)(?: \((?P<note>[^)]*)\))?[ \t]*$", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Entry:
    """The newest entry of the changelog: its version, what stands in brackets, and its lines."""

    version: str
    note: str
    items: int


def top_entry(changelog: str) -> Entry:
    """Return the first entry of a changelog.

    Parameters
    ----------
    changelog : str
        Markdown with a heading such as `## 0.2.0 (2026-11-30)` for each version.
    """
    headings = list(HEADING.finditer(changelog))
    if not headings:
        return Entry("", "", 0)
    first = headings[0]
    end = headings[1].start() if len(headings) > 1 else len(changelog)
    items = re.findall(r"^- +\S", changelog[first.end() : end], flags=re.MULTILINE)
    return Entry(first["version"], first["note"] or "", len(items))


def named_versions(tree: Path) -> dict[str, str]:
    """Return the version that each file of a source tree names, by the name of the file."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    patterns = {
        "CITATION.cff": r"^version: [\"']?([^\s\"']+)",
        "packaging/conda/recipe.yaml": r"^  version: [\"']?([^\s\"']+)",
    }
    named = {"pyproject.toml": str(project["version"])}
    for name, pattern in patterns.items():
        found = re.search(pattern, (tree / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        named[name] = found[1] if found else "no version"
    named["CHANGELOG.md"] = _changelog(tree).version or "no version"
    return named


def disagreements(tree: Path, tags: Sequence[str]) -> list[str]:
    """Return one line for everything that is wrong with the version of a source tree.

    Parameters
    ----------
    tree : Path
        The source tree.
    tags : sequence of str
        The tags of its commit. Those that are no versions do not count.
    """
    named = named_versions(tree)
    version = named["pyproject.toml"]
    found = [
        f"{name} says {said}, not {version}" for name, said in named.items() if said != version
    ]
    entry = _changelog(tree)
    if entry.items == 0:
        found.append("the top entry of CHANGELOG.md is empty")
    versions = [tag for tag in tags if re.match(r"v?\d", tag)]
    found += [f"the tag is {tag}, not v{version}" for tag in versions if tag != f"v{version}"]
    if versions and not DATE.fullmatch(entry.note):
        said = entry.note or "nothing"
        found.append(f"the commit is tagged, but CHANGELOG.md has ({said}) in place of the date")
    return found


def _changelog(tree: Path) -> Entry:
    return top_entry((tree / "CHANGELOG.md").read_text(encoding="utf-8"))
