"""SubspaceImputer: fills the missing entries of a table, as scikit-learn's imputers do."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import MissingIndicator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import FLOAT_DTYPES, check_is_fitted, validate_data

from polyspan._sklearn import (
    Interval,
    MissingValues,
    StrOptions,
    check_feature_names_in,
    fit_context,
    get_mask,
    is_pandas_na,
    is_scalar_nan,
    plain_settings,
)
from polyspan.checks import refuse_lazy, warn_user
from polyspan.data.prediction import as_samples
from polyspan.inputs import naming_columns, require_numpy
from polyspan.mixture.filling import Fill, Scaling
from polyspan.mixture.size_search import choose_fill, sizes_to_try


class SubspaceImputer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill missing entries with their expected values under a mixture of subspaces.

    It can replace scikit-learn's `KNNImputer` and `IterativeImputer`. Features are scaled to unit
    variance. `fit` hides some observed entries and chooses the number and the dimension of the
    subspaces that predict these best; tables with few samples get one subspace. The hidden entries
    also decide, for every feature, how far the prediction is shrunk to the mean of the column.

    Parameters
    ----------
    n_subspaces : int or "auto", default="auto"
        Number of subspaces; "auto": chosen by hidden entries.
    subspace_dim : int or "auto", default="auto"
        Dimension of each subspace; "auto": chosen by hidden entries.
    n_fits : int, default=3
        Number of mixtures, from different starts, whose predictions are averaged; with one subspace
        there is one. Each takes the same time; the third gains about 1 % on digits.
    missing_values : int, float, np.nan, None or pandas.NA, default=np.nan
        What marks a missing entry; each of the last three stands for all three.
    add_indicator : bool, default=False
        Add columns that say where entries were missing, as `MissingIndicator` does.
    keep_empty_features : bool, default=False
        Keep columns without any observed entry, filled with 0, instead of dropping them.
    random_state : int, RandomState instance or None, default=0
        Seed of the hidden entries and of the starts.

    Attributes
    ----------
    n_subspaces_, subspace_dim_ : int
        The sizes that were chosen.
    held_out_error_ : float
        Root mean squared error of the hidden entries, on standardised features: a value below 1 is
        better than the mean of the column.
    indicator_ : MissingIndicator or None
        Adds the columns of `add_indicator`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    See Also
    --------
    SubspaceMixture : the model that this class fits, with all its settings.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import SubspaceImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1)) @ np.ones((1, 4)) + 0.1 * rng.standard_normal((200, 4))
    >>> holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> filled = SubspaceImputer().fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 1.0)
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_subspaces": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "subspace_dim": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
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
        n_fits: int = 3,
        missing_values: Any = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.n_fits = n_fits
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : SubspaceImputer
        """
        X = self._validate(X, reset=True)
        self.indicator_ = None
        if self.add_indicator:
            with plain_settings():
                self.indicator_ = MissingIndicator(error_on_new=False).fit(X)
        self._seen = ~np.isnan(X).all(axis=0)
        rng = check_random_state(self.random_state)
        X = X[:, self._seen]
        scaling = Scaling.of(X)
        sizes = sizes_to_try(len(X), X.shape[1], self.n_subspaces, self.subspace_dim)
        self._fill: Fill = choose_fill(scaling, X, sizes, self.n_fits, rng)
        self.n_subspaces_, self.subspace_dim_ = self._fill.sizes
        self._warn_about_sizes(*X.shape)
        self.held_out_error_ = self._fill.error
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Fill the missing entries; observed entries do not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        missing = np.isnan(X)
        out = np.where(missing, X.dtype.type(0), X)
        if missing[:, self._seen].any():
            out[:, self._seen] = self._fill.impute(X[:, self._seen])
        if not self.keep_empty_features:
            out = out[:, self._seen]
        if self.indicator_ is not None:
            with plain_settings():
                indicators = self.indicator_.transform(X)
            out = np.hstack([out, indicators.astype(out.dtype)])
        return np.asarray(out)

    def _warn_about_sizes(self, n_samples: int, n_features: int) -> None:
        """Warn where the table is too small for the given sizes."""
        for name in ("n_subspaces", "subspace_dim"):
            wanted, used = getattr(self, name), getattr(self, f"{name}_")
            if wanted != "auto" and used < wanted:
                warn_user(
                    f"{name}={wanted} is too large for {n_samples} rows and {n_features} columns "
                    f"with entries: {used} is used"
                )

    @as_samples
    def impute_std(self, X: Any) -> np.ndarray:
        """Return the standard deviation of every filled entry.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        std : ndarray or frame of shape (n_samples, n_features)
            A frame where `set_output` asks for one.
            Standard deviation of the missing entries given the observed ones, in the units of the
            column, scaled to match the errors of entries that `fit` hid; 0 for observed entries
            and in columns that were constant in `fit`, NaN in columns that were never observed.
            The columns are those of X, whatever `transform` drops or adds.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        out = np.where(np.isnan(X), np.nan, np.zeros(X.shape, dtype=X.dtype))
        out[:, self._seen] = self._fill.standard_deviations(X[:, self._seen])
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the result.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
        """
        check_is_fitted(self)
        names = check_feature_names_in(self, input_features)
        kept = names if self.keep_empty_features else names[self._seen]
        if self.indicator_ is None:
            return np.asarray(kept)
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    def _validate(self, X: Any, *, reset: bool) -> np.ndarray:
        """Check the data, and return them with NaN where entries are missing."""
        refuse_lazy(self, X)
        require_numpy(type(self).__name__, X=X)
        lenient = self._takes_nan()
        given = X
        with naming_columns(given):
            X = check_array(
                _nan_for_none(X) if lenient else X,
                dtype=FLOAT_DTYPES,
                ensure_all_finite="allow-nan" if lenient else True,
                input_name="X",
                estimator=self,
            )
        validate_data(self, given, reset=reset, skip_check_array=True)
        if not lenient:  # otherwise None and pandas' NA are NaN already
            X = np.where(get_mask(X, self.missing_values), X.dtype.type(np.nan), X)
        return np.asarray(X)

    def _takes_nan(self) -> bool:
        marker = self.missing_values
        return marker is None or is_pandas_na(marker) or is_scalar_nan(marker)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_nan()
        return tags


def _nan_for_none(X: Any) -> Any:
    """Replace None and pandas' NA, which a table of mixed types holds as objects, by NaN."""
    dtypes = getattr(X, "dtypes", None)
    dtypes = [getattr(X, "dtype", None)] if dtypes is None else list(dtypes)
    if isinstance(X, list | tuple) or any(dtype == np.dtype(object) for dtype in dtypes if dtype):
        table = np.array(X, dtype=object)
        empty = np.frompyfunc(lambda entry: entry is None or is_pandas_na(entry), 1, 1)(table)
        return np.where(np.asarray(empty, dtype=bool), np.nan, table)
    return X
