"""What a fitted imputer says of the columns, in words and as a table; a method of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.checks import first_ten
from polyspan.summaries import Summary, counted
from polyspan.tables.filling import SubspaceModel
from polyspan.tables.model import TableModel

if TYPE_CHECKING:
    from polyspan.tables.results import ImputerResults

#: Facts that are printed above the table, which has all others.
SENTENCES = ("How sure", "Filled worst")
#: Words for columns of a kind, one and many.
KINDS = {
    "category": ("category", "categories"),
    "ordered": ("ordered category", "ordered categories"),
    "skip": ("skipped", "skipped"),
    "constant": ("constant", "constant"),
    "empty": ("without an entry", "without an entry"),
}


def summary(self: ImputerResults) -> Summary:
    """Return in words and as a table what the columns are, and how well each can be filled.

    Returns
    -------
    Summary
        Sentences and a table; `print` shows them as text. `table` has one row per column of the
        fit: "column", "kind" (see `feature_types`) and "error" (`column_errors_`; NaN for columns
        that are not predicted).

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import SubspaceImputer
    >>> x = np.linspace(0.0, 1.0, 60)
    >>> X = np.column_stack([x, 2.0 * x, np.ones(60)])
    >>> X[0, 0] = np.nan
    >>> print(SubspaceImputer().fit(X).summary().sentences[0])
    SubspaceImputer: 3 columns, 2 numbers, 1 constant.
    """
    check_is_fitted(self)
    names = [str(one.name) for one in self._features]
    errors = [self.column_errors_.get(one.name, np.nan) for one in self._features]
    table = {
        "column": np.array(names, dtype=object),
        "kind": np.array([one.kind for one in self._features], dtype=object),
        "error": np.array(errors, dtype=np.float64),
    }
    facts = tuple(_facts(self, names, table["error"]))
    named = dict(facts)
    sentences = [f"{type(self).__name__}: {named['Columns']}."]
    sentences += [f"{name}: {named[name]}." for name in SENTENCES if name in named]
    return Summary(tuple(sentences), table, facts)


def _facts(imputer: Any, names: list[str], errors: np.ndarray) -> Iterator[tuple[str, str]]:
    counts = Counter(one.kind for one in imputer._features)
    kinds = ", ".join(
        f"{n} {KINDS.get(kind, (kind, f'{kind}s'))[n != 1]}" for kind, n in counts.items()
    )
    yield "Columns", f"{counted(len(names), 'column')}, {kinds}"
    predicted = np.flatnonzero(~np.isnan(errors))
    if imputer._model is None or not len(predicted):
        yield "Filled by", "nothing, since no column varies"
        return
    yield "Filled by", _how(imputer._model)
    error = f"the error is {imputer.held_out_error_:.2f} of that of the mean, or of the frequencies"
    yield "How sure", f"on entries that were hidden {error}"
    order = predicted[np.argsort(errors[predicted], kind="stable")]
    if len(order) > 1 and errors[order[0]] < errors[order[-1]]:
        yield "Filled best", f"{names[order[0]]} (error {errors[order[0]]:.2f})"
        yield "Filled worst", f"{names[order[-1]]} (error {errors[order[-1]]:.2f})"
    left = [name for name, one in zip(names, imputer._features, strict=True) if not one.is_used]
    if left:
        yield "Not predicted", first_ten(left)


def _how(model: TableModel | SubspaceModel) -> str:
    """Say what fills the table."""
    if not isinstance(model, TableModel):
        n, dim = model.sizes
        return f"{counted(n, 'subspace')} of dimension {dim}"
    parts = ["a Gaussian of the columns", "one of their ranks"]
    if model.components is not None:
        parts.append("several Gaussians")
    if model.trees is not None:
        parts.append("trees")
    return f"{', '.join(parts[:-1])} and {parts[-1]}, weighted for every column"
