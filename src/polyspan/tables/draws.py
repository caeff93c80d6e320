"""Draw missing entries from what is known of them, with the uncertainty of what was learned."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from polyspan.tables.gaussian import conditional_draws
from polyspan.tables.model import TableModel


def drawn_levels(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return a level for each row, the one at which the sum of probabilities reaches a number."""
    reached = np.cumsum(probabilities, axis=1) < uniform[:, None]
    last = probabilities.shape[1] - 1
    return np.asarray(np.minimum(reached.sum(axis=1), last), dtype=np.float64)


def draw_table(model: TableModel, table: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return the table with its missing entries drawn.

    The Gaussians are drawn first, as they would be from other rows. Categories are drawn one after
    another, each given those before it. The other entries of a row are drawn together: as they are
    correlated in the Gaussian of the scores, given what is observed. A number is what an entry with
    much the same prediction had, relative to that prediction.
    """
    gaussians = model.redrawn(rng)
    out = table.copy()
    columns = model.encoding.columns
    for j, column in enumerate(columns):
        if column.margin is None and np.isnan(out[:, j]).any():
            found = model.predict(out, gaussians)[j]
            out[found.rows, j] = drawn_levels(found.values, rng.uniform(size=len(found.rows)))
    if not np.isnan(out).any():
        return out
    scores = model.encoding.scores(out, model.encoding.standardised(out))
    uniform = ndtr(conditional_draws(scores, gaussians[1], rng.standard_normal(scores.shape)))
    scaling = model.encoding.scaling
    weights = rng.standard_exponential(model.n_table_rows)
    drawn = out.copy()
    for j, (column, found) in enumerate(zip(columns, model.predict(out, gaussians), strict=True)):
        if not len(found.rows):
            continue
        at, donors = uniform[found.rows, column.start], model.donors[j]
        if donors is None:
            drawn[found.rows, j] = drawn_levels(found.values, at)
        else:
            one = column.start
            scale, mean = scaling.scale[one], scaling.mean[one]
            expected = (found.values - mean) / scale
            values = donors.draw(expected, found.spread / scale, at, weights)
            if not donors.stepped:
                values = np.clip(values * scale + mean, scaling.least[one], scaling.most[one])
            drawn[found.rows, j] = values
    return drawn
