"""The best dimension of kernel PCA for known clean test samples (the paper's KPCA-Oracle)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan.baselines import KernelPCADenoiser
from polyspan.kernels import Kernel


def oracle_dimensions(
    train: np.ndarray, clean: np.ndarray, noisy: Sequence[np.ndarray], *, gamma: float
) -> list[int]:
    """Return the s that minimises the mean of ‖P φ(z) - φ(x)‖² for each set of noisy samples z."""
    full = KernelPCADenoiser(len(train) - 1, gamma=gamma).fit(train)
    coefs, members = full.coefs_[0], full.members_[0]
    kernel = Kernel("rbf", gamma=gamma)
    centerer = KernelCenterer().fit(kernel(train))

    def coordinates(Z: np.ndarray) -> np.ndarray:
        return np.asarray(centerer.transform(kernel(Z, train))[:, members] @ coefs)

    truth = coordinates(clean)
    dims = []
    for Z in noisy:
        found = coordinates(Z)
        # ‖Pφ(z) - φ(x)‖² is ‖φ(x)‖² plus, for every component, z_k² - 2 z_k x_k.
        cost = np.cumsum(found**2 - 2 * found * truth, axis=1).mean(axis=0)
        dims.append(int(cost.argmin()) + 1)
    return dims
