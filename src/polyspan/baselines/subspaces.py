"""K-subspaces, the linear model without its closeness term, and ensembles of many random runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.arrays import CHUNK_MAX_BYTES, row_slices
from polyspan.base.private_sklearn import Interval
from polyspan.baselines.base import GraphClustering, leading_coordinates
from polyspan.geometry.bases import draw_bases
from polyspan.graphs.edges import largest_of_rows
from polyspan.linear._solve.batched import Batch, nearest
from polyspan.linear.micusal import MiCUSaL


class KSubspaces(MiCUSaL):
    r"""Assign samples to the nearest of several subspaces, and fit each to its samples.

    This is `MiCUSaL` with λ=∞, which leaves the closeness of the subspaces out. The classical
    algorithm is `init="random", solver="exact"`. `MiCUSaL` says more about the parameters.

    Parameters
    ----------
    n_subspaces : int, default=3
        Number of subspaces.
    subspace_dim : int or sequence of n_subspaces ints, default=1
        Dimension of each subspace, or one for each; with `affine` it may be 0.
    init : {"auto", "anneal", "random"} or array of shape (n_subspaces, n_features, \
            subspace_dim), default="auto"
        Start: the best of several kinds, annealed bases, random bases, or those of an array.
    solver : {"power", "exact"}, default="power"
        "exact" takes the top eigenvectors in each update, "power" one power step towards them.
    n_init : int or "auto", default="auto"
        Number of starts, at most 1000. The one with the lowest objective is kept. "auto" as for
        `MiCUSaL`.
    center : bool, default=True
        Subtract the mean of the samples. Affine subspaces do not depend on it.
    affine : bool, default=False
        Learn affine subspaces, which need not go through the mean. With `subspace_dim=0` this is
        k-means.
    residual : {"plain", "loo"}, default="plain"
        "plain" assigns by the residual. "loo" assigns by the residual to the subspace as it would
        be without the sample: for clusters with few samples.
    trim : float, default=0.0
        Fraction of the samples (by weight), at least 0 and below 1, with the largest residuals,
        which takes no part in the updates.
    anneal_steps : int, default=80
        Length of the cooling schedule, one power step each; at most 10 000.
    anneal_range : tuple of float, default=(0.4, 0.05)
        First and last temperature, in units of the mean squared residual to one pooled subspace.
    max_iter : int, default=300
        Most iterations of the alternation, after annealing if any.
    tol : float, default=1e-6
        The alternation has converged when an iteration lowers the objective by no more than this
        fraction of it.
    forget_factor : float, default=1.0
        For `partial_fit` only: factor for everything remembered, applied before each batch.
    random_state : int, RandomState instance or None, default=None
        Draws the starts. An int gives the same bits each time.
    n_jobs : int or None, default=None
        Starts of a large problem to run at once, in threads. Results do not depend on it.

    Attributes
    ----------
    objective_ : float
        Sum of squared residuals.
    bases_, subspace_dims_, mean_, anchors_, labels_, trimmed_, objective_history_, anneal_history_
        As for `MiCUSaL`.
    n_iter_, converged_, noise_variance_, subspace_distances_, n_features_in_, feature_names_in_
        As for `MiCUSaL`.

    Examples
    --------
    >>> from polyspan.baselines import KSubspaces
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((60, 60), n_features=30, subspace_dim=3, spread=0.5,
    ...                                noise=0.02, random_state=0)
    >>> model = KSubspaces(2, 3, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_)
    0.0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        name: rule for name, rule in MiCUSaL._parameter_constraints.items() if name != "lam"
    }
    lam = float("inf")

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int | Sequence[int] = 1,
        *,
        init: Any = "auto",
        solver: str = "power",
        n_init: int | str = "auto",
        center: bool = True,
        affine: bool = False,
        residual: str = "plain",
        trim: float = 0.0,
        anneal_steps: int = 80,
        anneal_range: tuple[float, float] = (0.4, 0.05),
        max_iter: int = 300,
        tol: float = 1e-6,
        forget_factor: float = 1.0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.init = init
        self.solver = solver
        self.n_init = n_init
        self.center = center
        self.affine = affine
        self.residual = residual
        self.trim = trim
        self.anneal_steps = anneal_steps
        self.anneal_range = anneal_range
        self.max_iter = max_iter
        self.tol = tol
        self.forget_factor = forget_factor
        self.random_state = random_state
        self.n_jobs = n_jobs


# The runs work on the leading singular directions that hold this fraction of the energy: residuals
# beyond them hardly depend on the subspace.
ENERGY = 0.99


