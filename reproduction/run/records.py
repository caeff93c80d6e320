"""The record of one trial, and how it is written as a row of a table.

JSON has no NaN and no infinity, and λ=∞ is a parameter here: such a number is written as
`{"$float": "inf"}`, which every reader of JSON accepts and which comes back as the same number.
"""

from __future__ import annotations

import json
import math
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

#: Parameters of a trial: JSON scalars and lists of them.
Params = dict[str, Any]
#: Identifies a trial: experiment, revision, canonical JSON of the parameters.
Key = tuple[str, int, str]

FLOAT_TAG = "$float"
PACKAGES = ("polyspan", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Record:
    """One trial: its parameters, its results, its duration, and the version of the code."""

    experiment: str
    params: Params
    results: dict[str, Any] | None
    """None where the trial failed."""
    error: str | None
    """Type, message and source line of the exception; None where the trial succeeded."""
    seconds: float
    """Wall-clock time."""
    cpu_seconds: float
    """Processor time of the process that ran the trial."""
    versions: dict[str, str]
    commit: str | None
    """Commit of the code, with "-dirty" after local changes; None outside a repository."""
    started: str
    """When the trial began: ISO 8601, UTC."""
    revision: int = 1
    """The revision of the experiment's code."""

    @property
    def key(self) -> Key:
        """The key that identifies this trial."""
        return trial_key(self.experiment, self.revision, self.params)

    def to_row(self) -> dict[str, Any]:
        """Return the fields by name, as texts and numbers for a database."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "params": canonical(self.params),
            "results": None if self.results is None else encode(self.results),
            "versions": encode(self.versions),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Record:
        """Undo `to_row`."""
        results = None if row["results"] is None else decode(row["results"])
        read = {"params": decode(row["params"]), "versions": decode(row["versions"])}
        return cls(**{**row, **read, "results": results})


def trial_key(experiment: str, revision: int, params: Mapping[str, Any]) -> Key:
    """Return the key that identifies a trial."""
    return experiment, revision, canonical(params)


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, NumPy as plain numbers.

    >>> canonical({"lam": float("inf"), "draw": np.int64(3)})
    '{"draw":3,"lam":{"$float":"inf"}}'
    """
    return json.dumps(_tagged(plain(value)), sort_keys=True, separators=(",", ":"), allow_nan=False)


def encode(value: Any) -> str:
    """Return plain values as JSON; the order of keys is kept."""
    return json.dumps(_tagged(value), allow_nan=False)


def decode(text: str) -> Any:
    """Undo `encode` and `canonical`."""
    return json.loads(text, object_hook=_untagged)


def plain(value: Any, where: str = "value") -> Any:
    """Return a copy in JSON types: NumPy arrays and tuples become lists, NumPy scalars numbers.

    `where` names the value in the message of the TypeError for anything else.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    # Subclasses (np.float64, string enums) become their base types: JSON would not keep them.
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str) or name == FLOAT_TAG:
                raise TypeError(
                    f"{where} has the key {name!r}: keys must be strings other than {FLOAT_TAG!r}"
                )
        return {str(name): plain(item, f"{where}[{name!r}]") for name, item in value.items()}
    raise TypeError(
        f"{where} is a {type(value).__name__}, which JSON cannot hold: "
        "give numbers, strings, None, or lists and dictionaries of them"
    )


def _tagged(value: Any) -> Any:
    """Write numbers that JSON does not have as tagged strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return {FLOAT_TAG: str(value)}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, dict):
        return {name: _tagged(item) for name, item in value.items()}
    return value


def _untagged(content: dict[str, Any]) -> Any:
    """Undo `_tagged` on one JSON object."""
    return float(content[FLOAT_TAG]) if content.keys() == {FLOAT_TAG} else content


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree that was never installed
            found[package] = "unknown"
    return found


def commit() -> str | None:
    """Return the commit of the code that runs, or None where it is not under version control."""
    here = Path(__file__)
    # An installed copy may be inside another project's repository, whose commit is not ours.
    if _git("ls-files", "--error-unmatch", here.name, cwd=here.parent) is None:
        return None
    # Without tags: a name such as v1.0-3-g0123abc is harder to look up than the hash.
    name = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return _git(*name, cwd=here.parent)


def _git(*arguments: str, cwd: Path) -> str | None:
    """Return what git prints, or None if git fails or is not installed."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, capture_output=True, encoding="utf-8", check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip() or None
