"""A second opinion on clusters, by a mixture of affine subspaces.

Graphs find clusters by angles and neighbours: they are right on pictures and on subspaces through
the origin, and know nothing of clusters that are apart in position. Where they contradict their own
consensus, as in most standardised tables, a mixture speaks: it finds clusters of any place, shape
and size where columns are few.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score

from polyspan.clustering.coordinates import Coordinates
from polyspan.mixture import SubspaceMixture

#: What labels come from where the mixture speaks.
MIXTURE = "a mixture of affine subspaces, since the graphs contradict their consensus"
#: A mixture of more columns than this is learned along so many principal directions.
MOST_COLUMNS, N_DIRECTIONS = 40, 30
#: Stability is found on at most so many rows, from pairs of parts of them.
MOST_ROWS, N_PAIRS, PART = 1500, 3, 0.8
#: The graphs see other clusters: so a certainty is at most so much, however stable clusters are.
NOT_HIGH = 0.79


@dataclass(frozen=True)
class Opinion:
    """Clusters of a mixture."""

    mixture: SubspaceMixture
    mean: np.ndarray
    """Of the rows, which is subtracted first."""
    axes: np.ndarray | None
    """Principal directions that it is learned along, (n_features, n_directions); None: columns."""
    rows: np.ndarray
    """The rows that it is learned from: minus their mean, along the axes."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.mixture.weights_)


def by_mixture(X: np.ndarray, number: int | tuple[int, int], seed: int) -> Opinion:
    """Cluster rows by a mixture whose sizes BIC chooses; the number may be given."""
    mean = X.mean(axis=0)
    Z, axes = X - mean, None
    if X.shape[1] > MOST_COLUMNS:
        axes = Coordinates.of(Z, seed).V[:, :N_DIRECTIONS]
        Z = Z @ axes
    mixture = SubspaceMixture(number, "auto", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(Z)
    in_order_of_rows(mixture)
    return Opinion(mixture, mean, axes, Z)


def in_order_of_rows(mixture: SubspaceMixture) -> None:
    """Give clusters the order of their first rows, so that rounding does not decide it."""
    first = np.full(len(mixture.weights_), len(mixture.labels_))
    found, rows = np.unique(mixture.labels_, return_index=True)
    first[found] = rows
    order = np.argsort(first, kind="stable")
    for name in ("weights_", "means_", "bases_", "variances_", "noise_variances_"):
        setattr(mixture, name, getattr(mixture, name)[order])
    mixture.labels_ = np.argsort(order)[mixture.labels_]


def repeats(second: Opinion, seed: int) -> float:
    """Return how stable the clusters of a mixture are when a fifth of the rows is left out."""
    dim = common_dim(second.mixture.candidates_)

    def again(rows: np.ndarray) -> np.ndarray:
        model = SubspaceMixture(second.n_clusters, dim, random_state=seed)
        return np.asarray(model.fit(second.rows[rows]).labels_)

    if second.n_clusters == 1:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stability(again, len(second.rows), np.random.RandomState(seed))


def common_dim(candidates: dict[str, np.ndarray]) -> int:
    """Return the dimension of the best mixture whose subspaces have all the same one."""
    equal = np.array([words.isdigit() for words in candidates["subspace_dims"]])
    best = int(np.argmin(np.where(equal, candidates["bic"], np.inf)))
    return int(candidates["subspace_dims"][best].split(",")[0])


def stability(
    cluster: Callable[[np.ndarray], np.ndarray], n_rows: int, rng: np.random.RandomState
) -> float:
    """Return the mean adjusted Rand index of the clusters of two parts, on rows of both."""
    indices = []
    for _ in range(N_PAIRS):
        rows = rng.permutation(n_rows)[:MOST_ROWS]
        size = int(PART * len(rows))
        labels = np.full((2, n_rows), -1)
        for own in labels:
            part = np.sort(rng.permutation(rows)[:size])
            own[part] = cluster(part)
        both = (labels >= 0).all(axis=0)
        indices.append(adjusted_rand_score(*labels[:, both]))
    return float(np.mean(indices))
