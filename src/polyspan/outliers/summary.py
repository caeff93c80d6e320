"""What a fitted outlier detector says, in words and as a table; a method of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.checks import first_ten
from polyspan.summaries import Summary, counted

if TYPE_CHECKING:
    from polyspan.outliers.detector import SubspaceOutlierDetector

SAYS_MORE = "summary(X) says which rows of X are outliers, and which column says so"
#: Rows in the table.
MOST_ROWS = 10


def summary(self: SubspaceOutlierDetector, X: Any = None) -> Summary:
    """Return in words what was learned, and with X which rows do not belong, and why.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), default=None
        Samples, such as those of the fit, which are not kept.

    Returns
    -------
    Summary
        Sentences and, with X, a table of the ten most surprising rows; `print` shows them as text.
        `table` has the columns "row" (counted from 0), "score", "outlier" ("yes" or "no") and
        "column" (the one that contributes most to the surprise).

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import SubspaceOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[7] = 9.0
    >>> found = SubspaceOutlierDetector(contamination=0.01).fit(X).summary(X)
    >>> print(found.sentences[-1])
    Outliers are 1 of 100 rows, counted from 0, the most surprising first: 7.
    """
    check_is_fitted(self)
    facts = tuple(_facts(self))
    title = f"{type(self).__name__}: {facts[0][1]}."
    if X is None:
        return Summary((title, f"{facts[2][1]}.".capitalize(), f"{SAYS_MORE}."), facts=facts)
    values = self._validate(X, reset=False, method="summary")
    scores = self._scores(values)
    order = np.argsort(scores, kind="stable")
    found = order[: int((scores < self.offset_).sum())]
    which = "." if not len(found) else f", the most surprising first: {first_ten(found)}."
    sure = f"Outliers are {len(found)} of {counted(len(scores), 'row')}, counted from 0{which}"
    return Summary((title, sure), _table(self, values, scores, order[:MOST_ROWS]), facts)


def _facts(detector: Any) -> Iterator[tuple[str, str]]:
    n_used, n = len(detector._columns.used), detector.n_features_in_
    yield "Columns", f"{counted(n, 'column')}, {n_used} of which vary"
    ensemble = detector._ensemble
    n_members = 0 if ensemble is None else sum(len(one) for one in ensemble.sets)
    yield "Learned", f"{counted(n_members, 'mixture')} of Gaussians"
    least = f"{detector.offset_:.3g}"
    yield "Threshold", f"rows with a score below {least} are outliers; a usual row has -1"
    yield "How sure", SAYS_MORE


def _table(
    detector: Any, values: np.ndarray, scores: np.ndarray, rows: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the scores of some rows, and the column that says most about each."""
    names = getattr(detector, "feature_names_in_", np.arange(values.shape[1]))
    parts = detector._parts(values[rows])
    most = np.where(parts.max(axis=1) > 0, names[parts.argmax(axis=1)].astype(str), "")
    return {
        "row": rows,
        "score": scores[rows],
        "outlier": np.where(scores[rows] < detector.offset_, "yes", "no").astype(object),
        "column": most.astype(object),
    }
