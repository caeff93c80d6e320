"""SubspaceImputer: fills the missing entries of a table, as scikit-learn's imputers do."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.impute import MissingIndicator
from sklearn.utils import check_random_state

from polyspan.base.checks import first_ten, warn_user
from polyspan.base.private_sklearn import (
    Interval,
    MissingValues,
    StrOptions,
    fit_context,
    plain_settings,
)
from polyspan.base.progress import FitProgress
from polyspan.tables.features import AS_ASKED, Feature
from polyspan.tables.filling import fit_model
from polyspan.tables.frames import is_frame
from polyspan.tables.model import TableModel
from polyspan.tables.reading import Table, read_table, takes_nan
from polyspan.tables.results import ImputerResults, warn_about_empty

#: A column whose entries are predicted no better than this, relative to its mean or to its
#: frequencies, is named in a warning.
NOT_BETTER = 0.99


class SubspaceImputer(ImputerResults):
    """Fill the missing entries of a table of numbers, categories and dates.

    It can replace scikit-learn's `KNNImputer` and `IterativeImputer`. Every column is predicted
    from the others, in four ways: by a Gaussian of the columns; by a Gaussian of their ranks,
    which suits skewed columns; by several Gaussians, where there are at most 18 columns; and by
    trees, for what is not linear. How far each is trusted is
    decided for every column by predicting observed entries as if they were missing. Tables of many
    columns are filled by a mixture of subspaces of low dimension (`SubspaceMixture`) instead.

    Parameters
    ----------
    n_subspaces : int or "auto", default="auto"
        Number of subspaces of a mixture, which fills the table then. "auto": a mixture is used for
        tables of many columns only, and hidden entries choose its sizes.
    subspace_dim : int or "auto", default="auto"
        Dimension of each subspace.
    method : {"auto", "subspaces"}, default="auto"
        "auto": with trees where they take less than about a minute, from 1000 rows on only where a
        trial shows that they help. "subspaces": without, which takes a quarter to a twentieth of
        the time that trees take.
    feature_types : "auto", dict or list, default="auto"
        What the columns are: "number", "integer", "boolean", "category", "ordered" (category),
        "date", "duration", or "skip" for columns that are passed through. A dict from names or
        positions for some columns, or a list for all. "auto": as their types and values say; all
        columns of an array are numbers.
    n_fits : int, default=3
        Number of mixtures, from different starts, whose predictions are averaged.
    missing_values : int, float, np.nan, None or pandas.NA, default=np.nan
        What marks a missing entry; each of the last three stands for all three.
    add_indicator : bool, default=False
        Add columns that say where entries were missing, as `MissingIndicator` does.
    keep_empty_features : bool, default=False
        Keep columns without any observed entry instead of dropping them with a warning; numbers
        are filled with 0, and others, such as text, stay missing.
    random_state : int, RandomState instance or None, default=0
        Seed of what is chosen at random: rows, trees, hidden entries, starts.

    Attributes
    ----------
    feature_types_ : dict
        What every column is taken to be, by name or position.
    column_errors_ : dict
        Error of the filled columns, measured on observed entries that were predicted as if they
        were missing; relative to the mean of the column (root mean squared error), or to its
        frequencies (root of the Brier score). 1: no better than these.
    held_out_error_ : float
        Root mean square of these.
    n_subspaces_, subspace_dim_ : int
        The sizes that were used. One subspace of the largest dimension is a Gaussian.
    indicator_ : MissingIndicator or None
        Adds the columns of `add_indicator`.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string names.

    See Also
    --------
    pool_estimates : one estimate from several filled tables.
    SubspaceMixture : the mixture, with all its settings.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyspan import SubspaceImputer
    >>> table = pd.DataFrame({"cm": [150, 160, None, 180, 190, 170, 155, 185] * 4,
    ...                       "size": ["S", "S", "L", "L", "L", None, "S", "L"] * 4})
    >>> filled = SubspaceImputer().fit_transform(table)
    >>> int(filled.isna().sum().sum())
    0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_subspaces": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "subspace_dim": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "method": [StrOptions({"auto", "subspaces"})],
        "feature_types": [StrOptions({"auto"}), dict, "array-like"],
        "n_fits": [Interval(Integral, 1, None, closed="left")],
        "missing_values": [MissingValues()],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_subspaces: int | str = "auto",
        subspace_dim: int | str = "auto",
        *,
        method: str = "auto",
        feature_types: Any = "auto",
        n_fits: int = 3,
        missing_values: Any = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.method = method
        self.feature_types = feature_types
        self.n_fits = n_fits
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the observed entries.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Table with missing entries, as `missing_values` marks them.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        SubspaceImputer
            The fitted estimator.
        """
        table = read_table(self, X, reset=True)
        self._features = table.features
        self.feature_types_ = {one.name: one.kind for one in table.features}
        self.indicator_ = None
        if self.add_indicator:
            with plain_settings():
                marked = np.where(table.missing, np.nan, 0.0)
                self.indicator_ = MissingIndicator(error_on_new=False).fit(marked)
            self._check_indicator_names()
        rng = check_random_state(self.random_state)
        progress = FitProgress(self, X, y, 1, 2 * len(table.used) + 1)
        self._model = fit_model(self, table, rng, progress.ticker()) if table.used else None
        self._store_sizes(table)
        if is_frame(X):
            _warn_about_skipped(table.features)
        if not self.keep_empty_features:
            warn_about_empty(table.features)
        self._warn_about_columns(table)
        progress.end_start(0)
        progress.end()
        return self

    def _check_indicator_names(self) -> None:
        """Raise an error where a column already has the name of one that is added."""
        names, counts = np.unique(self.get_feature_names_out(), return_counts=True)
        if (counts > 1).any():
            raise ValueError(
                f"add_indicator adds columns that X has already: {first_ten(names[counts > 1])}; "
                "rename or drop those of X"
            )

    def _store_sizes(self, table: Table) -> None:
        """Store errors and sizes; warn where the table is too small for given sizes."""
        names = [self._features[j].name for j in table.used]
        model = self._model
        errors = [] if model is None else model.errors.tolist()
        self.column_errors_ = dict(zip(names, errors, strict=True))
        self.held_out_error_ = float(np.sqrt(np.mean(np.square(errors)))) if errors else 1.0
        self.n_subspaces_, self.subspace_dim_ = (1, 0) if model is None else model.sizes
        for name in ("n_subspaces", "subspace_dim"):
            wanted, used = getattr(self, name), getattr(self, f"{name}_")
            if wanted != "auto" and used < wanted:
                warn_user(
                    f"{name}={wanted} is too large for {len(table.missing)} rows and {len(names)} "
                    f"columns with entries: {used} is used"
                )

    def _warn_about_columns(self, table: Table) -> None:
        """Warn of columns that are filled no better than by their mean."""
        poor = [
            repr(name)
            for j, (name, error) in zip(table.used, self.column_errors_.items(), strict=True)
            if error >= NOT_BETTER and table.missing[:, j].any()
        ]
        if poor and isinstance(self._model, TableModel):
            warn_user(
                "no other column tells anything about "
                f"{first_ten(poor)}: filled with about the mean, or the most frequent value"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = takes_nan(self.missing_values)
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _warn_about_skipped(features: tuple[Feature, ...]) -> None:
    """Warn of columns of a frame that are passed through."""
    skipped = [
        f"{one.name!r} ({one.reason or one.kind})"
        for one in features
        if one.kind in ("skip", "constant") and one.reason != AS_ASKED
    ]
    if skipped:
        warn_user(
            f"columns that are not used: {first_ten(skipped)}; constant ones are filled with their "
            "value, the others are passed through as they are; feature_types says otherwise"
        )
