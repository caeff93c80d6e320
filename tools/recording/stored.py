"""How recorded results are stored and compared.

Labels, counts and texts are stored whole where they are short, else as a hash. Short arrays of
floats are stored whole, long ones as projections on a few random vectors. Everything is in one
small archive, with the machine that recorded it.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

#: Longer arrays are stored as that many projections and their norm.
WHOLE, PROJECTIONS = 12, 4
#: Relative differences that are allowed: on the machine that recorded, and on another one.
SAME, ELSEWHERE = 1e-9, 1e-6
#: Those of single precision, and of pictures, whose PSNR alone counts (in dB).
SINGLE, PICTURE, DECIBELS = 1e-5, 1e-3, 1e-3
VERSIONS = ("numpy", "scipy", "scikit-learn", "numba")

Values = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """One value as it is stored: a text for what must be equal, numbers for what must be near."""

    text: str
    numbers: np.ndarray
    scale: float
    single: bool = False


def fingerprint() -> dict[str, str]:
    """Return what decides rounding: processor, BLAS and versions."""
    pools = threadpoolctl.threadpool_info()
    blas = sorted(
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in pools
        if pool["user_api"] == "blas"
    )
    return {
        "processor": _processor(),
        "BLAS": ", ".join(dict.fromkeys(blas)),
        **{name: version(name) for name in VERSIONS},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or platform.machine()
    lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    about = dict(line.split(":", 1) for line in reversed(lines) if ":" in line)
    found = {key.strip(): value.strip() for key, value in about.items()}
    names = ("vendor_id", "cpu family", "model", "model name")
    return " ".join(found[name] for name in names if name in found) or platform.machine()


def keep(value: Any) -> Kept:
    """Return what is stored of one value."""
    if isinstance(value, str):
        return Kept(value, np.empty(0), 0.0)
    array = np.asarray(value)
    shape = "x".join(map(str, array.shape)) or "one"
    if array.dtype.kind != "f":
        return Kept(f"{shape} {_exact(array)}", np.empty(0), 0.0)
    single = array.dtype == np.float32
    x = array.astype(np.float64).ravel()
    odd = ~np.isfinite(x)
    text = f"{shape} {array.dtype}"
    if odd.any():
        text += " " + _exact(
            np.where(odd, np.sign(np.nan_to_num(x, nan=0.0)) + 2 * odd, 0).astype(int)
        )
        x = np.where(odd, 0.0, x)
    scale = float(np.sqrt(np.mean(x**2))) if x.size else 0.0
    if x.size > WHOLE:
        rng = np.random.RandomState(x.size % 2**31)
        x = rng.standard_normal((PROJECTIONS, x.size)) @ x / np.sqrt(x.size)
    return Kept(text, x, scale, single)


def kept_of(values: Values) -> dict[str, Kept]:
    """Return what is stored of the values of a case."""
    return {name: keep(value) for name, value in values.items()}


def _exact(array: np.ndarray) -> str:
    text = " ".join(map(str, array.ravel().tolist()))
    return text if len(text) <= 200 else "hash " + hashlib.sha256(text.encode()).hexdigest()[:20]


def difference(old: Kept, new: Kept) -> float:
    """Return the largest difference relative to the size of the array; infinite for other texts."""
    if old.text != new.text or old.numbers.shape != new.numbers.shape:
        return float("inf")
    if not old.numbers.size:
        return 0.0
    scale = max(old.scale, new.scale)
    return float(np.abs(old.numbers - new.numbers).max() / scale) if scale else 0.0


def allowed(name: str, kept: Kept, tolerance: float) -> float:
    """Return the relative difference that a value may have."""
    if name == "PSNR":
        return DECIBELS / max(kept.scale, 1e-300)
    if name == "picture":
        return PICTURE
    return max(tolerance, SINGLE) if kept.single else tolerance


class Record:
    """Kept values of every case, which of them are stable, and the machine that recorded them."""

    def __init__(self, cases: dict[str, dict[str, Kept]], unstable: dict[str, list[str]],
                 machine: dict[str, str]) -> None:  # fmt: skip
        self.cases, self.unstable, self.machine = cases, unstable, machine

    def differences(
        self, case: str, values: Values, tolerance: float, *, stable: bool = False
    ) -> list[str]:
        """Return in words how the values of a case differ from the recorded ones."""
        old, new = self.cases[case], kept_of(values)
        skipped = set(self.unstable.get(case, ())) if stable else set()
        found = [f"{name} is gone" for name in old if name not in new]
        found += [f"{name} is new" for name in new if name not in old]
        for name in old.keys() & new.keys() - skipped:
            difference_ = difference(old[name], new[name])
            if difference_ > allowed(name, old[name], tolerance):
                found.append(f"{name} {_words(old[name], new[name], difference_)}")
        return sorted(found)

    def write(self, path: Path) -> None:
        """Write everything to an archive, which is the same for the same values."""
        numbers: list[np.ndarray] = []
        index: dict[str, Any] = {}
        for case, values in self.cases.items():
            index[case] = {}
            for name, kept in values.items():
                index[case][name] = [kept.text, kept.numbers.size, int(kept.single)]
                numbers.append(np.append(kept.scale, kept.numbers))
        about = {"machine": self.machine, "unstable": self.unstable, "cases": index}
        text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, about=text, numbers=np.concatenate(numbers))

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read what `write` has written."""
        with np.load(path) as archive:
            about, numbers = json.loads(archive["about"].tobytes()), archive["numbers"]
        start = 0
        cases: dict[str, dict[str, Kept]] = {}
        for case, values in about["cases"].items():
            cases[case] = {}
            for name, (text, size, single) in values.items():
                scale, own = numbers[start], numbers[start + 1 : start + 1 + size]
                cases[case][name] = Kept(text, own, float(scale), bool(single))
                start += 1 + size
        return cls(cases, about["unstable"], about["machine"])


def _words(old: Kept, new: Kept, size: float) -> str:
    """Say how two kept values differ."""
    if np.isfinite(size):
        return f"differs by {size:.1e} of its size"
    if "hash" in old.text + new.text:
        return "is not equal"
    if max(len(old.text), len(new.text)) <= 60:
        return f"was {old.text!r}, is {new.text!r}"
    first, second = old.text.split(), new.text.split()
    if len(first) != len(second):
        return "has another shape"
    unequal = sum(a != b for a, b in zip(first, second, strict=True))
    return f"differs in {unequal} of {len(first) - 1} entries"
