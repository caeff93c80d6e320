"""Eigenpairs of a graph, the same bits every time, and clusters of its nodes.

A graph in parts has its extreme eigenvalue once for each part. A search for all of them together
would miss some of these, or return another mixture of their vectors every time: so every part has
its own spectrum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.cluster import KMeans

from polyspan.base.arrays import (
    is_numpy,
    moved_to,
    one_hot,
    one_openmp_thread,
    some_eigenpairs,
    to_numpy,
    unit_rows,
)
from polyspan.base.private_sklearn import cluster_qr, plain_settings

# Starts of k-means in an embedding.
KMEANS_STARTS = 10
# Below this many nodes a dense eigensolver is as fast: of an affinity, and of a Laplacian.
DENSE_BELOW, DENSE_LAPLACIAN = 400, 500
# Where ARPACK restarts, or eigenvalues are equal, it goes on from random vectors, whose seed SciPy
# takes since 1.17 only. Before, a dense solver serves: for an affinity up to this many nodes.
SEEDED = "rng" in signature(eigsh).parameters
UNSEEDED_ABOVE = 3000
# From this fraction of entries on, products with a dense array are faster than a factorisation.
DENSE_FRACTION = 0.3
# The eigensolver finds the eigenvalues of a Laplacian nearest to this shift. It is just below 0,
# where the shifted matrix can still be factorised.
SHIFT = -1e-5
# Eigenvalues of a normed Laplacian below this are 0: a part of a graph has one.
ZERO = 1e-13
# Added to 1 - λ of the next eigenvalue: a graph that falls apart has no infinite gap.
GAP_FLOOR = 0.003

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
    """Return the leading k eigenpairs of the normalised affinity.

    If there are more than k parts, those with the most nodes count. A node without edges has a row
    of zeros. A dense graph may be on an accelerator: then it is multiplied there.
    """
    n = int(graph.shape[0])
    k = min(k, n)
    parts = _largest_parts(graph, k)
    if len(parts) == 1 and len(parts[0]) == n:
        return _of_part(graph, k, seed)
    # Each part with edges has one eigenvalue 1, so no part has more than this many among k.
    most = k + 1 - max(1, sum(len(nodes) > 1 for nodes in parts))
    spectra = [_of_part(_induced(graph, p), min(most, len(p)), seed) for p in parts]
    return _joined(parts, spectra, n, k)


def _joined(parts: list[np.ndarray], spectra: list[Spectrum], n: int, k: int) -> Spectrum:
    """Return the leading k eigenpairs of all parts; of equal values those of larger parts."""
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
    return moved_to(to_numpy(graph)[np.ix_(nodes, nodes)], graph)


def _of_part(graph: Graph, k: int, seed: int) -> Spectrum:
    """Return the leading k eigenpairs of a graph that is connected."""
    n = int(graph.shape[0])
    if n < DENSE_BELOW or k >= n - 1 or (not SEEDED and n <= UNSEEDED_ABOVE):
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
    return _lanczos(operator, k, seed)


def _inverse_roots(degrees: np.ndarray) -> np.ndarray:
    roots = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    return np.asarray(np.where(degrees > 0, roots, 0.0))


def _multiplication(graph: Graph) -> Callable[[np.ndarray], np.ndarray]:
    """Return the product with vectors of NumPy, made where the graph is."""
    if scipy.sparse.issparse(graph) or is_numpy(graph):
        return lambda x: graph @ x
    return lambda x: to_numpy(graph @ moved_to(x, graph, graph.dtype)).astype(np.float64)


def _seeded(n: int, seed: int) -> dict[str, Any]:
    """Return the arguments of `eigsh` that fix its bits."""
    start = {"v0": np.random.RandomState(seed).uniform(-1, 1, n)}
    return start | {"rng": np.random.default_rng(seed)} if SEEDED else start


def _lanczos(operator: LinearOperator, k: int, seed: int) -> Spectrum:
    """Return the leading eigenpairs; what has not converged has vectors of zeros, and no gap."""
    n = operator.shape[0]
    size = min(n, max(3 * k, 40))
    try:
        values, vectors = eigsh(
            operator, k, which="LA", tol=1e-6, ncv=size, maxiter=2000, **_seeded(n, seed)
        )
    except ArpackNoConvergence as error:
        found = np.argsort(error.eigenvalues)
        values, vectors = error.eigenvalues[found], error.eigenvectors[:, found]
        missing = k - len(values)
        lowest = values[0] if len(values) else 0.0
        values = np.concatenate([np.full(missing, lowest), values])
        vectors = np.concatenate([np.zeros((n, missing)), vectors.reshape(n, -1)], axis=1)
    return Spectrum(np.asarray(values)[::-1], np.asarray(vectors)[:, ::-1])


def normed_laplacian(graph: scipy.sparse.csr_array) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return the normed Laplacian, and the roots of the degrees.

    A node without edges has a row of zeros there, and 1 on the diagonal: it is no cluster of its
    own.
    """
    matrix, roots = laplacian(graph, normed=True, return_diag=True)
    matrix = matrix.tocsr()
    matrix.setdiag(1.0)
    return matrix, roots


