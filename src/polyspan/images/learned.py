"""Read the prior and the learned stages that come with the package."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import log
from typing import Any

import numpy as np

from polyspan.images.prior import PatchPrior
from polyspan.images.stages import Stage

#: The file, which `tools/learn_pictures.py` makes. Arrays of numbers alone: nothing is executed.
FILE = "learned.npz"
#: Largest magnitude of the integers that hold a map.
LARGEST = 127


@dataclass(frozen=True)
class Learned:
    """What was learned from pictures beforehand."""

    prior: PatchPrior
    levels: tuple[float, ...]
    """Levels of noise, of 255 between black and white, that stages were learned for."""
    stages: tuple[tuple[Stage, ...], ...]
    """For each level, the stages in their order."""

    def at(self, level: float) -> tuple[Stage, ...]:
        """Return the stages for any level of noise: between two levels, or those of the nearest."""
        level = min(max(level, self.levels[0]), self.levels[-1])
        above = int(np.searchsorted(self.levels, level))
        if self.levels[above] == level:
            return self.stages[above]
        low, high = self.levels[above - 1], self.levels[above]
        part = log(level / low) / log(high / low)
        both = zip(self.stages[above - 1], self.stages[above], strict=True)
        return tuple(one.between(other, part) for one, other in both)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is written to the file: maps as integers with one scale per row."""
        out: dict[str, np.ndarray] = {
            "weights": self.prior.weights.astype(np.float32),
            "variances": self.prior.variances.astype(np.float32),
            "directions": self.prior.directions.astype(np.float16),
            "levels": np.asarray(self.levels, dtype=np.float64),
        }
        for number, stages in enumerate(zip(*self.stages, strict=True)):
            maps = np.stack([stage.maps for stage in stages])
            scales = np.maximum(np.abs(maps).max(axis=-1, keepdims=True), 1e-12) / LARGEST
            out[f"maps{number}"] = np.rint(maps / scales).astype(np.int8)
            out[f"scales{number}"] = scales.astype(np.float32)
            out[f"errors{number}"] = np.stack([stage.errors for stage in stages]).astype(np.float32)
            out[f"details{number}"] = np.array([[s.sharpness, s.calibration] for s in stages])
        return out

    @classmethod
    def of(cls, arrays: Any) -> Learned:
        """Return what such arrays hold."""
        prior = PatchPrior(
            arrays["weights"], arrays["variances"], arrays["directions"].astype(np.float32)
        )
        n_stages = sum(name.startswith("maps") for name in arrays)
        columns = []
        for number in range(n_stages):
            maps = arrays[f"maps{number}"] * arrays[f"scales{number}"]
            parts = zip(
                maps, arrays[f"errors{number}"], arrays[f"details{number}"].tolist(), strict=True
            )
            columns.append([Stage(m, errors, *details) for m, errors, details in parts])
        levels = tuple(arrays["levels"].tolist())
        return cls(prior, levels, tuple(zip(*columns, strict=True)))


@cache
def learned() -> Learned | None:
    """Return what comes with the package, or None with a warning where the file is missing."""
    source = resources.files("polyspan.images").joinpath(FILE)
    if not source.is_file():
        warnings.warn(
            f"the file {FILE} of polyspan.images is missing: pictures are denoised with what is "
            "learned from them alone, which takes longer; install polyspan again to get it",
            stacklevel=2,
        )
        return None
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Learned.of({name: arrays[name] for name in arrays.files})
