"""From a sparse affinity to labels, and the number of clusters from its Laplacian."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import eigsh

from polyspan.kernel.starts import cluster_graph

# Below this many samples a dense eigensolver is faster and never fails to converge.
DENSE_BELOW = 500


def symmetric_affinity(codes: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return |C| + |C|ᵀ, every code first divided by its largest entry."""
    absolute = abs(codes).tocsr()
    largest = absolute.max(axis=1).toarray().ravel()
    scale = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 0.0)
    absolute = scipy.sparse.dia_array((scale[None, :], [0]), shape=absolute.shape) @ absolute
    return (absolute + absolute.T).tocsr()


def smallest_laplacian_values(affinity: scipy.sparse.csr_array, k: int, seed: int) -> np.ndarray:
    """Return the k smallest eigenvalues of the normalised Laplacian, ascending."""
    n = affinity.shape[0]
    k = min(k, n)
    matrix = laplacian(affinity, normed=True)
    if n < DENSE_BELOW or k >= n - 1:
        return np.asarray(np.linalg.eigvalsh(matrix.toarray())[:k])
    # The largest of 2I - L are the smallest of L, and found without a factorisation.
    start = np.random.RandomState(seed).uniform(0.5, 1.0, n)
    shifted = scipy.sparse.identity(n, format="csr") * 2.0 - matrix
    values = eigsh(shifted, k=k, which="LA", v0=start, return_eigenvectors=False)
    return np.sort(2.0 - values)


def eigengap(values: np.ndarray) -> int:
    """Return how many eigenvalues lie before the widest gap."""
    return int(np.argmax(np.diff(values))) + 1


def estimate_n_clusters(affinity: scipy.sparse.csr_array, most: int, seed: int) -> int:
    """Return the number of clusters by the eigengap of the normalised Laplacian."""
    return eigengap(smallest_laplacian_values(affinity, most + 1, seed))


def spectral_labels(
    affinity: scipy.sparse.csr_array, n_clusters: int, seed: int, assign_labels: str = "kmeans"
) -> tuple[np.ndarray, int]:
    """Cluster the graph; return labels and the number of its connected parts.

    A sample without any edge belongs to no part of the graph: it gets an edge to itself, which
    leaves it where the embedding puts isolated samples.
    """
    n_parts, _ = connected_components(affinity, directed=False)
    isolated = np.asarray(affinity.sum(axis=1)).ravel() == 0
    if isolated.any():
        loops = scipy.sparse.dia_array((isolated.astype(float)[None, :], [0]), shape=affinity.shape)
        affinity = (affinity + loops).tocsr()
    if n_clusters == 1:
        return np.zeros(affinity.shape[0], dtype=np.int64), int(n_parts)
    return cluster_graph(affinity, n_clusters, seed, assign_labels), int(n_parts)