def eigengap(values: np.ndarray) -> int:
    """Return the number of eigenvalues before the widest gap."""
    return int(np.argmax(np.diff(values))) + 1


def least_eigenvectors(
    matrix: scipy.sparse.csr_array, k: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least eigenvalues of a normed Laplacian, ascending, and their vectors."""
    n = matrix.shape[0]
    parts, spectra = _largest_parts(matrix, k), []
    for nodes in parts:
        inside = matrix if len(nodes) == n else _induced(matrix, nodes)
        values, vectors = _least_of_part(inside, min(k, len(nodes)), seed)
        spectra.append(Spectrum(-np.where(values < ZERO, 0.0, values), vectors))
    joined = _joined(parts, spectra, n, k)
    return -joined.values, joined.vectors


def _least_of_part(
    matrix: scipy.sparse.csr_array, k: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for a graph in one part."""
    n = matrix.shape[0]
    if n < DENSE_LAPLACIAN or k >= n - 1 or not SEEDED:
        values, vectors = some_eigenpairs(matrix.toarray(), 0, k - 1)
    elif matrix.nnz > DENSE_FRACTION * n**2:
        values, vectors = eigsh(matrix.toarray(), k, which="SA", **_seeded(n, seed))
        order = np.argsort(values)
        values, vectors = values[order], vectors[:, order]
    else:
        values, vectors = eigsh(matrix, k, sigma=SHIFT, **_seeded(n, seed))
    return np.asarray(values), np.asarray(vectors)


def graph_embedding(graph: scipy.sparse.csr_array, n_components: int, seed: int) -> np.ndarray:
    """Return D^(-1/2)u for the eigenvectors u of the least eigenvalues of the normed Laplacian.

    Of a connected graph, what `sklearn.manifold.spectral_embedding` returns since 1.9. Of a graph
    in parts, ties go to larger parts.

    Returns
    -------
    embedding : array of shape (n_nodes, n_components)
    """
    matrix, roots = normed_laplacian(graph)
    _, vectors = least_eigenvectors(matrix, n_components, seed)
    embedding = vectors.T / roots
    largest = np.argmax(np.abs(embedding), axis=1)
    signs = np.sign(embedding[np.arange(n_components), largest])
    return np.asarray((embedding * signs[:, None]).T)


def cluster_graph(
    graph: scipy.sparse.csr_array,
    n_clusters: int,
    seed: int,
    assign_labels: str = "kmeans",
    *,
    sample_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Cluster the nodes of a graph by its leading eigenvectors.

    "kmeans" works on rows scaled to norm 1, which `sklearn.cluster.spectral_clustering` does not;
    "cluster_qr" is scikit-learn's, and takes no weights in its last step.
    """
    if n_clusters == 1:
        return np.zeros(graph.shape[0], dtype=np.int64)
    if sample_weights is not None:
        graph = repeat_nodes(graph, sample_weights)
    embedding = graph_embedding(graph, n_clusters, seed)
    if assign_labels == "cluster_qr":
        return np.asarray(cluster_qr(embedding), dtype=np.int64)
    return cluster_rows(embedding, n_clusters, seed, sample_weights=sample_weights)


def cluster_rows(
    vectors: np.ndarray,
    n_clusters: int,
    seed: int,
    *,
    n_starts: int = KMEANS_STARTS,
    sample_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return labels by k-means of rows scaled to norm 1."""
    kmeans = KMeans(n_clusters, n_init=n_starts, random_state=seed)
    # With several threads k-means sums in the order in which they end.
    with plain_settings(), one_openmp_thread():
        labels = kmeans.fit_predict(unit_rows(vectors), sample_weight=sample_weights)
    return np.asarray(labels, dtype=np.int64)


def shares_inside(graph: scipy.sparse.csr_array, labels: np.ndarray, n: int) -> np.ndarray:
    """Return which part of the weight of every cluster's edges stays inside; 0 without edges."""
    H = one_hot(labels, n, np.float64)
    inside = np.einsum("ij,ij->j", H, graph @ H)
    whole = H.T @ np.asarray(graph.sum(axis=1)).ravel()
    return np.asarray(inside / np.where(whole > 0, whole, 1.0))


def repeat_nodes(graph: scipy.sparse.csr_array, weights: np.ndarray) -> scipy.sparse.csr_array:
    """Return w_i A_ij w_j, a graph with the embedding of one whose nodes stand there w_i times."""
    # The size of all weights together changes nothing.
    sizes = scipy.sparse.diags_array(weights / weights.max())
    return scipy.sparse.csr_array(sizes @ graph @ sizes)
