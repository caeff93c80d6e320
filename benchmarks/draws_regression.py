"""Coverage of intervals from regressions on drawn tables, pooled by Rubin's rules.

y = b0 + b1 x1 + b2 x2 + b3 x3 + noise, 150 rows, correlated Gaussian x. Two columns have holes,
with probabilities that are logistic functions of a column without any (missing at random; about a
third of each): x1 and y, by x3, where the rows without holes are unbiased; or x1 and x2, by y,
where they are not. Least squares on 20 completed tables are pooled, and the part of 95 % intervals
that hold the true coefficient is counted, beside regressions on the complete data, on the rows
without holes, and on one filled table whose filled entries count as observed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import t

import polyspan
from draw_methods import DRAWS
from polyspan import SubspaceImputer

N_ROWS, N_DRAWS, LEVEL = 150, 20, 0.95
COEFFICIENTS = np.array([1.0, 0.5, 0.5, -0.5])
CORRELATION = 0.5
#: Columns with holes, and the column that decides; the columns of a table are x1, x2, x3, y.
SCENARIOS = {"x1 and y, by x3": ((0, 3), 2), "x1 and x2, by y": ((0, 1), 3)}
#: Intercept and slope of the log odds of a hole, for the first and the second column with holes.
LOG_ODDS = ((-0.9, 1.0), (-0.9, -1.0))
SINGLE = "polyspan, one table"

Interval = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Estimate, low and high of every coefficient."""


def draw_data(scenario: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a complete table and the same one with holes."""
    rng = np.random.default_rng([seed, list(SCENARIOS).index(scenario)])
    covariance = np.full((3, 3), CORRELATION) + (1 - CORRELATION) * np.eye(3)
    x = rng.multivariate_normal(np.zeros(3), covariance, N_ROWS)
    y = COEFFICIENTS[0] + x @ COEFFICIENTS[1:] + rng.standard_normal(N_ROWS)
    table = np.column_stack([x, y])
    holes = table.copy()
    columns, by = SCENARIOS[scenario]
    decides = (table[:, by] - table[:, by].mean()) / table[:, by].std()
    for column, (intercept, slope) in zip(columns, LOG_ODDS, strict=True):
        chance = 1 / (1 + np.exp(-intercept - slope * decides))
        holes[rng.random(N_ROWS) < chance, column] = np.nan
    return table, holes


def least_squares(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of y on 1, x1, x2, x3 and the variances of their estimates."""
    X = np.column_stack([np.ones(len(table)), table[:, :3]])
    inverse = np.linalg.inv(X.T @ X)
    coefs = inverse @ X.T @ table[:, 3]
    residuals = table[:, 3] - X @ coefs
    return coefs, np.diag(inverse) * (residuals @ residuals) / (len(X) - X.shape[1])


def one_table(table: np.ndarray) -> Interval:
    """Return estimates and intervals of one table, as if all its entries were observed."""
    coefs, variances = least_squares(table)
    half = t.ppf(0.5 + LEVEL / 2, len(table) - len(coefs)) * np.sqrt(variances)
    return coefs, coefs - half, coefs + half


def pooled(tables: np.ndarray) -> Interval:
    """Return estimates and intervals by Rubin's rules."""
    fits = [least_squares(table) for table in tables]
    estimates, variances = (np.array(values) for values in zip(*fits, strict=True))
    if hasattr(polyspan, "pool_estimates"):
        result = polyspan.pool_estimates(estimates, variances)
        low, high = result.interval(LEVEL)
        return np.asarray(result.estimate), np.asarray(low), np.asarray(high)
    return rubin(estimates, variances)


def rubin(estimates: np.ndarray, variances: np.ndarray) -> Interval:
    """Pool by Rubin's rules of 1987; only for versions of polyspan without `pool_estimates`."""
    n_draws = len(estimates)
    between = (1 + 1 / n_draws) * estimates.var(axis=0, ddof=1)
    within = variances.mean(axis=0)
    df = (n_draws - 1) * (1 + within / between) ** 2
    half = t.ppf(0.5 + LEVEL / 2, df) * np.sqrt(within + between)
    mean = estimates.mean(axis=0)
    return mean, mean - half, mean + half


def intervals(method: str, table: np.ndarray, holes: np.ndarray, seed: int) -> Interval:
    """Return estimates and intervals of one method."""
    if method == "nothing missing":
        return one_table(table)
    if method == "complete rows":
        return one_table(holes[~np.isnan(holes).any(axis=1)])
    if method == SINGLE:
        return one_table(SubspaceImputer(random_state=0).fit_transform(holes))
    return pooled(DRAWS[method](holes, N_DRAWS, seed))


def simulate(
    n_simulations: int, methods: Sequence[str], stored: dict[str, Any], store: Callable[[], None]
) -> None:
    """Run the simulations that are not stored yet; they are stored every ten."""
    compared = ["nothing missing", "complete rows", SINGLE, *methods]
    for seed in range(n_simulations):
        for scenario in SCENARIOS:
            table, holes = draw_data(scenario, seed)
            for method in compared:
                key = f"{scenario}|{seed}|{method}"
                if key in stored:
                    continue
                start = time.process_time()
                estimate, low, high = intervals(method, table, holes, seed)
                stored[key] = {
                    "estimate": estimate.tolist(),
                    "low": low.tolist(),
                    "high": high.tolist(),
                    "CPU s": time.process_time() - start,
                }
        if seed % 10 == 9 or seed == n_simulations - 1:
            store()
            print(f"{seed + 1} simulations", flush=True)


def summary(stored: dict[str, Any]) -> str:
    """Return coverage, bias and width of the intervals of every method."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, record in stored.items():
        scenario, _, method = key.split("|")
        found.setdefault((scenario, method), []).append(record)
    lines = [
        "| holes in | method | runs | coverage of b0 / b1 / b2 / b3 | bias | width | CPU s |",
        "|---" * 7 + "|",
    ]
    for (scenario, method), records in sorted(found.items(), key=lambda item: item[0][0]):
        estimates, low, high = (
            np.array([record[name] for record in records]) for name in ("estimate", "low", "high")
        )
        coverage = ((low <= COEFFICIENTS) & (high >= COEFFICIENTS)).mean(axis=0)
        bias = estimates.mean(axis=0) - COEFFICIENTS
        width = (high - low).mean(axis=0)
        seconds = np.mean([record["CPU s"] for record in records])
        cells = (_joined(coverage, ".3f"), _joined(bias, "+.3f"), _joined(width, ".2f"))
        lines.append(
            f"| {scenario} | {method} | {len(records)} | {' | '.join(cells)} | {seconds:.2f} |"
        )
    error = np.sqrt(LEVEL * (1 - LEVEL) / max((len(r) for r in found.values()), default=1))
    lines.append(f"\nTwo standard errors of a coverage of {LEVEL}: {2 * error:.3f}")
    return "\n".join(lines)


def _joined(values: np.ndarray, form: str) -> str:
    return " / ".join(format(value, form) for value in values)
