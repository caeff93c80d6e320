"""Sparse subspace clustering, its robust variant, and their codes: the lasso, and OMP.

The solvers of codes are written by hand, because every sample is left out of its own dictionary, so
that scikit-learn would have to solve one problem after the other. Measured with scikit-learn 1.9.1
on one thread: `Lasso` with a precomputed Gram matrix takes 5 times as long (10 times without; 650
samples of 180 features), `orthogonal_mp_gram` 37 times (2414 samples, 10 nonzeros). The time to
copy the Gram matrix of every problem is not counted.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.arrays import row_slices
from polyspan.base.checks import warn_user
from polyspan.base.private_sklearn import Interval, StrOptions
from polyspan.baselines.base import GraphClustering
from polyspan.graphs.edges import symmetric_affinity

# Weight of the constant entry that keeps the sum of affine codes near 1.
AFFINE_WEIGHT = 10.0
# Codes that are solved for at once: dense they are as long as there are samples.
CHUNK = 256
# Number of bisections in the search for the weight of the two-step rule.
BISECTIONS = 12


class SparseSubspaceClustering(GraphClustering):
    r"""Cluster samples by their sparse representations over each other (SSC).

    Each sample is written as a combination of few others,

    .. math:: \min_c \|c\|_1 + \tfrac{\lambda_z}{2} \|y_i - Y c\|^2, \quad c_i = 0,
              \quad \lambda_z = \alpha_z / \mu_z

    with :math:`\mu_z = \min_i \max_{j \ne i} |\langle y_i, y_j \rangle|`, and the graph of the
    coefficients is clustered (Elhamifar and Vidal, 2013).

    Parameters
    ----------
    n_subspaces : int or None, default=3
        Number of clusters. None: chosen by the widest gap between the eigenvalues of the graph's
        Laplacian.
    subspace_dim : int, default=1
        Dimension of the subspace that is fitted to every cluster.
    algorithm : {"lasso", "omp"}, default="lasso"
        How codes are found. "lasso" minimises the sum above; "omp" chooses at most `n_nonzero`
        samples greedily, which is much faster.
    alpha : float, default=20.0
        Weight α_z > 1 of the fit; a larger value gives a closer fit and denser codes.
    n_nonzero : int, default=10
        Largest number of samples that a code uses, for "omp".
    outliers : bool, default=False
        Whether entries may be grossly wrong; a sparse term then models these errors.
    alpha_outliers : float, default=20.0
        Weight of that term, > 0, as `alpha` for the codes.
    affine : bool, default=False
        Whether the coefficients of every sample sum to 1, for affine subspaces.
    max_subspaces : int, default=10
        Largest number of clusters to consider with `n_subspaces=None`.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How labels are found in the spectral embedding. "cluster_qr" is better on faces (10
        subjects: 9 % wrong instead of 16 %), "kmeans" where subspaces are close.
    center : bool, default=False
        Whether the subspaces pass through the mean of the samples instead of 0.
    random_state : int, RandomState instance or None, default=None
        Seed of spectral clustering.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training sample.
    affinity_ : sparse array of shape (n_samples, n_samples)
        Graph that was clustered.
    bases_ : ndarray of shape (n_subspaces_, n_features, subspace_dim)
        Orthonormal bases: the principal directions of every cluster.
    mean_ : ndarray of shape (n_features,)
        Mean that was subtracted; zero without `center`.
    n_subspaces_ : int
        Number of clusters.
    n_features_in_ : int
        Number of features seen during `fit`.

    Notes
    -----
    Computing the codes needs two matrices of n_samples² numbers, which are then freed.

    Examples
    --------
    >>> from polyspan.baselines import SparseSubspaceClustering
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((40, 40), n_features=30, subspace_dim=3, spread=0.8,
    ...                                noise=0.02, random_state=0)
    >>> model = SparseSubspaceClustering(2, 3, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_) < 0.1
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **GraphClustering._parameter_constraints,
        "algorithm": [StrOptions({"lasso", "omp"})],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "n_nonzero": [Interval(Integral, 1, None, closed="left")],
        "outliers": ["boolean"],
        "alpha_outliers": [Interval(Real, 0, None, closed="neither")],
        "affine": ["boolean"],
    }

    def __init__(
        self,
        n_subspaces: int | None = 3,
        subspace_dim: int = 1,
        *,
        algorithm: str = "lasso",
        alpha: float = 20.0,
        n_nonzero: int = 10,
        outliers: bool = False,
        alpha_outliers: float = 20.0,
        affine: bool = False,
        max_subspaces: int = 10,
        assign_labels: str = "kmeans",
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.algorithm = algorithm
        self.alpha = alpha
        self.n_nonzero = n_nonzero
        self.outliers = outliers
        self.alpha_outliers = alpha_outliers
        self.affine = affine
        self.max_subspaces = max_subspaces
        self.assign_labels = assign_labels
        self.center = center
        self.random_state = random_state

    def _affinity(self, X: np.ndarray, seed: int) -> scipy.sparse.csr_array:
        Y = np.asarray(X, dtype=np.float64)
        n = len(Y)
        if self.affine:
            Y = np.concatenate([Y, np.full((n, 1), AFFINE_WEIGHT)], axis=1)
        gram = Y @ Y.T
        if self.algorithm == "omp":
            return symmetric_affinity(omp_codes(gram, self.n_nonzero))
        weight = float(largest_products(X @ X.T).min()) / float(self.alpha)
        if self.outliers:
            # The axes become further atoms; their coefficients are the gross errors.
            norms = np.abs(X).sum(axis=1)
            second_largest = float(np.partition(norms, -2)[-2]) if n > 1 else 1.0
            axes = np.eye(X.shape[1], Y.shape[1]) * (second_largest / float(self.alpha_outliers))
            Y = np.concatenate([Y, axes])
            gram = Y @ Y.T
        codes, failed = lasso_codes(gram, np.full(n, weight))
        return codes_to_affinity(codes[:, :n], failed, f"alpha={self.alpha}")


class RobustSparseSubspaceClustering(GraphClustering):
    r"""Cluster samples by lasso codes with a fixed or a data-driven weight (RSSC).

    .. math:: \min_\beta \tfrac12 \|y_i - Y \beta\|^2 + \lambda_i \|\beta\|_1, \quad \beta_i = 0

    (Soltanolkotabi, Elhamifar and Candès, 2014), solved to convergence.

    Parameters
    ----------
    n_subspaces : int or None, default=3
        Number of clusters. None: chosen by the widest gap between the eigenvalues of the graph's
        Laplacian.
    subspace_dim : int, default=1
        Dimension of the subspace that is fitted to every cluster.
    lam : float, "two-step" or None, default=None
        Weight λ > 0 of the absolute values; None: 1/√subspace_dim. "two-step": λ_i = .25/‖β*‖₁,
        where β* is the code with the smallest ‖β‖₁ among those with a residual of at most
        2·`noise`.
    noise : float, default=0.1
        Expected norm σ of the noise of a sample of norm 1, for "two-step".
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
    duality_gap_ : float
        Largest relative duality gap of the codes.
    labels_, affinity_, bases_, mean_, n_subspaces_, n_features_in_
        As for `SparseSubspaceClustering`.

    Examples
    --------
    >>> from polyspan.baselines import RobustSparseSubspaceClustering
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((40, 40), n_features=30, subspace_dim=3, spread=0.8,
    ...                                noise=0.02, random_state=0)
    >>> model = RobustSparseSubspaceClustering(2, 3, lam=0.1, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_) < 0.1
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **GraphClustering._parameter_constraints,
        "lam": [Interval(Real, 0, None, closed="neither"), StrOptions({"two-step"}), None],
        "noise": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_subspaces: int | None = 3,
        subspace_dim: int = 1,
        *,
        lam: float | str | None = None,
        noise: float = 0.1,
        max_subspaces: int = 10,
        assign_labels: str = "kmeans",
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.lam = lam
        self.noise = noise
        self.max_subspaces = max_subspaces
        self.assign_labels = assign_labels
        self.center = center
        self.random_state = random_state

    def _affinity(self, X: np.ndarray, seed: int) -> scipy.sparse.csr_array:
        Y = np.asarray(X, dtype=np.float64)
        gram = Y @ Y.T
        n = len(Y)
        if self.lam is None:
            weights = np.full(n, 1.0 / np.sqrt(self.subspace_dim))
        elif self.lam == "two-step":
            weights = two_step_weights(gram, 2.0 * float(self.noise))
        else:
            weights = np.full(n, float(self.lam))
        # With a weight above the largest inner product a code is empty; with half of that product
        # the sample is still joined to those that resemble it most.
        weights = np.minimum(weights, 0.5 * largest_products(gram))
        codes, failed = lasso_codes(gram, weights)
        self.duality_gap_ = float(duality_gaps(gram, codes, weights).max())
        return codes_to_affinity(codes, failed, f"lam={self.lam}")


def largest_products(gram: np.ndarray) -> np.ndarray:
    """Return max |⟨y_i, y_j⟩| over the other samples j, for every sample i; at least epsilon."""
    off = np.abs(gram)
    np.fill_diagonal(off, 0.0)
    return np.asarray(np.maximum(off.max(axis=1), np.finfo(float).eps))


def two_step_weights(gram: np.ndarray, radius: float) -> np.ndarray:
    """Return .25/‖β*‖₁ with β* the code of least ‖β‖₁ whose residual is at most `radius`.

    The residual grows with the weight of the lasso: bisection finds the weight at which the
    residual equals `radius`, for all samples at once.
    """
    high = largest_products(gram)
    low = 1e-4 * high
    sums = np.zeros(len(gram))
    for _ in range(BISECTIONS):
        middle = np.sqrt(low * high)
        codes, _ = lasso_codes(gram, middle, tol=1e-4)
        close = residual_squares(gram, codes) <= radius**2
        low, high = np.where(close, middle, low), np.where(close, high, middle)
        sums = np.where(close, np.asarray(abs(codes).sum(axis=1)).ravel(), sums)
    return np.asarray(0.25 / np.where(sums > 0, sums, 1.0))


def residual_squares(gram: np.ndarray, codes: scipy.sparse.csr_array) -> np.ndarray:
    """Return ‖y_i - Yc_i‖² of every sample."""
    fitted = np.asarray(codes @ gram)
    inner = np.einsum("ij,ij->i", fitted, codes.toarray())
    return np.asarray(np.maximum(np.diag(gram) - 2.0 * np.diag(fitted) + inner, 0.0))


def duality_gaps(
    gram: np.ndarray, codes: scipy.sparse.csr_array, weights: np.ndarray
) -> np.ndarray:
    """Return the duality gap of every lasso, divided by its objective at 0."""
    dense = codes.toarray()
    gradient = gram - dense @ gram
    residual = residual_squares(gram, codes)
    primal = 0.5 * residual + weights * np.abs(dense).sum(axis=1)
    largest = np.abs(gradient - np.diag(np.diag(gradient))).max(axis=1)
    scale = np.minimum(1.0, weights / np.maximum(largest, np.finfo(float).tiny))
    # θ = scale · residual is feasible: its value is ½‖y‖² - ½‖y - θ‖².
    dual = scale * np.diag(gradient) - 0.5 * scale**2 * residual
    return np.asarray((primal - dual) / np.maximum(0.5 * np.diag(gram), np.finfo(float).tiny))


def codes_to_affinity(
    codes: scipy.sparse.csr_array, failed: int, weight: str
) -> scipy.sparse.csr_array:
    """Return the affinity of codes; warn about codes that are empty or did not converge."""
    if failed:
        warn_user(f"{failed} of {codes.shape[0]} sparse codes did not converge")
    empty = int((np.diff(codes.indptr) == 0).sum())
    if empty:
        warn_user(
            f"{empty} of {codes.shape[0]} sparse codes are empty with {weight}: these samples have "
            "no neighbour; choose a weight that makes codes denser"
        )
    return symmetric_affinity(codes)


def lasso_codes(
    gram: np.ndarray, weights: np.ndarray, *, tol: float = 1e-7
) -> tuple[scipy.sparse.csr_array, int]:
    """Return the codes of all samples, sparse, and how many did not converge.

    Parameters
    ----------
    gram : array of shape (k, k)
        Inner products of the atoms; the first n atoms are the samples.
    weights : array of shape (n,)
        Weight of ‖c‖₁ for every sample, against ½‖y - Yc‖².
    tol : float, default=1e-7
        Largest violation of the optimality conditions, as a fraction of the weight.
    """
    from polyspan.baselines.code_loops import solve_lassos  # loads numba

    chunks, failed = [], 0
    for which in row_slices(len(weights), CHUNK):
        own = np.ascontiguousarray(weights[which], dtype=np.float64)
        codes = np.zeros((len(own), len(gram)))
        failed += solve_lassos(gram, which.start, own, codes, tol)
        chunks.append(scipy.sparse.csr_array(codes))
    return scipy.sparse.vstack(chunks, format="csr"), failed


def omp_codes(gram: np.ndarray, n_nonzero: int) -> scipy.sparse.csr_array:
    """Return the codes of all samples, with at most n_nonzero entries chosen greedily."""
    from polyspan.baselines.code_loops import pursue  # loads numba

    chunks = []
    for which in row_slices(len(gram), CHUNK):
        codes = np.zeros((which.stop - which.start, len(gram)))
        pursue(gram, which.start, min(n_nonzero, len(gram) - 1), codes)
        chunks.append(scipy.sparse.csr_array(codes))
    return scipy.sparse.vstack(chunks, format="csr")
