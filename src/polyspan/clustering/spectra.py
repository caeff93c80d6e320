"""Spectral clustering of one graph, and how clearly its spectrum separates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from polyspan._sklearn import plain_settings
from polyspan.arrays import is_numpy, moved_to, some_eigenpairs, to_numpy, transpose
from polyspan.clustering.coordinates import unit_rows as unit_rows

# Starts of k-means in an embedding: this many, or as many as there are clusters. Of many clusters
# few starts find all: with 10 starts two of 38 faces were often joined.
KMEANS_STARTS = 10
# Below this many nodes a dense eigensolver is as fast.
DENSE_BELOW = 400
# Before SciPy 1.17 Lanczos restarts are not seeded: there, up to this many nodes, the dense one.
UNSEEDED_ABOVE = 3000
# Added to 1 - λ of the next eigenvalue: a graph that falls apart has no infinite gap.
GAP_FLOOR = 0.003
# Below this fraction of the largest entropy of cluster sizes a member splits off a few samples.
LEAST_ENTROPY = 0.5

#: A symmetric affinity with a zero diagonal: a dense array of any namespace, or a sparse one.
Graph = Any


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenpairs of D^-½WD^-½, in descending order."""

    values: np.ndarray
    vectors: np.ndarray

    def gap(self, n_clusters: int) -> float:
        """Return the gap after so many eigenvalues, relative to what is left up to 1."""
        here, after = self.values[n_clusters - 1], self.values[n_clusters]
        return float(max(0.0, (here - after) / (1.0 - after + GAP_FLOOR)))


def leading_spectrum(graph: Graph, k: int, seed: int) -> Spectrum:
    """Return the leading k eigenpairs of the normalised affinity, the same bits every time.

    A graph in parts has the eigenvalue 1 once for each part, and Lanczos iterations miss equal
    eigenvalues: so every part has its own spectrum, and the largest values of all are kept. If
    there are more than k parts, those with the most nodes count. A node without edges has a row of
    zeros. A dense graph may be on an accelerator: then it is multiplied there.
    """
    n = int(graph.shape[0])
    k = min(k, n)
    parts = _largest_parts(graph, k)
    if len(parts) == 1 and len(parts[0]) == n:
        return _of_part(graph, k, seed)
    # Each part with edges has one eigenvalue 1, so no part has more than this many among k.
    most = k + 1 - max(1, sum(len(nodes) > 1 for nodes in parts))
    spectra = [_of_part(_induced(graph, p), min(most, len(p)), seed) for p in parts]
    values = np.concatenate([spectrum.values for spectrum in spectra])
    part_of = np.repeat(np.arange(len(parts)), [len(one.values) for one in spectra])
    column_of = np.concatenate([np.arange(len(one.values)) for one in spectra])
    order = np.argsort(-values, kind="stable")[:k]
    vectors = np.zeros((n, len(order)))
    for j, i in enumerate(order):
        vectors[parts[part_of[i]], j] = spectra[part_of[i]].vectors[:, column_of[i]]
    return Spectrum(values[order], vectors)


def _largest_parts(graph: Graph, k: int) -> list[np.ndarray]:
    """Return the nodes of the k largest connected parts, the largest first."""
    n = int(graph.shape[0])
    if not scipy.sparse.issparse(graph):
        first = to_numpy(graph[0, :])
        if np.count_nonzero(first[1:]) == n - 1:  # one node is joined to all others
            return [np.arange(n)]
        graph = scipy.sparse.csr_array(to_numpy(graph) > 0)
    _, part_of = connected_components(graph, directed=False)
    largest = np.argsort(-np.bincount(part_of), kind="stable")[:k]
    return [np.flatnonzero(part_of == part) for part in largest]


def _induced(graph: Graph, nodes: np.ndarray) -> Graph:
    """Return the graph of some nodes."""
    if scipy.sparse.issparse(graph):
        return graph[nodes][:, nodes]
    if is_numpy(graph):
        return graph[np.ix_(nodes, nodes)]
    return moved_to(to_numpy(graph)[np.ix_(nodes, nodes)], graph)


