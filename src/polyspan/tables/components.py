"""What Gaussians of both scales expect, and several Gaussians: rows may belong to several kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from polyspan.base.arrays import one_hot
from polyspan.base.private_sklearn import plain_settings
from polyspan.tables.encoding import Encoding
from polyspan.tables.gaussian import (
    LEAST_VARIANCE,
    Conditionals,
    Gaussian,
    conditionals,
    em_step,
    log_densities,
    precisions,
)

#: Weight of the pooled covariance, in rows.
POOLED_ROWS = 20.0
STEPS = 8

#: Of the standardised columns, and of their normal scores.
Pair = tuple[Gaussian, Gaussian]


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


@dataclass(frozen=True)
class Expected:
    """What the Gaussians expect of every entry of some rows, observed ones left out."""

    encoding: Encoding
    linear: Conditionals
    """Of the standardised columns."""
    ranks: Conditionals
    """Of their normal scores."""
    several: np.ndarray | None
    """(2, n_samples, n_encoded): mean and variance by several Gaussians of standardised columns."""

    @classmethod
    def of(
        cls, table: np.ndarray, encoding: Encoding, gaussians: Pair, components: Components | None
    ) -> Expected:
        """Return what Gaussians that were learned expect of the entries of a table."""
        scales = encoding.scales(table)
        linear, ranks = (
            conditionals(Z, one, encoding.blocks) for Z, one in zip(scales, gaussians, strict=True)
        )
        several = None if components is None else components.expect(scales[0], encoding)
        return cls(encoding, linear, ranks, several)

    def members(self, j: int, rows: np.ndarray) -> list[np.ndarray]:
        """Return the predictions of column j in some rows, as its targets are."""
        encoding, linear, ranks = self.encoding, self.linear, self.ranks
        found = [
            (encoding.from_standardised, linear.expected, linear.variances),
            (encoding.from_scores, ranks.expected, ranks.variances),
        ]
        if self.several is not None:
            found.append((encoding.from_standardised, *self.several))
        block = encoding.columns[j].block
        return [
            predict(j, mean[rows, block], spread[rows, block]) for predict, mean, spread in found
        ]

    def variances(self, j: int, rows: np.ndarray) -> np.ndarray:
        """Return the variances of a column of numbers."""
        known = self.linear.variances if self.several is None else self.several[1]
        return np.asarray(known[rows, self.encoding.columns[j].start])


def fit_components(
    Z: np.ndarray, pooled: Gaussian, number: int, rng: np.random.RandomState
) -> Components:
    """Learn several Gaussians by a few steps of EM, from clusters of the filled rows."""
    known = conditionals(Z, pooled, [])
    filled, masks = known.fills, known.masks
    with plain_settings():
        labels = KMeans(number, n_init=3, random_state=rng.randint(2**31 - 1)).fit_predict(filled)
    shares = one_hot(labels, number, np.float64).T
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
