"""How the results of a report came about."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class About:
    """What the head of the page says: which run, of which code, on what machine."""

    title: str = "Learning the nonlinear geometry of high-dimensional data, reproduced"
    scale: str = ""
    """Size of the run: "smoke", "quick", "standard" or "paper"."""
    command: str = ""
    """As typed: "python -m reproduction --scale quick"."""
    commit: str = ""
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Version of each package that the numbers depend on."""
    machine: str = ""
    notes: Sequence[str] = ()

    def rerun(self, section_id: str) -> str:
        """Return the command that runs one section again at the same scale."""
        parts = ["python", "-m", "reproduction", section_id]
        return shlex.join([*parts, "--scale", self.scale] if self.scale else parts)

    def facts(self) -> list[tuple[str, str]]:
        """Return what is known about the run as pairs of name and text, in reading order."""
        packages = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        pairs = [
            ("Command", self.command),
            ("Scale", self.scale),
            ("Commit", self.commit),
            ("Date", self.date),
            ("Machine", self.machine),
            ("Versions", packages),
        ]
        return [(name, text) for name, text in pairs if text]
