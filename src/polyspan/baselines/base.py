"""Methods that cluster samples by a graph: labels from it, subspaces from the labels."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from polyspan._sklearn import Interval, StrOptions, fit_context
from polyspan.baselines.affinity import estimate_n_clusters, spectral_labels
from polyspan.checks import check_subspace_dim, warn_user
from polyspan.union._solve.alternation import update_exactly
from polyspan.union._solve.problem import prepare
from polyspan.union.linear import LinearUnion


def cluster_bases(
    X: np.ndarray, labels: np.ndarray, n_subspaces: int, s: int, *, center: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading s principal directions of every cluster, and the mean.

    A cluster with fewer samples than s is completed by directions of no meaning.
    """
    problem, working = prepare(X, float("inf"), center=center)
    rank = problem.rows.like.shape[1]
    blank = np.stack([np.eye(rank, min(s, rank), dtype=X.dtype)] * n_subspaces)
    bases = update_exactly(problem, blank, labels[:, None], 0)
    return np.asarray(working.outward(bases)), np.asarray(working.mean)


class GraphClustering(ClusterMixin, LinearUnion):  # type: ignore[misc]
    """Cluster the samples by an affinity, then take the principal directions of each cluster."""

    n_subspaces: int | None
    subspace_dim: int
    max_subspaces: int
    assign_labels: str
    center: bool
    random_state: Any

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_subspaces": [Interval(Integral, 1, None, closed="left"), None],
        "subspace_dim": [Interval(Integral, 1, None, closed="left")],
        "max_subspaces": [Interval(Integral, 1, None, closed="left")],
        "assign_labels": [StrOptions({"kmeans", "cluster_qr"})],
        "center": ["boolean"],
        "random_state": ["random_state"],
    }

    def _affinity(self, X: np.ndarray) -> scipy.sparse.csr_array:
        """Return the sparse, symmetric affinity of samples of norm 1."""
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples and find a subspace for every cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        X = self._validate(X, reset=True)
        self._check_sizes(*X.shape)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        graph = self._affinity(unit_rows(X))
        n_subspaces = self.n_subspaces
        if n_subspaces is None:
            most = min(self.max_subspaces, len(X) - 1)
            n_subspaces = estimate_n_clusters(graph, most, seed) if most > 0 else 1
        labels, n_parts = spectral_labels(graph, n_subspaces, seed, self.assign_labels)
        self._warn_about_graph(graph, n_parts, n_subspaces)
        self.affinity_ = graph
        self.labels_ = labels
        self.n_subspaces_ = n_subspaces
        self.bases_, self.mean_ = cluster_bases(
            X, labels, n_subspaces, self.subspace_dim, center=self.center
        )
        return self

    def _check_sizes(self, n: int, m: int) -> None:
        check_subspace_dim(self.subspace_dim, m)
        if self.n_subspaces is not None and self.n_subspaces > n:
            raise ValueError(f"n_subspaces={self.n_subspaces} is larger than n_samples={n}")

    def _warn_about_graph(
        self, graph: scipy.sparse.csr_array, n_parts: int, n_subspaces: int
    ) -> None:
        isolated = int((np.asarray(graph.sum(axis=1)).ravel() == 0).sum())
        if isolated:
            warn_user(
                f"{isolated} of {graph.shape[0]} samples have no neighbour in the graph and are "
                "labelled at random"
            )
        elif n_parts > n_subspaces:
            warn_user(
                f"the graph falls into {n_parts} parts, more than the {n_subspaces} clusters asked "
                "for: parts are joined at random"
            )


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Scale every row to norm 1; a zero row stays zero."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1.0)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norms > 0, norms, 1.0))
