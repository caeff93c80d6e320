"""K-means in the feature space of a kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import one_hot
from polyspan.base.checks import refuse_missing, validate_samples, warn_unconverged
from polyspan.base.private_sklearn import (
    CallbackSupportMixin,
    Interval,
    fit_context,
    html_with_summary,
)
from polyspan.base.progress import FitProgress
from polyspan.data.weights import check_weights, keep_without_weight
from polyspan.kernel.functions import (
    KERNEL_CONSTRAINTS,
    check_kernel_matrix,
    check_values,
    kernel_of,
)
from polyspan.kernel.prediction import MISSING_ADVICE, PRECOMPUTED
from polyspan.linear.summary import labels_of_fit
from polyspan.summaries import Summary, listed


class KernelKMeans(CallbackSupportMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """K-means in the feature space of a kernel, from k-means++ starts.

    Parameters
    ----------
    n_clusters : int, default=3
        Number of clusters.
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        The kernel function. With "precomputed", `fit` takes the kernel matrix. A callable takes
        two samples and returns a number.
    gamma : float or None, default=None
        Positive factor in "rbf", exp(-gamma d²), and in "poly"; None: 1 / n_features.
    degree : float, default=3
        Positive exponent of "poly", (gamma ⟨x, y⟩ + coef0)^degree.
    coef0 : float, default=1
        Constant of "poly".
    n_init : int, default=10
        Number of starts; the one with the lowest inertia is kept.
    max_iter : int, default=300
        Largest number of iterations of a start.
    tol : float, default=0.0
        Stop when the inertia falls by no more than this fraction; 0: when no label changes.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training sample.
    inertia_ : float
        Sum of squared feature-space distances to the centres.
    n_iter_ : int
        Number of iterations of the best start.
    n_features_in_ : int
        Number of features seen during `fit`.

    Examples
    --------
    >>> from polyspan.baselines import KernelKMeans
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(90, centers=3, cluster_std=0.5, random_state=0)
    >>> len(set(KernelKMeans(3, gamma=0.5, random_state=0).fit_predict(X)))
    3
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        **KERNEL_CONSTRAINTS,
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 3,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples; with `kernel="precomputed"` the kernel matrix.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts in centres, inertia and starts; 0 is no sample.

        Returns
        -------
        KernelKMeans
            The fitted estimator.
        """
        X = self._validate(X, reset=True)
        given = check_weights(sample_weight, X)
        keep_without_weight(self, sample_weight)
        weights = np.ones(len(X)) if given is None else given
        n_counted = np.count_nonzero(weights)
        if self.n_clusters > n_counted:
            raise ValueError(f"n_clusters={self.n_clusters} is larger than n_samples={n_counted}")
        kernel = kernel_of(self)
        G = check_kernel_matrix(X if kernel is None else kernel(X), self.kernel)
        rng = check_random_state(self.random_state)
        progress = FitProgress(self, X, y, self.n_init, self.max_iter)
        results = [self._run(G, weights, rng, progress, k) for k in range(self.n_init)]
        inertia, labels, n_iter, converged = min(results, key=lambda result: result[0])
        self.labels_, self.inertia_, self.n_iter_ = labels, inertia, n_iter
        self._fitted_kernel = kernel
        self._X_fit = None if kernel is None else X.copy()  # as in the kernel models
        self._means, _, self._mean_squares = self._centres(G, labels, weights)
        if not converged:
            warn_unconverged(
                f"labels did not converge in max_iter={self.max_iter} iterations: raise max_iter"
            )
        progress.end()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the index of the nearest centre of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; with `kernel="precomputed"` the kernel values with the training samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Cluster of every sample.
        """
        X = self._validate(X, reset=False)
        kernel = self._fitted_kernel
        K = X if kernel is None else check_values(kernel(X, self._X_fit))
        return np.asarray((self._mean_squares - 2.0 * K @ self._means).argmin(axis=1))

    def summary(self) -> Summary:
        """Return in words what was found.

        Returns
        -------
        Summary
            Sentences; `print` shows them as text.
        """
        check_is_fitted(self)
        sizes = np.bincount(labels_of_fit(self), minlength=self.n_clusters)
        facts = (
            ("Clusters", str(len(sizes))),
            ("Sizes", listed(sizes)),
            ("Inertia", f"{self.inertia_:.4g}"),
            ("Iterations of the best start", str(self.n_iter_)),
        )
        return Summary(tuple(f"{name}: {value}." for name, value in facts), facts=facts)

    _short_summary = summary
    _html_repr = html_with_summary  # of scikit-learn, for notebooks

    def _validate(self, X: Any, *, reset: bool) -> Any:
        X = validate_samples(self, X, reset=reset, fitted="labels_", double=True)
        refuse_missing(self, X, PRECOMPUTED if self.kernel == "precomputed" else MISSING_ADVICE)
        return X

    def _run(
        self,
        G: np.ndarray,
        weights: np.ndarray,
        rng: np.random.RandomState,
        progress: FitProgress,
        number: int,
    ) -> tuple[float, np.ndarray, int, bool]:
        """Run Lloyd's iteration on kernel values from one start."""
        diagonal, counted = np.diag(G), weights > 0
        labels = self._plus_plus(G, weights, rng)
        before, step, converged = np.inf, 0, False
        tick = progress.ticker(number)
        while step < self.max_iter and not converged:
            step += 1
            means, products, squares = self._centres(G, labels, weights)
            distances = diagonal[:, None] - 2.0 * products + squares
            distances[:, ~means.any(axis=0)] = np.inf
            new_labels = distances.argmin(axis=1)
            # Give an empty cluster the sample that is farthest from its own centre.
            for p in np.flatnonzero(self._sizes(new_labels, counted) == 0):
                to_centre = distances[np.arange(len(G)), new_labels].copy()
                to_centre[self._sizes(new_labels, counted)[new_labels] < 2] = -np.inf
                to_centre[~counted] = -np.inf
                new_labels[int(to_centre.argmax())] = p
            inertia = float((weights * np.maximum(distances.min(axis=1), 0.0)).sum())
            small = before - inertia < self.tol * inertia
            converged = bool(np.array_equal(new_labels, labels) or small)
            labels, before = new_labels, inertia
            tick()
        progress.end_start(number)
        return inertia, labels, step, converged

    def _sizes(self, labels: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """Return the number of samples in every cluster, without those of weight 0."""
        return np.bincount(labels[counted], minlength=self.n_clusters)

    def _centres(
        self, G: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples' weights in every centre, their products with it, its squared norm."""
        members = one_hot(labels, self.n_clusters, np.float64) * weights[:, None]
        totals = members.sum(axis=0)
        means = members / np.where(totals > 0, totals, 1.0)
        products = G @ means
        return means, products, np.einsum("nk,nk->k", means, products)

    def _plus_plus(
        self, G: np.ndarray, weights: np.ndarray, rng: np.random.RandomState
    ) -> np.ndarray:
        """Draw centres far apart (k-means++) and label samples by the nearest."""
        diagonal = np.diag(G)
        if (weights == 1).all():
            centres = [int(rng.randint(len(G)))]
        else:
            centres = [int(rng.choice(len(G), p=weights / weights.sum()))]
        nearest = np.maximum(diagonal + diagonal[centres[0]] - 2.0 * G[centres[0]], 0.0)
        labels = np.zeros(len(G), dtype=np.int64)
        while len(centres) < self.n_clusters:
            odds = weights * nearest
            odds = odds / odds.sum() if odds.sum() > 0 else weights / weights.sum()
            centre = int(rng.choice(len(G), p=odds))
            distances = np.maximum(diagonal + diagonal[centre] - 2.0 * G[centre], 0.0)
            labels = np.where(distances < nearest, len(centres), labels)
            nearest = np.minimum(nearest, distances)
            centres.append(centre)
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