def ensemble_labels(
    X: np.ndarray, n_subspaces: int, subspace_dim: int, n_runs: int, *, n_iter: int, seed: int
) -> np.ndarray:
    """Return the labels of independent K-subspaces runs, of shape (n_runs, n_samples).

    Every run starts from random bases and takes `n_iter` steps: each assigns all samples and takes
    a power step with every subspace. Runs are worked on together, as one product.
    """
    Z = leading_coordinates(np.asarray(X, dtype=np.float64), ENERGY, subspace_dim)
    n, rank = Z.shape
    dim = min(subspace_dim, rank)
    batch = Batch.of(Z[None], float("inf"), affine=False)
    rng = np.random.RandomState(seed)
    size = max(1, CHUNK_MAX_BYTES // (8 * n * n_subspaces * dim))
    labels = np.empty((n_runs, n), dtype=np.int64)
    for which in row_slices(n_runs, size):
        # One draw for each run: how many are worked on together must not change the starts.
        drawn = [draw_bases((n_subspaces, rank, dim), rng) for _ in range(which.stop - which.start)]
        frames = np.ascontiguousarray(np.swapaxes(np.stack(drawn), -1, -2))[None]
        for _ in range(n_iter):
            found, _, projections = nearest(batch, frames)
            frames = batch.hard_step(frames, projections, found)
        labels[which] = nearest(batch, frames)[0][0]
    return labels


def co_association(labels: np.ndarray, q: int | None) -> scipy.sparse.csr_array:
    """Return the fraction of runs in which samples share a cluster, the q largest of every row.

    Parameters
    ----------
    labels : array of int, of shape (n_runs, n_samples)
    q : int or None
        None: all, n_samples² numbers.

    Returns
    -------
    graph : sparse array of shape (n_samples, n_samples)
        W + Wᵀ, W with q entries in a row.
    """
    n_runs, n = labels.shape
    n_labels = int(labels.max()) + 1
    columns = (labels + n_labels * np.arange(n_runs)[:, None]).T
    entries = (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, n_runs))
    members = scipy.sparse.csr_array(entries, shape=(n, n_runs * n_labels))

    def rows_of(which: slice) -> np.ndarray:
        together = (members @ members[which].toarray().T).T
        return np.asarray(np.ascontiguousarray(together) / n_runs)

    return largest_of_rows(rows_of, n, q)


def default_neighbours(n: int, n_clusters: int) -> int:
    """Return a tenth of the mean cluster size, at least 6."""
    return max(6, math.ceil(n / (10 * n_clusters)))


class EnsembleKSubspaces(GraphClustering):
    """Cluster samples by how often random K-subspaces runs put them together (EKSS).

    Many runs of a few steps each, from random bases, are poor partitions, but samples of one
    subspace share a cluster more often than others (Lipor, Hong, Tan and Balzano, 2021). The graph
    of these frequencies is clustered, with the largest of every sample.

    Parameters
    ----------
    n_subspaces : int or None, default=3
        Number of clusters, and of subspaces of every run. None: the runs have `max_subspaces`, and
        the number of clusters is chosen by the widest gap between the eigenvalues of the graph's
        Laplacian.
    subspace_dim : int, default=1
        Dimension of the subspace that is fitted to every cluster, and of those of every run.
    n_runs : int, default=200
        Number of runs of K-subspaces.
    n_iter : int, default=10
        Steps of every run.
    q : int or None, default=None
        Frequencies kept of every sample. None: a tenth of the mean cluster size, at least 6.
    max_subspaces : int, default=10
        Largest number of clusters to consider with `n_subspaces=None`.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How labels are found in the spectral embedding, as for `SparseSubspaceClustering`.
    center : bool, default=False
        Whether the subspaces pass through the mean of the samples instead of 0.
    random_state : int, RandomState instance or None, default=None
        Seed of the runs and of spectral clustering.

    Attributes
    ----------
    q_ : int
        Number of frequencies kept.
    labels_, affinity_, bases_, mean_, n_subspaces_, n_features_in_
        As for `SparseSubspaceClustering`.

    Notes
    -----
    Time grows with n_samples² · n_runs; memory with n_samples · (n_runs + q).

    Examples
    --------
    >>> from polyspan.baselines import EnsembleKSubspaces
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((40, 40), n_features=30, subspace_dim=2, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> model = EnsembleKSubspaces(2, 2, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_)
    0.0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **GraphClustering._parameter_constraints,
        "n_runs": [Interval(Integral, 1, None, closed="left")],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "q": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_subspaces: int | None = 3,
        subspace_dim: int = 1,
        *,
        n_runs: int = 200,
        n_iter: int = 10,
        q: int | None = None,
        max_subspaces: int = 10,
        assign_labels: str = "kmeans",
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.n_runs = n_runs
        self.n_iter = n_iter
        self.q = q
        self.max_subspaces = max_subspaces
        self.assign_labels = assign_labels
        self.center = center
        self.random_state = random_state

    def _affinity(self, X: np.ndarray, seed: int) -> scipy.sparse.csr_array:
        n_subspaces = self.max_subspaces if self.n_subspaces is None else self.n_subspaces
        q = default_neighbours(len(X), n_subspaces) if self.q is None else self.q
        self.q_ = min(q, max(len(X) - 1, 1))
        labels = ensemble_labels(
            X, n_subspaces, self.subspace_dim, self.n_runs, n_iter=self.n_iter, seed=seed
        )
        return co_association(labels, self.q_)