def _of_part(graph: Graph, k: int, seed: int) -> Spectrum:
    """Return the leading k eigenpairs of a graph that is connected."""
    n = int(graph.shape[0])
    seeded = "rng" in signature(eigsh).parameters  # since SciPy 1.17
    if n < DENSE_BELOW or k >= n - 1 or (not seeded and n <= UNSEEDED_ABOVE):
        dense = graph.toarray() if scipy.sparse.issparse(graph) else to_numpy(graph)
        roots = _inverse_roots(dense.sum(axis=1))
        normalised = dense * roots[:, None] * roots
        values, vectors = some_eigenpairs(normalised, n - k, n - 1)
        return Spectrum(values[::-1], vectors[:, ::-1])
    multiply = _multiplication(graph)
    roots = _inverse_roots(multiply(np.ones(n)))
    operator = LinearOperator(
        (n, n), lambda x: roots * multiply(roots * x.ravel()), dtype=np.float64
    )
    return _lanczos(operator, k, seed, {"rng": np.random.default_rng(seed)} if seeded else {})


def _inverse_roots(degrees: np.ndarray) -> np.ndarray:
    roots = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    return np.asarray(np.where(degrees > 0, roots, 0.0))


def _multiplication(graph: Graph) -> Callable[[np.ndarray], np.ndarray]:
    """Return the product with vectors of NumPy, made where the graph is."""
    if scipy.sparse.issparse(graph) or is_numpy(graph):
        return lambda x: graph @ x
    return lambda x: to_numpy(graph @ moved_to(x, graph, graph.dtype)).astype(np.float64)


def _lanczos(operator: LinearOperator, k: int, seed: int, seeded: dict[str, Any]) -> Spectrum:
    """Return the leading eigenpairs; what has not converged has vectors of zeros, and no gap."""
    n = operator.shape[0]
    start = np.random.RandomState(seed).uniform(-1, 1, n)
    try:
        values, vectors = eigsh(
            operator, k, which="LA", v0=start, tol=1e-6, ncv=min(n, max(3 * k, 40)),
            maxiter=2000, **seeded,
        )  # fmt: skip
    except ArpackNoConvergence as error:
        found = np.argsort(error.eigenvalues)
        values, vectors = error.eigenvalues[found], error.eigenvectors[:, found]
        missing = k - len(values)
        lowest = values[0] if len(values) else 0.0
        values = np.concatenate([np.full(missing, lowest), values])
        vectors = np.concatenate([np.zeros((n, missing)), vectors.reshape(n, -1)], axis=1)
    return Spectrum(np.asarray(values)[::-1], np.asarray(vectors)[:, ::-1])


def cluster_embedding(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Return labels by k-means of rows scaled to norm 1."""
    starts = max(KMEANS_STARTS, n_clusters)
    kmeans = KMeans(n_clusters, n_init=starts, random_state=seed)
    # With several threads k-means sums in the order in which they end.
    with plain_settings(), threadpool_limits(1, "openmp"):
        return np.asarray(kmeans.fit_predict(unit_rows(vectors)), dtype=np.int64)


def size_entropy(labels: np.ndarray, n_clusters: int) -> float:
    """Return the entropy of the cluster sizes, divided by its largest value."""
    sizes = np.bincount(labels, minlength=n_clusters) / len(labels)
    sizes = sizes[sizes > 0]
    return float(-(sizes * np.log(sizes)).sum() / np.log(n_clusters))


def one_hot(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a matrix with a one at the label of every row."""
    return np.asarray(np.eye(n_clusters)[labels])


def agreement_embedding(blocks: list[np.ndarray], n_clusters: int) -> Any:
    """Return leading left singular vectors of weighted one-hot labels, normalised by degree."""
    H = np.concatenate(blocks, axis=1)
    degrees = H @ H.sum(axis=0)
    H = H / np.sqrt(np.where(degrees > 0, degrees, 1.0))[:, None]
    values, vectors = np.linalg.eigh(transpose(H) @ H)
    values, vectors = values[::-1][:n_clusters], vectors[:, ::-1][:, :n_clusters]
    return (H @ vectors) / np.sqrt(np.maximum(values, 1e-12))
