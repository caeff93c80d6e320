"""Constants of exported files: here their types, in a file the numbers of its model."""

from __future__ import annotations

from typing import Any

import numpy as np

ESTIMATOR: str = ""
TAKES_MISSING: bool = False
N_FEATURES: int = 0
FEATURES: list[str] | None = None
STEPS: list[tuple[str, Any]] = []
BASES: np.ndarray = np.empty((0, 0, 0))
MEAN: np.ndarray = np.empty(0)
ANCHORS: np.ndarray | None = None
MEANS: np.ndarray = np.empty((0, 0))
WEIGHTS: np.ndarray = np.empty(0)
VARIANCES: np.ndarray = np.empty((0, 0))
NOISE: np.ndarray = np.empty(0)
PRIOR: float = 0.0
TOO_FEW: int = 0
ROWS_AT_ONCE: int = 1
ROWS_OF_TYPE: dict[int, int] = {}
ROWS_OF_GROUP: tuple[int, int] = (1, 1)
SAMPLES_PER_PATTERN: int = 1
MIN_GROUP_ROWS: int = 1
