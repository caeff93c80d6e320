"""Spectral clustering, on a nearest-neighbour graph of the samples in the feature space."""

from __future__ import annotations

from inspect import signature

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from polyspan._sklearn import cluster_qr, plain_settings
from polyspan.arrays import one_openmp_thread, some_eigenpairs

# Starts of k-means in the embedding, which has one coordinate per subspace.
KMEANS_STARTS = 10
# The eigensolver finds the eigenvalues nearest to this shift. It is just below 0, where the shifted
# matrix can still be factorised.
SHIFT = -1e-5
# Below this many nodes a dense eigensolver is as fast.
DENSE_BELOW = 500
# From this fraction of entries on, products with a dense array are faster than a factorisation.
DENSE_FRACTION = 0.3
# Eigenvalues of the normed Laplacian below this are 0: a part of a graph has one.
ZERO = 1e-13


def neighbour_graph(distances: np.ndarray, n_neighbors: int) -> scipy.sparse.csr_array:
    """Return the graph of nearest neighbours, with edges of the weight exp(-d²/(σ_iσ_j)).

    σ_i is the distance of sample i to its last neighbour, so that sparse and dense regions are
    treated alike (the local scaling of Zelnik-Manor and Perona).
    """
    n = min(n_neighbors, len(distances) - 1)
    with plain_settings():
        nearest = NearestNeighbors(n_neighbors=n, metric="precomputed").fit(distances)
        graph = nearest.kneighbors_graph(mode="distance").tocoo()
    # A neighbour at distance 0 is an edge too: distances come from the full matrix.
    rows, columns, lengths = graph.row, graph.col, distances[graph.row, graph.col]
    sigma = np.zeros(len(distances))
    np.maximum.at(sigma, rows, lengths)
    # Samples whose neighbours are all duplicates have σ = 0: they get the smallest positive σ.
    smallest = sigma.min(where=sigma > 0, initial=np.inf)
    sigma = np.where(sigma > 0, sigma, smallest if np.isfinite(smallest) else 1.0)
    weights = np.exp(-(lengths**2) / (sigma[rows] * sigma[columns]))
    directed = scipy.sparse.csr_array((weights, (rows, columns)), shape=distances.shape)
    return (directed + directed.T) / 2


def spectral_labels(
    distances: np.ndarray,
    n_clusters: int,
    n_neighbors: int,
    seed: int,
    sample_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Cluster samples by the leading eigenvectors of their graph, rows scaled to norm 1.

    Parameters
    ----------
    distances : array of shape (n_samples, n_samples)
    sample_weights : array of shape (n_samples,), default=None
        A sample stands for so many nodes with the same edges.
    """
    if n_clusters == 1:
        return np.zeros(len(distances), dtype=np.int64)
    if n_clusters >= len(distances):
        return np.arange(len(distances))
    graph = neighbour_graph(distances, n_neighbors)
    return cluster_graph(graph, n_clusters, seed, sample_weights=sample_weights)


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
    if sample_weights is not None:
        graph = repeat_nodes(graph, sample_weights)
    embedding = graph_embedding(graph, n_clusters, seed)
    if assign_labels == "cluster_qr":
        return np.asarray(cluster_qr(embedding), dtype=np.int64)
    norms = np.linalg.norm(embedding, axis=1, keepdims=True)
    embedding = embedding / np.where(norms > 0, norms, 1.0)
    kmeans = KMeans(n_clusters, n_init=KMEANS_STARTS, random_state=seed)
    with plain_settings(), one_openmp_thread():
        return np.asarray(
            kmeans.fit_predict(embedding, sample_weight=sample_weights), dtype=np.int64
        )


def repeat_nodes(graph: scipy.sparse.csr_array, weights: np.ndarray) -> scipy.sparse.csr_array:
    """Return w_i A_ij w_j, a graph with the embedding of one whose nodes stand there w_i times."""
    # The size of all weights together changes nothing.
    sizes = scipy.sparse.diags_array(weights / weights.max())
    return scipy.sparse.csr_array(sizes @ graph @ sizes)


def graph_embedding(graph: scipy.sparse.csr_array, n_components: int, seed: int) -> np.ndarray:
    """Return D^(-1/2)u for the eigenvectors u of the least eigenvalues of the normed Laplacian.

    Of a connected graph, what `sklearn.manifold.spectral_embedding` returns since 1.9. A graph in
    parts has 0 as an eigenvalue once for each, and a search for all of them together would return
    another mixture of their vectors every time: here they are sought part by part, and ties go
    to larger parts.

    Returns
    -------
    embedding : array of shape (n_nodes, n_components)
    """
    matrix, roots = laplacian(graph, normed=True, return_diag=True)
    matrix = matrix.tocsr()
    matrix.setdiag(1.0)  # a node without edges has a row of zeros: it is no cluster of its own
    _, vectors = least_eigenvectors(matrix, n_components, seed)
    embedding = vectors.T / roots
    largest = np.argmax(np.abs(embedding), axis=1)
    signs = np.sign(embedding[np.arange(n_components), largest])
    return np.asarray((embedding * signs[:, None]).T)


def least_eigenvectors(
    matrix: scipy.sparse.csr_array, k: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least eigenvalues of a normed Laplacian, ascending, and their vectors."""
    n_parts, part = connected_components(matrix, directed=False)
    values, vectors, sizes = [], [], []
    for p in range(n_parts):
        own = np.flatnonzero(part == p)
        inside = matrix if n_parts == 1 else matrix[own][:, own]
        least, found = _least_of_part(inside, min(k, len(own)), seed)
        values.append(np.where(least < ZERO, 0.0, least))
        sizes.append(np.full(len(least), len(own)))
        whole = np.zeros((len(part), len(least)))
        whole[own] = found
        vectors.append(whole)
    order = np.lexsort((-np.concatenate(sizes), np.concatenate(values)))[:k]
    return np.concatenate(values)[order], np.concatenate(vectors, axis=1)[:, order]


def _least_of_part(
    matrix: scipy.sparse.csr_array, k: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for a graph in one part, with the same bits every time.

    Where eigenvalues are equal ARPACK goes on from random vectors, whose seed SciPy takes since
    1.17 only: before, a dense solver serves.
    """
    n = matrix.shape[0]
    seeded = "rng" in signature(eigsh).parameters
    if n < DENSE_BELOW or k >= n - 1 or not seeded:
        values, vectors = some_eigenpairs(matrix.toarray(), 0, k - 1)
    else:
        start = np.random.RandomState(seed).uniform(-1, 1, n)
        rng = np.random.default_rng(seed)
        if matrix.nnz > DENSE_FRACTION * n**2:
            values, vectors = eigsh(matrix.toarray(), k, which="SA", v0=start, rng=rng)
            order = np.argsort(values)
            values, vectors = values[order], vectors[:, order]
        else:
            values, vectors = eigsh(matrix, k, sigma=SHIFT, v0=start, rng=rng)
    return np.asarray(values), np.asarray(vectors)
