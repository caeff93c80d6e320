"""Robust shape interaction: angles between rows of the leading singular vectors."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.private_sklearn import Interval
from polyspan.baselines.base import GraphClustering, left_singular_vectors
from polyspan.graphs.edges import shape_interaction_graph
from polyspan.graphs.spectra import (
    cluster_rows,
    eigengap,
    least_eigenvectors,
    normed_laplacian,
    shares_inside,
)

#: Candidate ranks where the number of clusters is unknown.
RANKS = (4, 6, 9, 13, 18, 27, 40, 60, 90)
#: Candidate ranks in multiples of the number of clusters.
STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0)
# A graph of this many ranks for each cluster at least can show so many clusters.
RANKS_PER_CLUSTER = 1.5
# Added to the gap of a spectrum: a graph without one is not chosen, but has a value.
GAP_FLOOR = 1e-6


def normalised_cut(graph: scipy.sparse.csr_array, labels: np.ndarray) -> float:
    """Return the sum over clusters of the weight of edges that leave it over that of all its edges.

    A cluster without edges counts as cut off, by 1.
    """
    n_clusters = int(labels.max()) + 1
    return float(n_clusters - shares_inside(graph, labels, n_clusters).sum())


def cut_per_gap(
    graph: scipy.sparse.csr_array, n_clusters: int | None, most: int, seed: int
) -> float:
    """Return the normalised cut of spectral clusters over the gap after their eigenvalues.

    Parameters
    ----------
    n_clusters : int or None
        None: by the widest gap, at most `most`, and the cut is that of a cluster on average.
    """
    size = most if n_clusters is None else n_clusters
    if size <= 1 or size >= graph.shape[0]:  # nothing to compare
        return 0.0 if n_clusters is not None else np.inf
    matrix, _ = normed_laplacian(graph)
    values, vectors = least_eigenvectors(matrix, size + 1, seed)
    L = eigengap(values) if n_clusters is None else n_clusters
    if L == 1:
        return np.inf
    labels = cluster_rows(vectors[:, :L], L, seed)
    cut = normalised_cut(graph, labels) / (L if n_clusters is None else 1)
    return float(cut / (values[L] - values[L - 1] + GAP_FLOOR))


class RobustShapeInteraction(GraphClustering):
    r"""Cluster samples by the angles between rows of their leading singular vectors (RSIM).

    With :math:`Y = U S V^T` and samples as rows, the graph of rank r is
    :math:`|\langle u_i, u_j \rangle|^p`, where :math:`u_i` are rows of :math:`U_r` scaled to
    norm 1. Every candidate rank is tried; the one whose clusters have the smallest normalised cut,
    relative to the gap of the spectrum, is taken (Ji, Salzmann and Li, 2015).

    Parameters
    ----------
    n_subspaces : int or None, default=3
        Number of clusters. None: chosen by the widest gap between the eigenvalues of the graph's
        Laplacian.
    subspace_dim : int, default=1
        Dimension of the subspace that is fitted to every cluster.
    ranks : sequence of int or None, default=None
        Candidate ranks. None: n_subspaces times 1, 1.5, 2, 3, 4, 6 and 9 (the paper stops at 4,
        which is too low for faces); for an unknown number 4, 6, 9, 13 and so on up to nine times
        `max_subspaces`. None of these is above half of the number of samples.
    power : float, default=4.0
        Power p of the angles' cosines: larger values weaken edges between different subspaces.
    q : int or None, default=None
        Number of edges kept of every sample, the largest. None: all.
    max_subspaces : int, default=10
        Largest number of clusters to consider with `n_subspaces=None`.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How labels are found in the spectral embedding, as for `SparseSubspaceClustering`.
    center : bool, default=False
        Whether the subspaces pass through the mean of the samples instead of 0.
    random_state : int, RandomState instance or None, default=None
        Seed of spectral clustering.

    Attributes
    ----------
    rank_ : int
        Rank that was taken.
    ranks_ : ndarray of shape (n_candidates,)
        Candidate ranks.
    cuts_ : ndarray of shape (n_candidates,)
        What was compared: the normalised cut over the gap, of every candidate.
    labels_, affinity_, bases_, mean_, n_subspaces_, n_features_in_
        As for `SparseSubspaceClustering`.

    Notes
    -----
    The smaller of the two Gram matrices is decomposed once. With `q=None` the graph has n_samples²
    entries.

    Examples
    --------
    >>> from polyspan.baselines import RobustShapeInteraction
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((40, 40), n_features=30, subspace_dim=2, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> model = RobustShapeInteraction(2, 2, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_)
    0.0
    >>> model.rank_
    4
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **GraphClustering._parameter_constraints,
        "ranks": ["array-like", None],
        "power": [Interval(Real, 0, None, closed="neither")],
        "q": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_subspaces: int | None = 3,
        subspace_dim: int = 1,
        *,
        ranks: Any = None,
        power: float = 4.0,
        q: int | None = None,
        max_subspaces: int = 10,
        assign_labels: str = "kmeans",
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.ranks = ranks
        self.power = power
        self.q = q
        self.max_subspaces = max_subspaces
        self.assign_labels = assign_labels
        self.center = center
        self.random_state = random_state

    def _affinity(self, X: np.ndarray, seed: int) -> scipy.sparse.csr_array:
        U = left_singular_vectors(np.asarray(X, dtype=np.float64))
        ranks = self._candidates(*U.shape)
        cuts: list[float] = []
        for rank in ranks:
            graph = shape_interaction_graph(U, rank, power=self.power, q=self.q)
            most = self._most_clusters(len(U), rank)
            cuts.append(cut_per_gap(graph, self.n_subspaces, most, seed))
            if cuts[-1] == min(cuts) and cuts.count(cuts[-1]) == 1:  # the first of equal ones
                best, self.rank_ = graph, rank
        self.ranks_, self.cuts_ = np.asarray(ranks), np.asarray(cuts)
        return best

    def _most_clusters(self, n_samples: int, rank: int | None = None) -> int:
        rank = self.rank_ if rank is None else rank
        shown = max(1, int(rank / RANKS_PER_CLUSTER))
        return min(super()._most_clusters(n_samples), shown)

    def _candidates(self, n_samples: int, largest: int) -> list[int]:
        """Return the candidate ranks, none above the rank of the samples."""
        if self.ranks is not None:
            given = np.asarray(self.ranks)
            if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or min(given) < 1:
                raise ValueError(
                    f"ranks={self.ranks!r} must be a sequence of positive integers, at least one"
                )
            ranks = given.tolist()
        elif self.n_subspaces is None:
            ranks = [rank for rank in RANKS if rank <= STEPS[-1] * self.max_subspaces]
        else:
            ranks = [math.ceil(c * self.n_subspaces) for c in STEPS]
        if self.ranks is None:
            # At the rank N the rows are orthogonal whatever the subspaces are.
            ranks = [rank for rank in ranks if rank <= n_samples / 2] or ranks[:1]
        return sorted({min(int(rank), largest) for rank in ranks})
