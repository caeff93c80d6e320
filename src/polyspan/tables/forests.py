"""Forests of scikit-learn as plain arrays, and a second stage of them on what Gaussians expect.

Column j is predicted from the other columns, whose holes are filled by what is expected without
column j. So the trees see of an observed entry what they will see of a missing one. Two rounds:
forests of the first improve the fills for those of the second, which give the prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from polyspan.base.private_sklearn import plain_settings
from polyspan.tables.components import Expected
from polyspan.tables.encoding import Encoding

#: Standardised features and targets are rounded to these. Sums of targets are then exact, so that
#: splits that are equally good are chosen alike, whatever the units of the table.
GRID, TARGET_GRID = 2.0**-16, 2.0**-20
#: Trees and smallest leaf of the first round.
FIRST_TREES, FIRST_LEAF = 30, 1
#: Parts of the rows, trees that are learned without each, and smallest leaf of the second round.
N_PARTS, PART_TREES, PART_LEAF = 5, 10, 2
#: Parts of the rows where it is tried whether trees help.
TRIED_PARTS = 2
#: With more rows than this leaves grow, so that trees do not.
FINE_ROWS = 2000
N_TREES = FIRST_TREES + N_PARTS * PART_TREES


@dataclass(frozen=True)
class Forest:
    """Trees with the numbers of their nodes one after another."""

    roots: np.ndarray
    """First node of each tree."""
    features: np.ndarray
    """Column that a node asks for; negative for leaves."""
    thresholds: np.ndarray
    left: np.ndarray
    """Next node where the column is at most the threshold,"""
    right: np.ndarray
    """and where it is above."""
    values: np.ndarray
    """(n_nodes, n_outputs): mean of the targets in a leaf."""

    @classmethod
    def fit(
        cls, X: np.ndarray, targets: np.ndarray, n_trees: int, least_leaf: int, seed: int
    ) -> Forest:
        """Learn extremely randomised trees, which try all columns at each node."""
        leaf = max(least_leaf, least_leaf * len(X) // FINE_ROWS)
        model = ExtraTreesRegressor(
            n_trees, min_samples_leaf=leaf, max_features=1.0, random_state=seed
        )
        targets = _on_grid(targets, TARGET_GRID)
        with plain_settings():
            model.fit(_on_grid(X, GRID), targets if targets.shape[1] > 1 else targets[:, 0])
        return cls.joined([cls._of_tree(one.tree_) for one in model.estimators_])

    @classmethod
    def _of_tree(cls, tree: Any) -> Forest:
        leaf = tree.children_left < 0
        return cls(
            np.zeros(1, dtype=np.int32),
            np.where(leaf, -1, tree.feature).astype(np.int32),
            # Features are compared in float32: the largest of them that is not above.
            _rounded_down(tree.threshold),
            tree.children_left.astype(np.int32),
            tree.children_right.astype(np.int32),
            tree.value[:, :, 0].astype(np.float32),
        )

    @classmethod
    def joined(cls, forests: list[Forest]) -> Forest:
        """Return one forest with all trees."""
        starts = np.cumsum([0] + [len(one.features) for one in forests[:-1]]).astype(np.int32)
        parts = {field.name: [getattr(one, field.name) for one in forests] for field in fields(cls)}
        for name in ("roots", "left", "right"):
            parts[name] = [nodes + start for nodes, start in zip(parts[name], starts, strict=True)]
        return cls(**{name: np.concatenate(arrays) for name, arrays in parts.items()})

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the mean over the trees, (n_samples, n_outputs)."""
        # Imported here: numba is needed by what it compiles alone.
        from polyspan.tables.forest_loops import mean_of_trees

        out = np.zeros((len(X), self.values.shape[1]))
        seen = np.ascontiguousarray(_on_grid(X, GRID), dtype=np.float32)
        asked = self.features, self.thresholds
        mean_of_trees(seen, self.roots, *asked, self.left, self.right, self.values, out)
        return out


def _on_grid(values: np.ndarray, grid: float) -> np.ndarray:
    return np.asarray(np.rint(values / grid) * grid)


def _rounded_down(thresholds: np.ndarray) -> np.ndarray:
    rounded = thresholds.astype(np.float32)
    above = rounded.astype(np.float64) > thresholds
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(np.float32)


