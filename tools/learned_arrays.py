"""What the file of `polyspan.images` holds: the twin of `Learned.of`."""

from __future__ import annotations

import numpy as np

from polyspan.images.stages import Learned

#: Largest magnitude of the integers that hold a map.
LARGEST = 127


def learned_arrays(learned: Learned) -> dict[str, np.ndarray]:
    """Return what is written to the file: maps as integers with one scale per row."""
    out: dict[str, np.ndarray] = {
        "weights": learned.prior.weights.astype(np.float32),
        "variances": learned.prior.variances.astype(np.float32),
        "directions": learned.prior.directions.astype(np.float16),
        "levels": np.asarray(learned.levels, dtype=np.float64),
    }
    for number, stages in enumerate(zip(*learned.stages, strict=True)):
        maps = np.stack([stage.maps for stage in stages])
        scales = np.maximum(np.abs(maps).max(axis=-1, keepdims=True), 1e-12) / LARGEST
        out[f"maps{number}"] = np.rint(maps / scales).astype(np.int8)
        out[f"scales{number}"] = scales.astype(np.float32)
        out[f"errors{number}"] = np.stack([stage.errors for stage in stages]).astype(np.float32)
        out[f"details{number}"] = np.array([[s.sharpness, s.calibration] for s in stages])
    return out
