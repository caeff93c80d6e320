"""Statements of the paper about denoising errors, checked level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.experiments.tools import by_draw
from reproduction.run.records import Record
from reproduction.sections import CANNOT_TELL, Claim, compare_means


def smaller_errors(
    text: str,
    records: Sequence[Record],
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    levels: Sequence[int] | None = None,
) -> Claim:
    """Check that the first method has smaller errors than the second, on the draws that both have.

    The mean over the levels of test noise decides. The evidence also says at how many levels the
    mean over draws is smaller.
    """
    one, other = by_draw(records, "errors", **first), by_draw(records, "errors", **second)
    common = sorted(one.keys() & other.keys())
    if not common:
        return Claim(text, CANNOT_TELL, "no pair of trials has run at this scale")
    a = np.array([one[k] for k in common], dtype=float)
    b = np.array([other[k] for k in common], dtype=float)
    if levels is not None:
        a, b = a[:, list(levels)], b[:, list(levels)]
    names = (str(first["method"]), str(second["method"]))
    claim = compare_means(text, a.mean(axis=1).tolist(), b.mean(axis=1).tolist(), names)
    below = int((a.mean(axis=0) < b.mean(axis=0)).sum())
    evidence = f"{claim.evidence}; smaller at {below} of {a.shape[1]} noise levels"
    return Claim(text, claim.verdict, evidence)
