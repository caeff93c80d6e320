"""The run that a report is about: command, code and machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class About:
    """The title of the report, and what its end says: command, version of the code, machine."""

    title: str = "Which of the paper's claims we could confirm"
    scale: str = ""
    """Size of the run: "smoke", "quick", "standard" or "paper"."""
    command: str = ""
    """The command as the user typed it: "python -m reproduction --scale quick"."""
    commit: str = ""
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Version of each package that the numbers depend on."""
    machine: str = ""
    notes: Sequence[str] = ()
    """What a reader has to know before the numbers; shown after the first sentences."""

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
