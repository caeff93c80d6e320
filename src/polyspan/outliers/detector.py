"""SubspaceOutlierDetector: samples that do not belong, and the columns that say so."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.base.checks import check_columns_observed, validate_samples
from polyspan.base.private_sklearn import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    check_parameters,
    fit_context,
    html_with_summary,
)
from polyspan.base.progress import FitProgress
from polyspan.data.prediction import as_samples
from polyspan.outliers.learning import MOST_SETS, Columns, learn_ensemble
from polyspan.outliers.summary import summary

# With contamination="auto" a row is an outlier where the logarithm of its surprise is this many
# standard deviations above the median of the training rows.
AUTO_DEVIATIONS = 3.0


class SubspaceOutlierDetector(
    CallbackSupportMixin,  # type: ignore[misc]
    OutlierMixin,  # type: ignore[misc]
    OneToOneFeatureMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""Find samples that do not belong, and say which of their columns say so.

    It needs no labels and no sizes, and takes data with holes (NaN). The rows are modelled by an
    average over mixtures of low-rank Gaussians. The surprise of a row x is

    .. math:: \log \frac{\sum_l \pi_l N(\mu_l; \mu_l, C_l)}{\sum_l \pi_l N(x; \mu_l, C_l)}

    over its observed entries: 0 at the centre, and for one Gaussian half the squared Mahalanobis
    distance. It is multiplied by m/o where only o of m entries are observed, and divided by the
    surprise of a usual row. The score of a row is minus this ratio: about -1 for usual rows.

    Parameters
    ----------
    contamination : "auto" or float in (0, 0.5], default="auto"
        Fraction of outliers among the training rows. "auto": rows are outliers where the logarithm
        of their surprise is more than three standard deviations above the median; standard
        deviation and median are those of the training rows, estimated robustly.
    standardize : "auto" or bool, default="auto"
        Whether every column is divided by its standard deviation. False: all columns are in one
        unit, as pixels are. "auto": True, except where at least half of the columns have one range.
    random_state : int, RandomState instance or None, default=0
        Seed of the starts and of the folds and parts of the rows.

    Attributes
    ----------
    offset_ : float
        Rows with a lower score are outliers.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string names.

    See Also
    --------
    SubspaceMixture : one mixture, with all its settings.

    Notes
    -----
    A new row is judged by mixtures that each learned from four of five folds of the rows. A row
    that was in `fit`, bit for bit, is judged by others, which did not learn from it: each learned
    from a third of the rows, without the 5 % that are most surprising. So neither an outlier among
    the training rows nor a few of them beside each other look normal because a mixture was fitted
    to them. To learn, holes are filled from the nearest rows; rows are judged by their observed
    entries alone. Columns that are constant in `fit` take no part. Rows without an observed entry
    get the score -1.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import SubspaceOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(170, 10, 200)
    >>> X = np.column_stack([height, 0.9 * height - 90 + rng.normal(0, 4, 200)])
    >>> X[0] = 190.0, 50.0  # both values are usual, but not together
    >>> detector = SubspaceOutlierDetector(contamination=0.01).fit(X)
    >>> int(detector.score_samples(X).argmin())
    0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "standardize": [StrOptions({"auto"}), "boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        contamination: Any = "auto",
        standardize: Any = "auto",
        random_state: Any = 0,
    ) -> None:
        self.contamination = contamination
        self.standardize = standardize
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        SubspaceOutlierDetector
            The fitted estimator.
        """
        X = self._validate(X, reset=True)
        check_columns_observed(np.isnan(X))
        rng = check_random_state(self.random_state)
        progress = FitProgress(self, X, y, 1, MOST_SETS)
        self._columns = Columns.of(X, self.standardize)
        self._center = self._columns.center
        T = self._columns.standardise(X)
        self._ensemble = learn_ensemble(X, T, rng, progress.ticker()) if T.shape[1] else None
        self.offset_ = self._offset(self._scores(X))
        progress.end_start(0)
        progress.end()
        return self

    def _offset(self, scores: np.ndarray) -> float:
        if self.contamination != "auto":
            return float(np.percentile(scores, 100.0 * self.contamination))
        logs = np.log(np.maximum(-scores, 1e-12))
        middle = np.median(logs)
        spread = 1.4826 * np.median(np.abs(logs - middle))
        return float(-np.exp(middle + AUTO_DEVIATIONS * spread))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the surprise of every row; the higher the more normal, -1 for a usual row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores, which are never positive.
        """
        return self._scores(self._validate(X, reset=False, method="score_samples"))

    def _scores(self, X: np.ndarray) -> np.ndarray:
        T = self._columns.standardise(X)
        scores = np.full(len(X), -1.0)
        if self._ensemble is not None:
            some = ~np.isnan(T).all(axis=1)
            scores[some] = -self._ensemble.judge(X[some], T[some])
        return scores

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score minus `offset_`: negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores relative to the threshold: negative for outliers, else 0 or positive.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for outliers and 1 for the other rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels: -1 where `decision_function` is negative, else 1.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    @as_samples
    def contributions(self, X: Any) -> Any:
        """Return how much every column contributes to the surprise of every row.

        A column contributes much where the other columns of the row predict another value. Under
        one Gaussian, if a single entry is off the mean, its column contributes most.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Contributions, which are never negative; 0 for missing entries and for columns that
            were constant in `fit`. The sum of a row is minus its score. A frame where `set_output`
            asks for one.
        """
        return self._parts(self._validate(X, reset=False, method="contributions"))

    def _parts(self, X: np.ndarray) -> np.ndarray:
        """Return the contributions of the columns of checked rows."""
        T = self._columns.standardise(X)
        found = np.zeros(X.shape)
        if self._ensemble is not None:
            found[:, self._columns.used] = self._ensemble.judge(X, T, by_column=True)
        return found

    summary = summary
    _short_summary = summary
    _html_repr = html_with_summary  # of scikit-learn, for notebooks

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `contributions` returns, as `set_output` of scikit-learn's transformers.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            Container of the result: that of the input, or a frame. None: no change.

        Returns
        -------
        SubspaceOutlierDetector
            The estimator itself.
        """
        check_parameters(
            "set_output",
            transform=(transform, [StrOptions({"default", "pandas", "polars"}), None]),
        )
        if transform is not None:  # under the name that scikit-learn reads and clones
            self._sklearn_output_config = {"transform": transform}
        return self

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> np.ndarray:
        if not reset:
            check_is_fitted(self)
        return np.asarray(
            validate_samples(self, X, reset=reset, method=method, fitted="_center", double=True)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
