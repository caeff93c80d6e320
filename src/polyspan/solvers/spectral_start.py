"""Labels to start from: spectral clustering of a nearest-neighbour graph in the feature space."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import NearestNeighbors

from polyspan._sklearn import plain_settings
from polyspan.arrays import Array, to_numpy

# Starts of k-means in the embedding, which has as few coordinates as there are subspaces.
KMEANS_STARTS = 10


def feature_distances(G: Array) -> np.ndarray:
    """Return ‖φ(x) - φ(y)‖ of all pairs of samples from a kernel matrix, centred or not.

    In NumPy, wherever G lies: graphs and their clustering are SciPy's and scikit-learn's.
    """
    G = to_numpy(G)
    diagonal = np.diag(G)
    distances = np.sqrt(np.maximum(diagonal[:, None] + diagonal - 2.0 * G, 0.0))
    np.fill_diagonal(distances, 0.0)
    return np.asarray(distances)


def neighbour_graph(distances: np.ndarray, n_neighbors: int) -> scipy.sparse.csr_array:
    """Join every sample to its nearest ones, weighing edges by exp(-d²/(σ_iσ_j)).

    σ_i is the distance of sample i to its last neighbour, so that sparse and dense regions are
    treated alike (the local scaling of Zelnik-Manor and Perona).
    """
    n = min(n_neighbors, len(distances) - 1)
    with plain_settings():
        nearest = NearestNeighbors(n_neighbors=n, metric="precomputed").fit(distances)
        graph = nearest.kneighbors_graph(mode="distance").tocoo()
    # A neighbour at distance 0 is an edge too, which a sparse matrix must hold explicitly.
    rows, columns, lengths = graph.row, graph.col, distances[graph.row, graph.col]
    sigma = np.zeros(len(distances))
    np.maximum.at(sigma, rows, lengths)
    # Samples with more duplicates than neighbours have no scale: they take the smallest there is.
    smallest = sigma.min(where=sigma > 0, initial=np.inf)
    sigma = np.where(sigma > 0, sigma, smallest if np.isfinite(smallest) else 1.0)
    weights = np.exp(-(lengths**2) / (sigma[rows] * sigma[columns]))
    joined = scipy.sparse.csr_array((weights, (rows, columns)), shape=distances.shape)
    return (joined + joined.T) / 2


def spectral_labels(
    distances: np.ndarray, n_clusters: int, n_neighbors: int, seed: int
) -> np.ndarray:
    """Cluster samples by the leading eigenvectors of their graph, rows scaled to norm 1.

    Parameters
    ----------
    distances : array of shape (n_samples, n_samples)
    """
    if n_clusters == 1:
        return np.zeros(len(distances), dtype=np.int64)
    if n_clusters >= len(distances):
        return np.arange(len(distances))
    return cluster_graph(neighbour_graph(distances, n_neighbors), n_clusters, seed)


def cluster_graph(graph: scipy.sparse.csr_array, n_clusters: int, seed: int) -> np.ndarray:
    """Cluster the nodes of a graph by k-means on rows of its leading eigenvectors, of norm 1.

    `sklearn.cluster.spectral_clustering` does not scale the rows.
    """
    with warnings.catch_warnings(), plain_settings():
        # A graph in several parts is no flaw here: parts are what is sought.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        embedding = spectral_embedding(
            graph, n_components=n_clusters, drop_first=False, random_state=seed
        )
    norms = np.linalg.norm(embedding, axis=1, keepdims=True)
    embedding = embedding / np.where(norms > 0, norms, 1.0)
    kmeans = KMeans(n_clusters, n_init=KMEANS_STARTS, random_state=seed)
    with plain_settings():
        return np.asarray(kmeans.fit_predict(embedding), dtype=np.int64)
