"""Forests of scikit-learn as plain arrays, which a model file may hold, and their predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from polyspan._sklearn import plain_settings

#: Standardised features and targets are rounded to these. Sums of targets are then exact, so that
#: splits that are equally good are chosen alike, whatever the units of the table.
GRID, TARGET_GRID = 2.0**-16, 2.0**-20


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
        model = ExtraTreesRegressor(
            n_trees, min_samples_leaf=least_leaf, max_features=1.0, random_state=seed
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
        pairs = list(zip(forests, starts, strict=True))
        return cls(
            np.concatenate([one.roots + start for one, start in pairs]),
            np.concatenate([one.features for one in forests]),
            np.concatenate([one.thresholds for one in forests]),
            np.concatenate([one.left + start for one, start in pairs]),
            np.concatenate([one.right + start for one, start in pairs]),
            np.concatenate([one.values for one in forests]),
        )

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the mean over the trees, (n_samples, n_outputs)."""
        # Imported here: numba is needed by what it compiles alone.
        from polyspan.tables.forest_loops import mean_of_trees

        out = np.zeros((len(X), self.values.shape[1]))
        seen = np.ascontiguousarray(_on_grid(X, GRID), dtype=np.float32)
        mean_of_trees(
            seen,
            self.roots,
            self.features,
            self.thresholds,
            self.left,
            self.right,
            self.values,
            out,
        )
        return out


def _on_grid(values: np.ndarray, grid: float) -> np.ndarray:
    return np.asarray(np.rint(values / grid) * grid)


def _rounded_down(thresholds: np.ndarray) -> np.ndarray:
    rounded = thresholds.astype(np.float32)
    above = rounded.astype(np.float64) > thresholds
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(np.float32)
