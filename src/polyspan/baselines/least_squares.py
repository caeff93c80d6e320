"""Least-squares regression of every sample on the others, clustered."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.arrays import unit_rows
from polyspan.base.private_sklearn import Interval
from polyspan.baselines.base import GraphClustering
from polyspan.graphs.edges import largest_of_rows


def ridge_factor(X: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Return A with AAᵀ = XXᵀ(XXᵀ + αI)⁻¹, and 1 minus the diagonal of AAᵀ.

    Only the smaller of XXᵀ and XᵀX is decomposed.

    Returns
    -------
    factor : array of shape (n_samples, min(n_samples, n_features))
    rest : array of shape (n_samples,)
        Positive; a row of codes without its own sample is a row of AAᵀ divided by it.
    """
    n, m = X.shape
    if n <= m:
        values, vectors = np.linalg.eigh(X @ X.T)
        values = np.maximum(values, 0.0)
        # As a sum of positive terms: 1 - ‖a‖² would lose all digits for small α.
        rest = (vectors**2) @ (alpha / (values + alpha))
        return vectors * np.sqrt(values / (values + alpha)), rest
    values, vectors = np.linalg.eigh(X.T @ X)
    factor = (X @ vectors) / np.sqrt(np.maximum(values, 0.0) + alpha)
    rest = 1.0 - np.einsum("ij,ij->i", factor, factor)
    return factor, np.maximum(rest, np.finfo(np.float64).eps)


def least_squares_graph(
    X: np.ndarray,
    alpha: float = 1.0,
    *,
    power: float = 2.0,
    q: int | None = 8,
    normalize: bool = True,
) -> scipy.sparse.csr_array:
    """Return W + Wᵀ for absolute least-squares codes W = |C|ᵖ, p the power.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows of norm 1.
    q : int or None, default=8
        Number of entries kept of every code, the largest. None: all, n_samples² numbers.
    normalize : bool, default=True
        Whether C_ij is H_ij/√(H_iiH_jj), H = XXᵀ(XXᵀ + αI)⁻¹, which is a cosine. False: C has the
        codes themselves, with a zero diagonal.
    """
    factor, rest = ridge_factor(np.asarray(X, dtype=np.float64), alpha)
    if normalize:
        factor = unit_rows(factor)
    scale = np.ones_like(rest) if normalize else 1.0 / rest

    def rows_of(which: slice) -> np.ndarray:
        block = np.abs(factor[which] @ factor.T) * scale[which, None]
        return np.asarray(block**power)

    return largest_of_rows(rows_of, len(X), q)


class LeastSquaresSubspaceClustering(GraphClustering):
    r"""Cluster samples by their ridge regression on the others (LSR).

    .. math:: \min_C \|Y - CY\|^2 + \alpha \|C\|^2 \quad (\mathrm{diag}(C) = 0)

    has a closed form (Lu, Min, Zhao, Zhu, Huang and Yan, 2012). The absolute values of C are the
    graph that is clustered: by default after scaling and with the largest of every row alone,
    which the paper does not do, and which real data need.

    Parameters
    ----------
    n_subspaces : int or None, default=3
        Number of clusters. None: chosen by the widest gap between the eigenvalues of the graph's
        Laplacian.
    subspace_dim : int, default=1
        Dimension of the subspace that is fitted to every cluster.
    alpha : float, default=1.0
        Weight of the squared codes, for samples of norm 1.
    power : float, default=2.0
        Power of the absolute values: larger ones weaken small coefficients, which join different
        subspaces.
    q : int or None, default=8
        Number of coefficients kept of every sample, the largest. None: all.
    normalize : bool, default=True
        Whether coefficients are scaled to cosines: without the condition on the diagonal
        C = AAᵀ, and :math:`\langle a_i, a_j \rangle` is divided by the norms of both rows. False
        with `power=1, q=None` is the method of the paper.
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
    labels_, affinity_, bases_, mean_, n_subspaces_, n_features_in_
        As for `SparseSubspaceClustering`.

    Notes
    -----
    The smaller of the two Gram matrices is decomposed once, and codes are computed in blocks of
    rows. With `q=None` the graph has n_samples² entries.

    Examples
    --------
    >>> from polyspan.baselines import LeastSquaresSubspaceClustering
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((40, 40), n_features=30, subspace_dim=2, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> model = LeastSquaresSubspaceClustering(2, 2, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_)
    0.0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **GraphClustering._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "power": [Interval(Real, 0, None, closed="neither")],
        "q": [Interval(Integral, 1, None, closed="left"), None],
        "normalize": ["boolean"],
    }

    def __init__(
        self,
        n_subspaces: int | None = 3,
        subspace_dim: int = 1,
        *,
        alpha: float = 1.0,
        power: float = 2.0,
        q: int | None = 8,
        normalize: bool = True,
        max_subspaces: int = 10,
        assign_labels: str = "kmeans",
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.alpha = alpha
        self.power = power
        self.q = q
        self.normalize = normalize
        self.max_subspaces = max_subspaces
        self.assign_labels = assign_labels
        self.center = center
        self.random_state = random_state

    def _affinity(self, X: np.ndarray, seed: int) -> scipy.sparse.csr_array:
        return least_squares_graph(
            X, self.alpha, power=self.power, q=self.q, normalize=self.normalize
        )
