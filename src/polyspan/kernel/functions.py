"""Kernel functions, named as in scikit-learn; kernel matrices, checked and centred."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import KernelCenterer

from polyspan.base.arrays import Array, identity, is_numpy, namespace, to_numpy, zeros
from polyspan.base.private_sklearn import Interval, StrOptions, plain_settings

#: A name of `sklearn.metrics.pairwise_kernels`, or a function of two samples.
KernelName = str | Callable[..., float]
#: The values that the parameters of a kernel may have, as scikit-learn checks them.
KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({"rbf", "poly", "linear", "precomputed"}), callable],
    "gamma": [Interval(Real, 0, None, closed="neither"), None],
    "degree": [Interval(Real, 0, None, closed="neither")],
    "coef0": [Interval(Real, None, None, closed="neither")],
}


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters, named as in scikit-learn's `KernelPCA`.

    The paper's Gaussian exp(-d²/c) is "rbf" with gamma = 1/c, its polynomial (⟨x, y⟩ + c)ᵈ is
    "poly" with gamma = 1, coef0 = c, degree = d.

    Parameters
    ----------
    name : str or callable
        Name of a kernel of `sklearn.metrics.pairwise_kernels`, such as "rbf", "poly" or "linear",
        or a function of two samples that returns a number.
    gamma : float or None, default=None
        Factor of squared distances or inner products; None: 1 / n_features.
    degree : float, default=3
        Exponent of "poly".
    coef0 : float, default=1
        Constant of "poly".
    others : dict or None, default=None
        Further parameters, which a callable gets.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.kernels import Kernel
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> Kernel("rbf", gamma=0.5)(X).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    name: KernelName
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    others: dict[str, Any] | None = None

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return κ(x, y) of all pairs of rows, (len(X), len(Y)), on the device of X."""
        if Y is not None:
            X = self.near(X)
        if not is_numpy(X):
            return self._by_products(X, Y)
        parameters = self.others or {}
        if not callable(self.name):
            named = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
            parameters = {**named, "filter_params": True}
        # Values that are not finite have an error of their own.
        with plain_settings(), np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(pairwise_kernels(X, Y, metric=self.name, **parameters))
        if Y is None and not callable(self.name):
            # A product of a matrix with itself may differ from its transpose by rounding.
            values = (values + values.T) / 2
        return values

    def _by_products(self, X: Array, Y: Array | None) -> Array:
        """Return the values of a kernel that is a function of inner products, in any namespace."""
        if self.name not in ("rbf", "linear", "poly"):
            raise ValueError(
                f"kernel={self.name!r} needs NumPy arrays; 'rbf', 'poly', 'linear' take others too"
            )
        xp = namespace(X)
        other = X if Y is None else Y
        products = X @ other.mT
        if self.name != "rbf":
            values = self.of_products(products, X.shape[1])
            return (values + values.mT) / 2.0 if Y is None else values
        squares = xp.vecdot(X, X)[:, None] + xp.vecdot(other, other) - 2.0 * products
        if Y is None:
            squares = (squares + squares.mT) / 2.0 * (1.0 - identity(X.shape[0], X))
        return self.of_distances(xp.clip(squares, 0.0, None), X.shape[1])

    def diagonal(self, X: Array) -> Array:
        """Return κ(x, x) of every row, without the other pairs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples without missing entries.

        Returns
        -------
        array of shape (n_samples,)
            Kernel value of every sample with itself.
        """
        if self.name == "rbf":
            return zeros((X.shape[0],), X) + 1.0
        if self.name in ("linear", "poly"):
            with np.errstate(over="ignore", invalid="ignore"):
                values = self.of_products(namespace(X).vecdot(X, X), X.shape[1])
            return check_values(values)
        return np.array([self(row[None, :])[0, 0] for row in X], dtype=X.dtype)

    def near(self, X: Array) -> Array:
        """Return samples brought so near that their squares stay finite, for the Gaussian kernel.

        Its values with all other samples are 0 before and after.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        array of shape (n_samples, n_features)
            The samples themselves for other kernels, and where no entry is far too large.
        """
        if self.name != "rbf":
            return X
        xp = namespace(X)
        largest = float(xp.finfo(X.dtype).max)
        # Squares times gamma have a third of the exponents; of a tiny gamma as many as fit.
        limit = largest**0.375 / min(self.scale(X.shape[1]), 1.0) ** 0.5
        return xp.clip(X, -limit, limit) if limit < largest**0.5 / X.shape[1] else X

    def of_products(self, products: Array, n_features: int) -> Array:
        """Return the values of a dot-product kernel at given inner products.

        Parameters
        ----------
        products : array
            Inner products ⟨x, y⟩, of any shape.
        n_features : int
            Number of features of the samples, from which the default of `gamma` is computed.

        Returns
        -------
        array
            Kernel values, of the shape of `products`.
        """
        if self.name == "linear":
            return products
        gamma = self.scale(n_features)
        return (gamma * products + self.coef0) ** self.degree

    def of_distances(self, squares: Array, n_features: int) -> Array:
        """Return the values of the Gaussian kernel at given squared distances.

        Parameters
        ----------
        squares : array
            Squared distances ‖x - y‖², of any shape.
        n_features : int
            Number of features of the samples, from which the default of `gamma` is computed.

        Returns
        -------
        array
            Kernel values, of the shape of `squares`.
        """
        return namespace(squares).exp(-self.scale(n_features) * squares)

    def scale(self, n_features: int) -> float:
        """Return gamma, or its default.

        Parameters
        ----------
        n_features : int
            Number of features of the samples.

        Returns
        -------
        float
            The value of `gamma`; 1 / n_features where it is None.
        """
        return 1.0 / n_features if self.gamma is None else float(self.gamma)

    @property
    def may_be_indefinite(self) -> bool:
        """Whether its kernel matrices can fail to be positive semidefinite."""
        return callable(self.name) or bool(
            self.name == "poly" and (self.coef0 < 0 or self.degree % 1)
        )

    def check_preimage(self) -> None:
        """Raise an error unless the kernel has a pre-image in closed form."""
        if self.name in ("rbf", "linear"):
            return
        has_one = "'rbf', 'linear' and 'poly' with an odd degree have one"
        if self.name != "poly":
            raise ValueError(f"kernel={self.name!r} has no pre-image in closed form: {has_one}")
        if self.degree != int(self.degree) or int(self.degree) % 2 == 0:
            raise ValueError(
                f"kernel='poly' with degree={self.degree} has no pre-image, since an even power "
                f"loses the sign: {has_one}"
            )


