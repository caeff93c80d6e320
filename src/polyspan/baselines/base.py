"""Common code of methods that cluster a graph of samples and fit a subspace to each cluster."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, laplacian
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from polyspan.base.arrays import unit_rows
from polyspan.base.checks import check_subspace_dim, warn_user
from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.base.progress import FitProgress
from polyspan.graphs.spectra import cluster_graph, eigengap, least_eigenvectors
from polyspan.linear._solve.alternation import update_exactly
from polyspan.linear._solve.problem import prepare
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.looking import noise_variance

#: Steps that a fit reports: the graph, its clusters, their subspaces.
N_STEPS = 3


def estimate_n_clusters(affinity: scipy.sparse.csr_array, most: int, seed: int) -> int:
    """Return the number of clusters by the eigengap of the normalised Laplacian.

    Here a node without edges is a part of its own.
    """
    matrix = laplacian(affinity, normed=True).tocsr()
    return eigengap(least_eigenvectors(matrix, min(most + 1, affinity.shape[0]), seed)[0])


def gram_eigenvectors(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return eigenvalues, descending, and vectors of the smaller Gram matrix; whether XXᵀ is it.

    Directions that are rounding are left out; at least one stays.
    """
    of_samples = X.shape[0] <= X.shape[1]
    values, vectors = np.linalg.eigh(X @ X.T if of_samples else X.T @ X)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = max(1, int((values > values[0] * len(values) * np.finfo(values.dtype).eps).sum()))
    return np.maximum(values[:rank], 0.0), vectors[:, :rank], of_samples


def left_singular_vectors(X: np.ndarray) -> np.ndarray:
    """Return the left singular vectors of samples, by descending singular values."""
    values, vectors, of_samples = gram_eigenvectors(X)
    if of_samples:
        return vectors
    return np.asarray((X @ vectors) / np.sqrt(np.where(values > 0, values, 1.0)))


def leading_coordinates(X: np.ndarray, energy: float, least: int) -> np.ndarray:
    """Return samples in their leading singular directions, which hold a fraction of the energy.

    There are at least `least` of them, where the samples span so many.
    """
    values, vectors, of_samples = gram_eigenvectors(X)
    part = np.cumsum(values) / max(values.sum(), np.finfo(values.dtype).tiny)
    rank = max(int(np.searchsorted(part, energy)) + 1, least)
    if of_samples:
        return np.asarray(vectors[:, :rank] * np.sqrt(values[:rank]))
    return np.asarray(X @ vectors[:, :rank])


def cluster_bases(
    X: np.ndarray, labels: np.ndarray, n_subspaces: int, s: int, *, center: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading s principal directions of every cluster, and the mean.

    The basis of a cluster with fewer than s samples is completed by arbitrary directions.
    """
    problem, working = prepare(X, float("inf"), center=center)
    rank = problem.rows.like.shape[1]
    blank = np.stack([np.eye(rank, min(s, rank), dtype=X.dtype)] * n_subspaces)
    bases = update_exactly(problem, blank, labels[:, None], 0)
    return np.asarray(working.to_data(bases)), np.asarray(working.mean)


def warn_about_graph(graph: scipy.sparse.csr_array, n_clusters: int) -> None:
    """Warn about samples without edges, or about more components than clusters."""
    n_components, _ = connected_components(graph, directed=False)
    isolated = int((np.asarray(graph.sum(axis=1)).ravel() == 0).sum())
    if isolated:
        warn_user(
            f"{isolated} of {graph.shape[0]} samples have no neighbour in the graph and are "
            "labelled at random"
        )
    elif n_components > n_clusters:
        warn_user(
            f"the graph has {n_components} connected components, more than the {n_clusters} "
            "clusters asked for: components are joined at random"
        )


class GraphClustering(ClusterMixin, LinearUnion):  # type: ignore[misc]
    """Cluster the samples by an affinity, then take the principal directions of each cluster.

    Subclasses return the sparse, symmetric affinity of samples of norm 1 from `_affinity(X, seed)`.
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_subspaces": [Interval(Integral, 1, None, closed="left"), None],
        "subspace_dim": [Interval(Integral, 1, None, closed="left")],
        "max_subspaces": [Interval(Integral, 1, None, closed="left")],
        "assign_labels": [StrOptions({"kmeans", "cluster_qr"})],
        "center": ["boolean"],
        "random_state": ["random_state"],
    }

    def _most_clusters(self, n_samples: int) -> int:
        """Return the largest number of clusters that may be chosen."""
        return int(min(self.max_subspaces, n_samples - 1))

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples and find a subspace for every cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples without missing entries.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        object
            The fitted estimator.
        """
        X = self._validate(X, reset=True)
        check_subspace_dim(self.subspace_dim, X.shape[1])
        if self.n_subspaces is not None and self.n_subspaces > len(X):
            raise ValueError(f"n_subspaces={self.n_subspaces} is larger than n_samples={len(X)}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        progress = FitProgress(self, X, y, 1, N_STEPS)
        tick = progress.ticker()
        # In two steps, as all results so far: runs of ensembles differ with the last digit.
        largest = np.abs(X).max(axis=1, keepdims=True)
        graph = self._affinity(unit_rows(X / np.where(largest > 0, largest, 1.0)), seed)
        tick()
        n_subspaces = self.n_subspaces
        if n_subspaces is None:
            most = self._most_clusters(len(X))
            n_subspaces = estimate_n_clusters(graph, most, seed) if most > 0 else 1
        self.labels_ = cluster_graph(graph, n_subspaces, seed, self.assign_labels)
        tick()
        warn_about_graph(graph, n_subspaces)
        self.affinity_ = graph
        self.n_subspaces_ = n_subspaces
        self.bases_, self.mean_ = cluster_bases(
            X, self.labels_, n_subspaces, self.subspace_dim, center=self.center
        )
        self.noise_variance_ = noise_variance(self, X)
        tick()
        progress.end_start(0)
        progress.end()
        return self
