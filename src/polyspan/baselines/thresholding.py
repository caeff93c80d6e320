"""Thresholding-based subspace clustering."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.arrays import chunk_rows, row_slices
from polyspan.base.private_sklearn import Interval
from polyspan.baselines.base import GraphClustering
from polyspan.graphs.edges import edges


class ThresholdingSubspaceClustering(GraphClustering):
    r"""Join each sample to the q others with the smallest angles, and cluster that graph (TSC).

    An edge has the weight :math:`\exp(-2 \arccos |\langle y_i, y_j \rangle|)` (Heckel and
    Bölcskei, 2015).

    Parameters
    ----------
    n_subspaces : int or None, default=3
        Number of clusters. None: chosen by the widest gap between the eigenvalues of the graph's
        Laplacian.
    subspace_dim : int, default=1
        Dimension of the subspace that is fitted to every cluster.
    q : int or None, default=None
        Number of neighbours of a sample. None: max(3, ⌈n_samples/(20 n_subspaces)⌉); with
        `n_subspaces=None` twice that, with `max_subspaces` in its place.
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
    q_ : int
        Number of neighbours used.
    labels_, affinity_, bases_, mean_, n_subspaces_, n_features_in_
        As for `SparseSubspaceClustering`.

    Examples
    --------
    >>> from polyspan.baselines import ThresholdingSubspaceClustering
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((40, 40), n_features=30, subspace_dim=2, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> model = ThresholdingSubspaceClustering(2, 2, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_) < 0.2
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **GraphClustering._parameter_constraints,
        "q": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_subspaces: int | None = 3,
        subspace_dim: int = 1,
        *,
        q: int | None = None,
        max_subspaces: int = 10,
        assign_labels: str = "kmeans",
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.q = q
        self.max_subspaces = max_subspaces
        self.assign_labels = assign_labels
        self.center = center
        self.random_state = random_state

    def _affinity(self, X: np.ndarray, seed: int) -> scipy.sparse.csr_array:
        n = len(X)
        q = self.q
        if q is None:
            most = self.max_subspaces if self.n_subspaces is None else self.n_subspaces
            q = max(3, math.ceil(n / (20 * most))) * (2 if self.n_subspaces is None else 1)
        self.q_ = min(q, max(n - 1, 1))
        neighbours, weights = [], []
        for which in row_slices(n, chunk_rows(max(n, X.shape[1]), X.itemsize)):
            products = np.abs(X[which] @ X.T)
            here = np.arange(which.start, which.stop)
            products[here - which.start, here] = -1.0
            nearest = np.argpartition(-products, self.q_ - 1, axis=1)[:, : self.q_]
            values = np.take_along_axis(products, nearest, axis=1)
            neighbours.append(nearest)
            weights.append(np.exp(-2.0 * np.arccos(np.clip(values, 0.0, 1.0))))
        # A sample that is orthogonal to all others still has edges, with the weight exp(-π).
        graph = edges(np.concatenate(weights), np.concatenate(neighbours))
        graph.setdiag(0.0)
        graph.eliminate_zeros()
        return (graph + graph.T).tocsr()