@dataclass(frozen=True)
class SecondStage:
    """Forests for every column."""

    first: tuple[Forest, ...]
    second: tuple[Forest, ...]


def features(
    j: int, fills: np.ndarray, linear: np.ndarray, latents: np.ndarray, encoding: Encoding
) -> np.ndarray:
    """Return what the trees of column j see: fills, with what the Gaussians expect of j itself."""
    column = encoding.columns[j]
    out = fills.copy()
    out[:, column.block] = linear[:, column.block]
    if column.margin is None:
        return out
    return np.hstack([out, latents[:, column.block]])


def _first_features(j: int, expected: Expected) -> np.ndarray:
    """Return what the trees of column j see in the first round."""
    encoding, linear, ranks = expected.encoding, expected.linear, expected.ranks
    fills = linear.fills_without(encoding.columns[j].block)
    return features(j, fills, linear.expected, ranks.expected, encoding)


def round_one(
    forests: tuple[Forest, ...],
    fills: np.ndarray,
    latents: np.ndarray,
    encoding: Encoding,
    missing: np.ndarray,
) -> np.ndarray:
    """Return fills in which the missing entries are predicted by forests.

    Parameters
    ----------
    fills, latents : ndarray of shape (n_samples, n_encoded)
        Observed entries, and what the Gaussians of both scales expect of the others.
    missing : ndarray of bool, of the same shape
    """
    out = fills.copy()
    for k, column in enumerate(encoding.columns):
        rows = np.flatnonzero(missing[:, column.start])
        if len(rows):
            seen = features(k, fills[rows], fills[rows], latents[rows], encoding)
            found = forests[k].predict(seen)
            out[rows, column.block] = encoding.to_standardised(k, found)
    return out


def fit_second_stage(
    targets: list[np.ndarray],
    expected: Expected,
    rng: np.random.RandomState,
    tick: Callable[[], None],
) -> tuple[SecondStage, list[np.ndarray]]:
    """Learn forests; return them, and predictions of observed entries by trees without these.

    Parameters
    ----------
    targets : list of arrays of shape (n_samples, n_outputs)
        For each column; rows in which it is missing are not used.
    """
    encoding, linear, ranks = expected.encoding, expected.linear, expected.ranks
    observed = [np.flatnonzero(linear.observed[:, column.start]) for column in encoding.columns]
    first = []
    for j, rows in enumerate(observed):
        seen = _first_features(j, expected)[rows]
        seed = rng.randint(2**31 - 1)
        first.append(Forest.fit(seen, targets[j][rows], FIRST_TREES, FIRST_LEAF, seed))
        tick()
    second, predictions = [], []
    for j, column in enumerate(encoding.columns):
        fills = linear.fills_without(column.block)
        latents = ranks.fills_without(column.block)
        missing = ~linear.observed
        missing[:, column.block] = False  # it is the target: what is expected of it stays
        improved = round_one(tuple(first), fills, latents, encoding, missing)
        seen = features(j, improved, linear.expected, ranks.expected, encoding)
        forest, found = _without_each_part(seen, targets[j], observed[j], rng)
        second.append(forest)
        predictions.append(found)
        tick()
    return SecondStage(tuple(first), tuple(second)), predictions


def try_forest(
    j: int, targets: np.ndarray, rows: np.ndarray, expected: Expected, rng: np.random.RandomState
) -> np.ndarray:
    """Predict observed entries of column j by a single round of few trees without their rows."""
    seen = _first_features(j, expected)
    _, found = _without_each_part(seen, targets, rows, rng, TRIED_PARTS)
    return np.asarray(found[rows])


def _without_each_part(
    seen: np.ndarray,
    targets: np.ndarray,
    rows: np.ndarray,
    rng: np.random.RandomState,
    most_parts: int = N_PARTS,
) -> tuple[Forest, np.ndarray]:
    """Learn a forest without each part of the rows, and predict that part."""
    found = np.zeros_like(targets)
    n_parts = min(most_parts, len(rows))
    parts = rng.permutation(len(rows)) % n_parts
    forests = []
    for part in range(n_parts):
        others, own = rows[parts != part], rows[parts == part]
        seed = rng.randint(2**31 - 1)
        forests.append(Forest.fit(seen[others], targets[others], PART_TREES, PART_LEAF, seed))
        found[own] = forests[-1].predict(seen[own])
    return Forest.joined(forests), found
