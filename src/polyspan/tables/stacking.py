"""Weights of several predictions: none negative, together at most 1."""

from __future__ import annotations

from itertools import combinations

import numpy as np

#: The weights of a column are drawn to those of the whole table, as if so many of its entries had
#: asked for them.
RIDGE = 5.0
#: The weights of the whole table are drawn to 0, the mean of the columns, by so many entries.
COMMON_RIDGE = 20.0
#: A gain over the whole table of two standard errors, which is this squared, may be chance.
DOUBT = 4.0
#: Errors are cut here for that, in units of the root mean squared error of the mean.
FAR_OUT = 4.0


def stack_weights(
    members: list[np.ndarray], targets: list[np.ndarray], centres: list[np.ndarray]
) -> np.ndarray:
    """Return the weights of the members for every column, by least squares.

    What is left to 1 is the weight of the mean of the column, or of its frequencies.

    Parameters
    ----------
    members : list of arrays of shape (n_j, n_outputs_j, n_members), one per column
        Predictions of observed entries that have not seen them.
    targets : list of arrays of shape (n_j, n_outputs_j)
    centres : list of arrays of shape (n_outputs_j,)
        Prediction without any member.
    """
    grams, sides = [], []
    for found, truth, centre in zip(members, targets, centres, strict=True):
        n_members = found.shape[2]
        away = (found - centre[:, None]).reshape(-1, n_members)
        # A column counts by its own variance, whatever the number of its levels.
        unit = float(np.mean(np.sum((truth - centre) ** 2, axis=1))) or 1.0
        grams.append(away.T @ away / unit)
        sides.append(away.T @ (truth - centre).ravel() / unit)
    n_members = members[0].shape[2]
    common = simplex_weights(sum(grams), sum(sides), np.zeros(n_members), COMMON_RIDGE)
    weights = np.array(
        [simplex_weights(*one, common, RIDGE) for one in zip(grams, sides, strict=True)]
    )
    gains = [_gains(*one) for one in zip(members, targets, centres, weights, strict=True)]
    return weights * _trust(np.concatenate(gains))


def _gains(
    found: np.ndarray, truth: np.ndarray, centre: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return by how much the squared error of each entry is below that of the centre."""
    stacked = centre + (found - centre[:, None]) @ weights
    whole, left = (np.sum((truth - one) ** 2, axis=1) for one in (centre, stacked))
    # A few entries far out would decide alone whether a gain is chance.
    most = FAR_OUT**2 * float(whole.mean()) or 1.0
    return np.asarray(np.minimum(whole, most) - np.minimum(left, most)) / most


def _trust(gains: np.ndarray) -> float:
    """Return a factor of the weights, from 0 where a gain may be chance to 1 where it is none."""
    mean, spread = float(gains.mean()), float(gains.std())
    if mean <= 0:
        return 0.0
    error = spread / np.sqrt(len(gains))  # standard error of the mean
    return float(max(0.0, 1.0 - DOUBT * (error / mean) ** 2))


def simplex_weights(
    gram: np.ndarray, side: np.ndarray, centre: np.ndarray, ridge: float
) -> np.ndarray:
    """Minimise wᵀGw - 2bᵀw + ridge ‖w - centre‖² over w ≥ 0 with sum at most 1.

    There are three or four weights, so all sets of those that are not 0 are tried.
    """
    n = len(side)
    gram, side = gram + ridge * np.eye(n), side + ridge * centre
    best, least = np.zeros(n), 0.0
    for size in range(1, n + 1):
        for chosen in combinations(range(n), size):
            some = list(chosen)
            system = gram[np.ix_(some, some)]
            found = np.linalg.solve(system, side[some])
            if found.sum() > 1.0:
                step = np.linalg.solve(system, np.ones(size))
                found = found - (found.sum() - 1.0) / step.sum() * step
            value = float(found @ system @ found - 2.0 * found @ side[some])
            if (found >= 0).all() and value < least:
                best, least = np.zeros(n), value
                best[some] = found
    return best
