"""What a fitted imputer returns: filled tables, draws, spreads and probabilities."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import one_hot
from polyspan.base.checks import first_ten, warn_user
from polyspan.base.private_sklearn import (
    CallbackSupportMixin,
    Interval,
    check_feature_names_in,
    check_parameters,
    get_output_config,
    html_with_summary,
    in_container,
    plain_settings,
)
from polyspan.base.progress import progress_bar
from polyspan.tables import frames
from polyspan.tables.features import AS_ASKED, DISCRETE, Feature
from polyspan.tables.filling import SubspaceModel
from polyspan.tables.model import TableModel
from polyspan.tables.reading import Table, read_table
from polyspan.tables.summary import summary


class ImputerResults(CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Methods of a fitted `SubspaceImputer`."""

    _features: tuple[Feature, ...]
    _model: TableModel | SubspaceModel | None
    column_errors_: dict[Any, float]
    indicator_: Any
    keep_empty_features: bool

    summary = summary
    _short_summary = summary
    _html_repr = html_with_summary  # of scikit-learn, for notebooks

    def transform(self, X: Any) -> Any:
        """Fill the missing entries; observed entries do not change.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Table with the columns of the fit.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features_out)
            The filled table: a frame of pandas or Polars for such a frame, with the types, the
            index and the categories of X; an array for an array. Columns that `fit` took for row
            numbers or free text are passed through, and a warning counts what stays missing there.
        """
        table = read_table(self, X, reset=False)
        warn_about_entries(X, table, keep_empty=self.keep_empty_features)
        numbers = table.numbers.copy()
        if self._model is not None and table.has_holes:
            for j, found in enumerate(self._model.predict(table.numbers)):
                best = found.values if found.values.ndim == 1 else np.argmax(found.values, axis=1)
                numbers[found.rows, j] = best
        return self._finished(X, table, numbers)

    def sample_imputations(self, X: Any, n_draws: int = 5, random_state: Any = None) -> list[Any]:
        """Return several completed tables, in which missing entries are drawn.

        How far they differ says how uncertain the missing entries are, and what was learned of
        them. Use each as if it were complete, and combine the results with `pool_estimates`.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Table with the columns of the fit.
        n_draws : int, default=5
            Number of tables; 20 for intervals and tests.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        list of ndarrays or frames
            The `n_draws` filled tables, each as `transform` returns it.
        """
        check_parameters(
            "SubspaceImputer.sample_imputations",
            n_draws=(n_draws, [Interval(Integral, 1, None, closed="left")]),
            random_state=(random_state, ["random_state"]),
        )
        table = read_table(self, X, reset=False)
        warn_about_entries(X, table, keep_empty=self.keep_empty_features)
        rng = check_random_state(random_state)
        found = []
        with progress_bar(False, n_draws, "sample_imputations") as advance:
            for _ in range(n_draws):
                numbers = table.numbers
                if self._model is not None and table.has_holes:
                    numbers = self._model.draw(table.numbers, rng)
                found.append(self._finished(X, table, numbers))
                advance()
        return found

    def impute_std(self, X: Any) -> Any:
        """Return the standard deviation of every filled entry.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Table with the columns of the fit.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Standard deviation of the missing entries given the observed ones, in the units of the
            column (dates and durations: microseconds); 0 for observed entries and for columns that
            were constant in `fit`; NaN for columns without numbers or that were never observed.
            The columns are those of X, whatever `transform` drops or adds.
        """
        table = read_table(self, X, reset=False)
        out = np.where(table.missing, np.nan, 0.0)
        if self._model is not None:
            for j, found in zip(table.used, self._model.predict(table.numbers), strict=True):
                out[found.rows, j] = np.where(table.missing[found.rows, j], found.spread, 0.0)
        out[:, [one.kind == "constant" for one in self._features]] = 0.0
        if table.array is None:
            out = frames.column_frame(X, X.columns, out)
        else:
            out = out.astype(table.array.dtype, copy=False)
        return self._in_output(X, out, check_feature_names_in(self, None))

    def impute_proba(self, X: Any) -> dict[Any, Any]:
        """Return the probabilities of the levels of every discrete column.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Table with the columns of the fit.

        Returns
        -------
        dict
            Probabilities, from the name, or position, of each column of booleans or categories to
            an array of shape (n_samples, n_levels), for a frame to a frame with a column for each
            level. An observed entry has probability 1 for its level; one whose level is not among
            those that are predicted has NaN: it is new, or not among the 30 most frequent. Columns
            that were constant in `fit` are left out.
        """
        table = read_table(self, X, reset=False)
        out = {}
        found = self._model.predict(table.numbers) if self._model is not None else []
        for place, j in enumerate(table.used):
            feature = self._features[j]
            if feature.kind not in DISCRETE:
                continue
            values = one_hot(table.numbers[:, place], len(feature.levels), np.float64)
            values[found[place].rows] = found[place].values
            unseen = np.isnan(table.numbers[:, place]) & ~table.missing[:, j]
            values[unseen] = np.nan
            if frames.is_frame(X):
                values = self._in_output(X, frames.column_frame(X, feature.levels, values))
            out[feature.name] = values
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the result.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of the input; None: those of the fit.

        Returns
        -------
        ndarray of str
            Names of the columns that `transform` returns, those of `add_indicator` last.
        """
        check_is_fitted(self)
        names = check_feature_names_in(self, input_features)
        kept = names[self._kept]
        if self.indicator_ is None:
            return np.asarray(kept)
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    @property
    def _kept(self) -> np.ndarray:
        """Which columns `transform` returns."""
        return np.array(
            [one.kind != "empty" or self.keep_empty_features for one in self._features], dtype=bool
        )

    def _finished(self, X: Any, table: Table, numbers: np.ndarray) -> Any:
        """Return X with its missing entries filled by numbers, in its own form or as was asked."""
        rows, values = table.fills(numbers)
        names = self.get_feature_names_out()
        indicators = None
        if self.indicator_ is not None:
            with plain_settings():
                indicators = self.indicator_.transform(np.where(table.missing, np.nan, 0.0))
        if table.array is None:
            out = frames.with_filled(X, self._features, rows, values)
            out = frames.without_columns(out, self._kept)
            if indicators is not None:
                added = names[int(self._kept.sum()) :].tolist()
                out = frames.with_indicators(out, indicators, added)
            return self._in_output(X, out)
        out = np.array(table.array)
        for j, one in enumerate(self._features):
            out[rows[j], j] = np.array(one.objects(values[j]), dtype=np.float64)
        out = out[:, self._kept]
        if indicators is not None:
            out = np.hstack([out, indicators.astype(out.dtype)])
        return self._in_output(X, out, names)

    def _in_output(self, X: Any, out: Any, names: Any = None) -> Any:
        """Return a result in the container that `set_output` asks for; an array has these names."""
        if frames.is_frame(out):
            return frames.as_container(out, get_output_config("transform", self)["dense"])
        return in_container(out, X, self, names)


def warn_about_empty(features: tuple[Feature, ...]) -> None:
    """Warn of columns without any entry, which `transform` drops."""
    empty = [repr(one.name) for one in features if one.kind == "empty"]
    if empty:
        warn_user(
            f"columns without any observed entry are dropped: {first_ten(empty)}, {len(empty)} of "
            f"{len(features)}; keep_empty_features=True keeps them"
        )


def warn_about_entries(X: Any, table: Table, *, keep_empty: bool) -> None:
    """Warn of entries that `transform` leaves missing, and of observed ones that it drops."""
    left, dropped, total = [], [], 0
    for j, one in enumerate(table.features):
        missing = int(table.missing[:, j].sum())
        observed = len(table.missing) - missing
        if one.kind == "empty" and not keep_empty:
            dropped += [f"{one.name!r} ({observed})"] if observed else []
        elif missing and _stays_missing(X, j, one):
            left.append(f"{missing} in {one.name!r} ({one.reason or 'no entry in fit'})")
            total += missing
    if left:
        warn_user(
            f"{total} entries stay missing: {first_ten(left)}; say in feature_types what these "
            "columns are, or fill or drop them yourself"
        )
    if dropped:
        warn_user(
            "columns that had no entry in fit are dropped, and have entries now: "
            f"{first_ten(dropped)}; fit again, or set keep_empty_features=True"
        )


def _stays_missing(X: Any, j: int, feature: Feature) -> bool:
    """Tell whether nothing is filled into a column, without the user having said so."""
    if feature.kind == "empty":
        return frames.is_frame(X) and not frames.holds_numbers(frames.columns_of_frame(X)[j])
    return feature.kind == "skip" and feature.reason != AS_ASKED
