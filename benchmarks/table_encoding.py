"""Hide entries of tables, and give tables of mixed columns to imputers that take numbers only."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from table_data import discrete


def draw_mask(shape: tuple[int, int], fraction: float, seed: int, name: str) -> np.ndarray:
    """Return where entries are hidden, completely at random.

    Of every row one entry stays at least, and of every column two.
    """
    rng = np.random.default_rng([seed, round(1000 * fraction), zlib.crc32(name.encode())])
    mask = rng.random(shape) < fraction
    empty = np.flatnonzero(mask.all(axis=1))
    mask[empty, rng.integers(shape[1], size=len(empty))] = False
    for column in np.flatnonzero((~mask).sum(axis=0) < 2):
        mask[rng.choice(shape[0], 2, replace=False), column] = False
    return mask


def hide(frame: pd.DataFrame, mask: np.ndarray) -> pd.DataFrame:
    """Return the table with missing entries; columns of booleans become pandas' "boolean"."""
    holes = frame.copy()
    for column, hidden in zip(frame, mask.T, strict=True):
        if frame[column].dtype == bool:
            holes[column] = frame[column].astype("boolean")
        holes[column] = holes[column].mask(hidden)
    return holes


def labels_of(values: pd.Series) -> np.ndarray:
    """Return the values that were observed in a column; categories in their order."""
    seen = values.dropna().unique()
    if isinstance(values.dtype, pd.CategoricalDtype):
        return np.array([x for x in values.cat.categories if x in set(seen)], dtype=object)
    return np.array(sorted(seen), dtype=object)


def codes_of(values: pd.Series, labels: np.ndarray) -> np.ndarray:
    """Return the place of every value among the labels, NaN where it is missing."""
    place = {label: float(code) for code, label in enumerate(labels)}
    return np.array([np.nan if pd.isna(x) else place[x] for x in values])


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of the observed entries of a column."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: pd.Series) -> Scale:
        """Return those of a column; a constant one is not scaled."""
        std = float(values.std(ddof=0))
        return cls(float(values.mean()), std if std > 0 else 1.0)


class Encoding:
    """Numbers for all columns of a table: standardised ones, and 0 or 1 for each category.

    The most frequent category has no column: its value is one minus those of the others. With a
    column for it too (`full=True`), regressions predict each exactly from the others, which are
    missing together with it, and stay near the values that they start with: on the generated table
    "thresholds", 10 % hidden, `IterativeImputer` fills .38 of the categories right, here .63.
    With `codes=True` a discrete column is one column with the places of its values instead, and
    with "ordered" only a column of ordered categories.
    """

    def __init__(
        self, holes: pd.DataFrame, codes: bool | str = False, *, full: bool = False
    ) -> None:
        self.holes = holes
        self.codes = codes
        self.first = 0 if full else 1
        self.discrete = discrete(holes)
        self.labels = {column: self._labels(holes[column]) for column in self.discrete}
        self.scales = {c: Scale.of(holes[c]) for c in holes if c not in self.labels}

    def _labels(self, values: pd.Series) -> np.ndarray:
        labels = labels_of(values)
        if self._as_codes(values):
            return labels
        counts = values.value_counts()
        return np.array(sorted(labels, key=lambda x: -counts[x]), dtype=object)

    def _as_codes(self, values: pd.Series) -> bool:
        if self.codes == "ordered":
            return bool(getattr(values.dtype, "ordered", False))
        return bool(self.codes)

    def array(self) -> np.ndarray:
        """Return the numbers, NaN where they are missing."""
        parts = []
        for column, values in self.holes.items():
            if column not in self.labels:
                scale = self.scales[column]
                parts.append((values.to_numpy(dtype=float) - scale.mean)[:, None] / scale.std)
                continue
            codes = codes_of(values, self.labels[column])[:, None]
            if not self._as_codes(values) and len(self.labels[column]) > 1:
                levels = np.arange(self.first, len(self.labels[column]))
                codes = np.where(np.isnan(codes), np.nan, codes == levels)
            parts.append(codes)
        return np.hstack(parts)

    def frame(self, filled: np.ndarray) -> pd.DataFrame:
        """Return the table of filled numbers: the category with the largest value is taken."""
        columns, at = {}, 0
        for column, values in self.holes.items():
            if column not in self.labels:
                scale = self.scales[column]
                columns[column] = filled[:, at] * scale.std + scale.mean
                at += 1
                continue
            labels = self.labels[column]
            if self._as_codes(values) or len(labels) == 1:
                codes = np.clip(np.rint(filled[:, at]), 0, len(labels) - 1).astype(int)
                at += 1
            else:
                some = filled[:, at : at + len(labels) - self.first]
                at += some.shape[1]
                rest = 1 - some.sum(axis=1, keepdims=True)
                codes = np.hstack([rest, some][1 - self.first :]).argmax(axis=1)
            columns[column] = labels[codes]
        return pd.DataFrame(columns, index=self.holes.index)


def as_labels(values: pd.Series, truth: pd.Series) -> np.ndarray:
    """Return filled values of a discrete column; numbers for booleans are cut at one half."""
    if truth.dtype == bool and pd.api.types.is_float_dtype(values):
        return (values.to_numpy(dtype=float) >= 0.5).astype(object)
    return values.to_numpy(dtype=object)