def kernel_of(model: Any, others: dict[str, Any] | None = None) -> Kernel | None:
    """Return the kernel that the parameters of an estimator name; None for "precomputed"."""
    if model.kernel == "precomputed":
        return None
    return Kernel(model.kernel, model.gamma, model.degree, model.coef0, others)


def check_kernel_matrix(G: Array, name: Any) -> Array:
    """Return a symmetric kernel matrix, or raise an error that says what is wrong with it."""
    if G.ndim != 2 or G.shape[0] != G.shape[1]:
        raise ValueError(
            f"the kernel matrix has the shape {tuple(G.shape)}: kernel={name!r} needs a square "
            "one, (n_samples, n_samples)"
        )
    check_values(G)
    asymmetry = largest_entry(G - G.mT)
    if asymmetry > 1e-8 * max(largest_entry(G), np.finfo(float).tiny):
        raise ValueError(
            f"the kernel matrix is not symmetric: G and its transpose differ by {asymmetry:.3g}"
        )
    return (G + G.mT) / 2


def check_values(values: Array, power: float = 1.0) -> Array:
    """Return kernel values, or raise an error where sums of a power of them are not finite."""
    xp = namespace(values)
    most = (float(xp.finfo(values.dtype).max) / max(1, values.shape[0]) / 4.0) ** (1 / power)
    if not bool(xp.all(xp.abs(values) < most)):
        raise ValueError(
            "kernel values are not finite: scale X, or lower gamma or degree; a degree that is no "
            "integer has no value where gamma * <x, y> + coef0 is negative"
        )
    return values


def largest_entry(G: Array) -> float:
    """Return the largest absolute value of a matrix."""
    xp = namespace(G)
    return float(xp.max(xp.abs(G)))


def matrix_of(kernel: Kernel | None, X: Array) -> Array:
    """Return the checked kernel matrix of samples; without a kernel, X is that matrix."""
    if kernel is None:
        G = check_kernel_matrix(X, "precomputed")
    else:
        G = check_kernel_matrix(kernel(X), kernel.name)
    if kernel is None or kernel.may_be_indefinite:
        values = to_numpy(namespace(G).linalg.eigvalsh(G))
        if values[0] < -1e-8 * max(float(np.abs(values).max()), np.finfo(float).tiny):
            raise ValueError(
                f"the kernel matrix is not positive semidefinite: its eigenvalues go from "
                f"{values[0]:.3g} to {values[-1]:.3g}; polyspan.kernels.nearest_positive_definite "
                "mends it"
            )
    return G


def centerer_of(G: Array, shares: Array | None) -> KernelCenterer:
    """Return what centres kernel values with the samples of a matrix G.

    `shares` are the weights of the samples, with the sum 1; None: all samples count the same.
    """
    with plain_settings(G):
        centerer = KernelCenterer().fit(G)
    if shares is not None:
        centerer.K_fit_rows_ = shares @ G
        centerer.K_fit_all_ = namespace(G).sum(centerer.K_fit_rows_ * shares)
    return centerer


def centred_by(centerer: KernelCenterer, K: Array, shares: Array | None = None) -> Array:
    """Centre kernel values with the training samples: φ(z) and φ(y_i) minus the mean of φ."""
    if shares is not None:
        return K - (K @ shares)[:, None] - centerer.K_fit_rows_ + centerer.K_fit_all_
    with plain_settings(K):
        return centerer.transform(K)


def feature_distances(G: Array) -> np.ndarray:
    """Return ‖φ(x) - φ(y)‖ of all pairs of samples from a kernel matrix, centred or not.

    The result is a NumPy array, on whichever device G is: the graphs that are made from it, and
    their clustering, use SciPy and scikit-learn.
    """
    G = to_numpy(G)
    diagonal = np.diag(G)
    distances = np.sqrt(np.maximum(diagonal[:, None] + diagonal - 2.0 * G, 0.0))
    np.fill_diagonal(distances, 0.0)
    return np.asarray(distances)
