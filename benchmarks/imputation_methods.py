"""The imputers of the benchmark: functions from a table with missing entries to a filled table.

Packages from the registry are left out where they are not installed:

    pip install gcimpute MissForest miceforest "lightgbm<4.7"

miceforest 6.0.5 calls a private function of lightgbm that 4.7 has no more. gcimpute 0.0.4 calls
`numpy.round_`, which NumPy 2 has no more and which is put back here. MissForest 4.2.3 also learns
from the entries that it has filled itself: on a mask of Salaries it left the most frequent
category, with which it starts, in every hole.
missingpy 0.2.0 does not import with today's scikit-learn.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from polyspan import SubspaceImputer
from table_encoding import Encoding

Fill = Callable[[pd.DataFrame], pd.DataFrame]


def by_numbers(make: Callable[[], Any], codes: bool | str = False, *, full: bool = False) -> Fill:
    """Return an imputer of tables by one of numbers."""

    def fill(holes: pd.DataFrame) -> pd.DataFrame:
        encoding = Encoding(holes, codes, full=full)
        return encoding.frame(np.asarray(make().fit_transform(encoding.array())))

    return fill


def trees() -> IterativeImputer:
    """Return chained regressions by extremely randomised trees."""
    forest = ExtraTreesRegressor(30, min_samples_leaf=3, max_features=0.5, random_state=0, n_jobs=1)
    return IterativeImputer(forest, max_iter=10, random_state=0)


def subspaces(**settings: Any) -> Fill:
    """Return ours, which gets the table itself; codes of its categories where it refuses these."""

    def fill(holes: pd.DataFrame) -> pd.DataFrame:
        def make() -> SubspaceImputer:
            return SubspaceImputer(random_state=0, **settings)

        try:
            filled = make().fit_transform(holes)
        except (TypeError, ValueError):
            if not Encoding(holes).discrete:
                raise
            filled = by_numbers(make, codes=True)(holes)
            filled.attrs["note"] = "codes"
            return filled
        if isinstance(filled, pd.DataFrame):
            return filled[list(holes)]
        return pd.DataFrame(filled, columns=holes.columns, index=holes.index).infer_objects()

    return fill


class Copula:
    """A Gaussian copula; with all columns continuous where its own choice of their kinds fails.

    It fails on Boston, in a column whose entries it takes for ordered levels.
    """

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled numbers."""
        np.round_ = np.round  # type: ignore[attr-defined]
        from gcimpute.gaussian_copula import GaussianCopula

        try:
            return GaussianCopula(verbose=0, random_state=0).fit_transform(X)
        except ValueError:
            model = GaussianCopula(verbose=0, random_state=0, min_ord_ratio=1.0)
            return model.fit_transform(X)


def _missforest(holes: pd.DataFrame) -> pd.DataFrame:
    from missforest import MissForest

    encoding = Encoding(holes, codes=True)
    table = pd.DataFrame(encoding.array(), columns=holes.columns)
    model = MissForest(categorical=encoding.discrete or None, verbose=0)
    return encoding.frame(model.fit_transform(table)[list(holes)].to_numpy(dtype=float))


def _miceforest(holes: pd.DataFrame) -> pd.DataFrame:
    """Fill with predictions: draws, which are the default, have larger errors."""
    import miceforest

    encoding = Encoding(holes, codes=True)
    table = pd.DataFrame(encoding.array(), columns=holes.columns)
    for column in encoding.discrete:
        table[column] = table[column].astype("category")
    kernel = miceforest.ImputationKernel(
        table, num_datasets=1, mean_match_candidates=0, random_state=0
    )
    kernel.mice(5, num_threads=1)
    return encoding.frame(kernel.complete_data(0)[list(holes)].to_numpy(dtype=float))


METHODS: dict[str, Fill] = {
    "mean": by_numbers(SimpleImputer),
    "neighbours": by_numbers(KNNImputer),
    "iterative": by_numbers(IterativeImputer),
    "trees": by_numbers(trees),
    "polyspan": subspaces(),
    "polyspan subspaces": subspaces(method="subspaces"),
    "gcimpute": by_numbers(Copula, codes="ordered"),
    "missforest": _missforest,
    "miceforest": _miceforest,
    "iterative, full": by_numbers(IterativeImputer, full=True),
    "trees, full": by_numbers(trees, full=True),
}
# On request only: a column for every category. Accuracy falls; RMSE of numbers falls at times too.
EXTRA = ("iterative, full", "trees, full")
PACKAGES = ("gcimpute", "missforest", "miceforest")


def available() -> list[str]:
    """Return the methods that are measured by default: those that this installation has."""
    left_out = {name for name in PACKAGES if importlib.util.find_spec(name) is None} | set(EXTRA)
    if "method" not in inspect.signature(SubspaceImputer).parameters:
        left_out.add("polyspan subspaces")
    return [name for name in METHODS if name not in left_out]
