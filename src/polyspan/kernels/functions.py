"""Kernel functions by scikit-learn's names, and what has a pre-image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

#: A name of `sklearn.metrics.pairwise_kernels`, or a function of two samples.
KernelName = str | Callable[..., float]


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters, named as in scikit-learn's `KernelPCA`.

    The paper's Gaussian exp(-d²/c) is "rbf" with gamma = 1/c, its polynomial (⟨x, y⟩ + c)ᵈ is
    "poly" with gamma = 1, coef0 = c, degree = d.

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
    """None: 1 / n_features."""
    degree: float = 3
    coef0: float = 1
    others: dict[str, Any] | None = None
    """Parameters of a callable."""

    def __call__(self, X: np.ndarray, Y: np.ndarray | None = None) -> np.ndarray:
        """Return κ(x, y) of all pairs of rows, (len(X), len(Y))."""
        if callable(self.name):
            values = pairwise_kernels(X, Y, metric=self.name, **(self.others or {}))
        else:
            parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
            values = pairwise_kernels(X, Y, metric=self.name, filter_params=True, **parameters)
        values = np.asarray(values)
        if Y is None and not callable(self.name):
            # A product of a matrix with itself may differ from its transpose by rounding.
            values = (values + values.T) / 2
        return np.asarray(values)

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """Return κ(x, x) of every row, without the other pairs."""
        if self.name == "rbf":
            return np.ones(len(X), dtype=X.dtype)
        if self.name in ("linear", "poly"):
            return self.of_products(np.einsum("nm,nm->n", X, X), X.shape[1])
        return np.array([self(row[None, :])[0, 0] for row in X], dtype=X.dtype)

    def of_products(self, products: np.ndarray, n_features: int) -> np.ndarray:
        """Return the values of a dot-product kernel at given inner products."""
        if self.name == "linear":
            return products
        gamma = self.scale(n_features)
        return np.asarray((gamma * products + self.coef0) ** self.degree)

    def of_distances(self, squares: np.ndarray, n_features: int) -> np.ndarray:
        """Return the values of the Gaussian kernel at given squared distances."""
        return np.asarray(np.exp(-self.scale(n_features) * squares))

    def scale(self, n_features: int) -> float:
        """Return gamma, or its default."""
        return 1.0 / n_features if self.gamma is None else float(self.gamma)

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
