"""Elastic-net subspace clustering, with an active set of candidates for every sample."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.arrays import chunk_rows, row_slices, some_rows
from polyspan.base.checks import warn_unconverged
from polyspan.base.private_sklearn import Interval
from polyspan.baselines.base import GraphClustering
from polyspan.graphs.edges import symmetric_affinity

# Candidates of every sample by the angle, those that each later round adds at most, and rounds.
N_CANDIDATES = 40
N_ADDED = 25
N_ROUNDS = 3


def elastic_net_codes(
    X: np.ndarray,
    gamma: float,
    l1_ratio: float = 0.9,
    *,
    nonnegative: bool = False,
    exemplars: np.ndarray | None = None,
) -> tuple[scipy.sparse.csr_array, int]:
    """Return codes of all rows over the others, sparse, and how many did not converge.

    A code minimises λ‖c‖₁ + (1-λ)/2 ‖c‖² + γ/2 ‖y - Σ c_j y_j‖², λ the `l1_ratio`. It is solved
    over the rows with the smallest angles; rows that miss their optimality condition are added.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows of norm 1.
    exemplars : array of int, default=None
        Rows that codes may use; None: all.
    """
    from polyspan.baselines.code_loops import solve_on_candidates  # loads numba

    n = len(X)
    atoms = np.arange(n) if exemplars is None else np.asarray(exemplars)
    weight, ridge = l1_ratio / gamma, (1.0 - l1_ratio) / gamma
    chunks, failed = [], 0
    width = min(N_CANDIDATES + (N_ROUNDS - 1) * N_ADDED, len(atoms))
    for which in row_slices(n, chunk_rows(4 * len(atoms), 8)):
        rows = np.arange(which.start, which.stop)
        candidates = np.zeros((len(rows), width), dtype=np.int64)
        counts = np.zeros(len(rows), dtype=np.int64)
        known = rows[:, None] == atoms  # a row's own atom, and its candidates
        coded, lost = scipy.sparse.csr_array((len(rows), n)), 0
        for turn in range(N_ROUNDS):
            products = (X[rows] - coded @ X) @ X[atoms].T
            products = products if nonnegative else np.abs(products)
            products[known] = -np.inf
            k = min(N_ADDED if turn else N_CANDIDATES, len(atoms))
            found = np.argpartition(-products, k - 1, axis=1)[:, :k]
            # After the first turn only atoms that miss their optimality condition are added.
            least = weight * (1 + 1e-6) if turn else -np.inf
            missed = np.take_along_axis(products, found, axis=1) > least
            if not missed.any():
                break
            for b in range(len(rows)):
                new = found[b, missed[b]][: width - counts[b]]
                candidates[b, counts[b] : counts[b] + len(new)] = atoms[new]
                counts[b] += len(new)
                known[b, new] = True
            codes = np.zeros((len(rows), width))
            lost = solve_on_candidates(
                X, which.start, candidates, counts, weight, ridge, nonnegative, codes
            )
            ends = np.arange(0, codes.size + 1, width)
            coded = scipy.sparse.csr_array(
                (codes.ravel(), candidates.ravel(), ends), shape=(len(rows), n)
            )
        failed += lost
        coded.eliminate_zeros()
        coded.sort_indices()
        chunks.append(coded)
    return scipy.sparse.vstack(chunks, format="csr"), failed


class ElasticNetSubspaceClustering(GraphClustering):
    r"""Cluster samples by sparse codes that a ridge keeps connected (EnSC).

    Every sample is written as a combination of the others: its code minimises
    :math:`\lambda\|c\|_1 + \frac{1-\lambda}{2}\|c\|_2^2 + \frac{\gamma}{2}\|y - Yc\|_2^2` (You, Li,
    Robinson and Vidal, 2016). The absolute values of the codes are the graph that is clustered.

    Parameters
    ----------
    n_subspaces : int or None, default=3
        Number of clusters. None: chosen by the widest gap between the eigenvalues of the graph's
        Laplacian.
    subspace_dim : int, default=1
        Dimension of the subspace that is fitted to every cluster.
    gamma : float, default=50.0
        Weight of the fit. Larger values give denser codes.
    l1_ratio : float, default=0.9
        Share λ of the absolute values in the penalty, above 0. 1 is the lasso; the smaller it is,
        the more samples of a subspace are joined.
    nonnegative : bool, default=False
        Whether codes must not be negative.
    n_exemplars : int or None, default=None
        Number of samples, drawn at random, that codes may use. None: all.
    max_subspaces : int, default=10
        Largest number of clusters to consider with `n_subspaces=None`.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How labels are found in the spectral embedding, as for `SparseSubspaceClustering`.
    center : bool, default=False
        Whether the subspaces pass through the mean of the samples instead of 0.
    random_state : int, RandomState instance or None, default=None
        Seed of spectral clustering, and of the draw of exemplars.

    Attributes
    ----------
    labels_, affinity_, bases_, mean_, n_subspaces_, n_features_in_
        As for `SparseSubspaceClustering`.

    Examples
    --------
    >>> from polyspan.baselines import ElasticNetSubspaceClustering
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((40, 40), n_features=30, subspace_dim=2, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> model = ElasticNetSubspaceClustering(2, 2, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_)
    0.0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **GraphClustering._parameter_constraints,
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "nonnegative": ["boolean"],
        "n_exemplars": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(
        self,
        n_subspaces: int | None = 3,
        subspace_dim: int = 1,
        *,
        gamma: float = 50.0,
        l1_ratio: float = 0.9,
        nonnegative: bool = False,
        n_exemplars: int | None = None,
        max_subspaces: int = 10,
        assign_labels: str = "kmeans",
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.gamma = gamma
        self.l1_ratio = l1_ratio
        self.nonnegative = nonnegative
        self.n_exemplars = n_exemplars
        self.max_subspaces = max_subspaces
        self.assign_labels = assign_labels
        self.center = center
        self.random_state = random_state

    def _affinity(self, X: np.ndarray, seed: int) -> scipy.sparse.csr_array:
        X = np.ascontiguousarray(X, dtype=np.float64)
        exemplars = None
        if self.n_exemplars is not None and self.n_exemplars < len(X):
            exemplars = some_rows(len(X), self.n_exemplars, np.random.RandomState(seed))
        codes, failed = elastic_net_codes(
            X, self.gamma, self.l1_ratio, nonnegative=self.nonnegative, exemplars=exemplars
        )
        if failed:
            warn_unconverged(f"{failed} of {len(X)} codes did not converge")
        return symmetric_affinity(codes)
