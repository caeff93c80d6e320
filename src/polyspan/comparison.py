"""Compare several estimators on one data set by the same measures."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from polyspan.base.arrays import as_array
from polyspan.base.inputs import as_dispatched
from polyspan.base.optional import import_optional
from polyspan.base.private_sklearn import check_parameters
from polyspan.base.progress import progress_bar
from polyspan.metrics import (
    average_subspace_distance,
    clustering_error,
    relative_reconstruction_error,
)
from polyspan.summaries import card, table_html

#: What can be measured, in the order of the columns; for all of them lower is better.
MEASURES = ("seconds", "label_error", "d_avg", "reconstruction_error")


@dataclass(frozen=True)
class Comparison:
    """The measures that `compare` took, one row per method.

    Parameters
    ----------
    rows : list of dict
        One dictionary per method, with the keys `method`, the measures (None where one does not
        apply) and `error` (None, or a message).
    """

    rows: list[dict[str, Any]]

    @property
    def measures(self) -> list[str]:
        """The measures that at least one method has."""
        return [name for name in MEASURES if any(row[name] is not None for row in self.rows)]

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame, one row per method.

        Returns
        -------
        DataFrame
            Measures and errors as columns, with the names of the methods as index.
        """
        pd = import_optional("pandas", "to_pandas")
        return pd.DataFrame(self.rows).set_index("method")

    def plot(self, axes: Any = None) -> Any:
        """Draw one panel of bars per measure; see `polyspan.plotting.plot_comparison`.

        Parameters
        ----------
        axes : array of matplotlib axes, default=None
            One for each of `measures`; None: a new figure.

        Returns
        -------
        array of matplotlib axes
            The axes that were drawn on.
        """
        from polyspan.plotting import plot_comparison

        return plot_comparison(self, axes)

    def __str__(self) -> str:
        width = max((len(row["method"]) for row in self.rows), default=6)
        lines = [" ".join([" " * width, *(f"{name:>20s}" for name in self.measures)])]
        for row in self.rows:
            if row["error"] is not None:
                lines.append(f"{row['method']:{width}s} failed: {row['error']}")
                continue
            cells = ["-" if row[name] is None else f"{row[name]:.4g}" for name in self.measures]
            lines.append(" ".join([f"{row['method']:{width}s}", *(f"{c:>20s}" for c in cells)]))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table for a notebook; the lowest value of each measure is bold."""
        names = self.measures
        failed = any(row["error"] is not None for row in self.rows)
        least = {
            name: min(row[name] for row in self.rows if row[name] is not None) for name in names
        }
        body, best = [], set()
        for i, row in enumerate(self.rows):
            cells = ["–" if row[name] is None else f"{row[name]:.4g}" for name in names]
            body.append([row["method"], *cells, *([row["error"] or ""] if failed else [])])
            best |= {(i, j) for j, name in enumerate(names, 1) if row[name] == least[name]}
        head = ["method", *(name.replace("_", " ") for name in names), *(["error"] * failed)]
        return card(table_html(head, body, best), "<p>Bold: the lowest, which is best.</p>")


def compare(
    X: Any,
    methods: Mapping[str, Any] | Sequence[Any],
    *,
    labels: Any = None,
    bases: Any = None,
    X_clean: Any = None,
    progress: bool = False,
) -> Comparison:
    """Fit several estimators to the same data and measure all of them in the same way.

    If a method fails, its row holds the error, and the other methods are still run.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples that every method is fitted to.
    methods : mapping of names to estimators, or sequence of estimators
        Estimators, not classes. They are cloned, never changed.
    labels : array-like of shape (n_samples,), default=None
        True labels, for `label_error` of methods with `labels_`.
    bases : array of shape (n_subspaces, n_features, subspace_dim), default=None
        True bases, for `d_avg` of methods with `bases_` of that shape.
    X_clean : array-like of the shape of X, default=None
        The samples without noise, for `reconstruction_error` of methods with `reconstruct`.
    progress : bool, default=False
        Show a progress bar (needs rich: `pip install rich`).

    Returns
    -------
    Comparison
        The measures of all methods: print them, or take `rows`, `to_pandas()`, `plot()`.

    Examples
    --------
    >>> from polyspan import MiCUSaL, compare
    >>> from polyspan.baselines import KSubspaces
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> data = make_union_of_subspaces((60, 60), n_features=30, subspace_dim=3, spread=0.5,
    ...                                noise=0.02, random_state=0)
    >>> methods = {"ours": MiCUSaL(2, 3, random_state=0), "far": KSubspaces(2, 30)}
    >>> result = compare(data.X, methods, labels=data.labels)
    >>> [row["label_error"] for row in result.rows]
    [0.0, None]
    >>> result.rows[1]["error"].startswith("ValueError: subspace_dim=30")
    True
    """
    check_parameters(
        "compare",
        methods=(methods, [Mapping, Sequence]),
        progress=(progress, ["boolean"]),
    )
    X, labels = as_dispatched(X), as_dispatched(labels, "labels")
    bases, X_clean = as_dispatched(bases, "bases"), as_dispatched(X_clean, "X_clean")
    named = list(_with_names(methods))
    for name, estimator in named:
        if isinstance(estimator, type):
            kind = estimator.__name__
            raise TypeError(f"methods holds the class {kind}: give an estimator, {kind}(...)")
        if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
            raise TypeError(f"methods holds {estimator!r} ({name}), which is no estimator")
    rows = []
    with progress_bar(progress, len(named), "compare") as advance:
        for name, estimator in named:
            advance(f"compare: {name}", advance=0)
            rows.append(_measure(name, estimator, X, labels, bases, X_clean))
            advance()
    return Comparison(rows)


def _with_names(methods: Mapping[str, Any] | Sequence[Any]) -> Iterable[tuple[str, Any]]:
    """Yield every estimator with a unique name."""
    if isinstance(methods, Mapping):
        yield from ((str(name), estimator) for name, estimator in methods.items())
        return
    seen: dict[str, int] = {}
    for estimator in methods:
        name = type(estimator).__name__
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name} {seen[name]}"), estimator


def _measure(
    name: str, estimator: Any, X: Any, labels: Any, bases: Any, X_clean: Any
) -> dict[str, Any]:
    """Fit one method and take its measures."""
    row: dict[str, Any] = {"method": name, **dict.fromkeys(MEASURES), "error": None}
    try:
        model = clone(estimator)
        begin = time.perf_counter()
        model.fit(X)
        row["seconds"] = time.perf_counter() - begin
        if labels is not None and hasattr(model, "labels_"):
            row["label_error"] = clustering_error(labels, model.labels_)
        if bases is not None and np.shape(getattr(model, "bases_", ())) == np.shape(bases):
            row["d_avg"] = average_subspace_distance(model.bases_, bases)
        if X_clean is not None and hasattr(model, "reconstruct"):
            row["reconstruction_error"] = relative_reconstruction_error(
                X_clean, as_array(model.reconstruct(X))
            )
    except Exception as error:  # the other methods are still run
        row["error"] = f"{type(error).__name__}: {error}"
    return row
