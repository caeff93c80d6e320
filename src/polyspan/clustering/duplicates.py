"""Samples that occur several times are clustered once: a graph would cut through equal ones."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import numpy as np

from polyspan.clustering.decision import Partition


def distinct_samples(X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return samples without copies, and for every sample its index there; None without copies."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    inverse = np.empty(len(X), dtype=np.int64)
    for i, row in enumerate(np.ascontiguousarray(X)):
        # A digest, not the row: the samples are not held twice.
        inverse[i] = seen.setdefault(blake2b(row.tobytes(), digest_size=16).digest(), len(seen))
        if inverse[i] == len(first):
            first.append(i)
    return (X, None) if len(first) == len(X) else (X[first], inverse)


def with_copies(found: Partition, inverse: np.ndarray | None) -> Partition:
    """Return a partition of distinct samples as one of all samples."""
    if inverse is None:
        return found
    members = [replace(m, labels=m.labels[inverse], graph=None) for m in found.members]
    return replace(found, labels=found.labels[inverse], members=members)
