"""Labels of the samples that a model was fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.arrays import namespace
from polyspan.data.prediction import map_rows
from polyspan.data.working import Working
from polyspan.union._solve.alternation import Solution
from polyspan.union._solve.problem import Problem
from polyspan.union.linear import LinearUnion
from polyspan.union.reading import Data


def training_labels(
    model: LinearUnion, data: Data, problem: Problem, working: Working, best: Solution, *,
    plain: bool,
) -> Any:  # fmt: skip
    """Return the label of every sample; those of weight 0 have that of the nearest subspace."""
    if data.source is not None and plain:
        return map_rows(data.source, model, "predict")
    if data.source is not None:
        if data.weights is None:
            return best.labels.astype(np.int64)
        nearest = map_rows(data.source, model, "predict")
        return (best.labels + (best.labels < 0) * (nearest + 1)).astype(np.int64)
    if plain and not data.holes and (working.span is not None or problem.shape.n_points):
        # Exact ties may fall otherwise in the coordinates of the span, or about a point.
        return model._nearest(data.X)
    xp = namespace(best.frames)
    labels = best.labels if data.learned is None else data.expand_labels(best.labels)
    if (data.weights is not None or data.far is not None) and data.learned is not None:
        labels = xp.where(data.learned, labels, model._nearest(data.X))
    return xp.astype(labels, xp.int64, copy=False)
