"""Spectral clustering of one graph, and how clearly its spectrum separates."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.cluster import KMeans

from polyspan._sklearn import plain_settings
from polyspan.arrays import transpose

# Starts of k-means in an embedding, which has as few coordinates as there are clusters.
KMEANS_STARTS = 10
# Below this many nodes a dense eigensolver is as fast.
DENSE_BELOW = 400
# Added to 1 - λ of the next eigenvalue: a graph that falls apart has no infinite gap.
GAP_FLOOR = 0.003
# Below this fraction of the largest entropy of cluster sizes a member splits off a few samples.
LEAST_ENTROPY = 0.5

#: A symmetric affinity with a zero diagonal, dense or sparse.
Graph = np.ndarray | scipy.sparse.csr_array


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

    A node without edges has a row of zeros.
    """
    degrees = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()
    roots = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    roots[degrees <= 0] = 0.0
    n = graph.shape[0]
    k = min(k, n)
    seeded = "rng" in signature(eigsh).parameters  # since SciPy 1.17
    if n < DENSE_BELOW or k >= n - 1 or not seeded:
        dense = graph.toarray() if scipy.sparse.issparse(graph) else np.asarray(graph)
        normalised = dense * roots[:, None] * roots
        values, vectors = scipy.linalg.eigh(normalised, subset_by_index=(n - k, n - 1))
    else:
        operator = LinearOperator(
            (n, n), lambda x: roots * (graph @ (roots * x.ravel())), dtype=np.float64
        )
        start = np.random.RandomState(seed).uniform(-1, 1, n)
        values, vectors = eigsh(
            operator, k, which="LA", v0=start, tol=1e-6, ncv=min(n, max(3 * k, 40)),
            maxiter=2000, rng=np.random.default_rng(seed),
        )  # fmt: skip
    return Spectrum(np.asarray(values)[::-1], np.asarray(vectors)[:, ::-1])


def unit_rows(a: np.ndarray) -> np.ndarray:
    """Scale every row to norm 1; rows of zeros stay as they are."""
    norms = np.linalg.norm(a, axis=1, keepdims=True)
    return np.asarray(a / np.where(norms > 0, norms, 1.0))


def cluster_embedding(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Return labels by k-means of rows scaled to norm 1."""
    kmeans = KMeans(n_clusters, n_init=KMEANS_STARTS, random_state=seed)
    with plain_settings():
        return np.asarray(kmeans.fit_predict(unit_rows(vectors)), dtype=np.int64)


def size_entropy(labels: np.ndarray, n_clusters: int) -> float:
    """Return the entropy of the cluster sizes, divided by its largest value."""
    sizes = np.bincount(labels, minlength=n_clusters) / len(labels)
    sizes = sizes[sizes > 0]
    return float(-(sizes * np.log(sizes)).sum() / np.log(n_clusters))


def one_hot(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a matrix with a one at the label of every row."""
    return np.eye(n_clusters)[labels]


def agreement_embedding(blocks: list[np.ndarray], n_clusters: int) -> Any:
    """Return leading left singular vectors of weighted one-hot labels, normalised by degree."""
    H = np.concatenate(blocks, axis=1)
    degrees = H @ H.sum(axis=0)
    H = H / np.sqrt(np.where(degrees > 0, degrees, 1.0))[:, None]
    values, vectors = np.linalg.eigh(transpose(H) @ H)
    values, vectors = values[::-1][:n_clusters], vectors[:, ::-1][:, :n_clusters]
    return (H @ vectors) / np.sqrt(np.maximum(values, 1e-12))
