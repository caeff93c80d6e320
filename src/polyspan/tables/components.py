"""Several Gaussians with whole covariances: rows of a table may belong to several kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from polyspan.base.private_sklearn import plain_settings
from polyspan.tables.encoding import Encoding
from polyspan.tables.gaussian import (
    LEAST_VARIANCE,
    Gaussian,
    conditionals,
    em_step,
    log_densities,
    precisions,
)

#: Rows for each Gaussian, and the most of them.
ROWS_EACH, MOST = 50, 4
#: Weight of the pooled covariance, in rows.
POOLED_ROWS = 20.0
STEPS = 8


@dataclass(frozen=True)
class Components:
    """Gaussians and how often they occur."""

    weights: np.ndarray
    gaussians: tuple[Gaussian, ...]

    def expect(self, Z: np.ndarray, encoding: Encoding) -> np.ndarray:
        """Return mean and variance of every entry, (2, n_samples, n_columns), without itself.

        Leaving an entry out changes how likely each Gaussian is as well: its density is divided
        by that of the entry. Columns of one category are taken to be independent in this.
        """
        logs, means, variances = [], [], []
        for weight, gaussian in zip(self.weights, self.gaussians, strict=True):
            found = conditionals(Z, gaussian, encoding.blocks)
            single = -0.5 * (np.log(found.variances) + found.residuals**2 / found.variances)
            single = np.where(found.observed, single, 0.0)
            for block in encoding.blocks:
                single[:, block] = single[:, block].sum(axis=1, keepdims=True)
            logs.append(np.log(weight) + found.log_densities[:, None] - single)
            means.append(found.expected)
            variances.append(found.variances)
        shares = np.exp(np.array(logs) - logsumexp(logs, axis=0))
        expected = np.sum(shares * means, axis=0)
        second = np.sum(shares * (np.array(variances) + np.square(means)), axis=0)
        return np.stack([expected, np.maximum(second - expected**2, LEAST_VARIANCE)])


def n_components(n_rows: int) -> int:
    """Return how many Gaussians so many rows can tell apart."""
    return int(min(MOST, n_rows // ROWS_EACH))


def fit_components(
    Z: np.ndarray, pooled: Gaussian, number: int, rng: np.random.RandomState
) -> Components:
    """Learn several Gaussians by a few steps of EM, from clusters of the filled rows."""
    known = conditionals(Z, pooled, [])
    filled, masks = known.fills, known.masks
    with plain_settings():
        labels = KMeans(number, n_init=3, random_state=rng.randint(2**31 - 1)).fit_predict(filled)
    shares = np.eye(number)[labels].T
    gaussians = [pooled] * number
    weights = np.full(number, 1.0 / number)
    for step in range(STEPS):
        inverses = [precisions(one.covariance, masks.masks) for one in gaussians]
        if step:
            logs = [
                np.log(weight) + log_densities(Z, one, masks, inverse)
                for weight, one, inverse in zip(weights, gaussians, inverses, strict=True)
            ]
            shares = np.exp(np.array(logs) - logsumexp(logs, axis=0))
        gaussians = [
            em_step(Z, own, masks, one, inverse, pooled.covariance, POOLED_ROWS)
            for own, one, inverse in zip(shares, gaussians, inverses, strict=True)
        ]
        weights = np.maximum(shares.mean(axis=1), 1e-6)
    return Components(weights / weights.sum(), tuple(gaussians))
