"""Generated tables for the benchmarks of imputation; those of the two sets differ in kind."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

N_ROWS = 500


def _frame(columns: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(columns, columns=[f"x{i}" for i in range(columns.shape[1])])


def powers_and_waves() -> pd.DataFrame:
    """Return powers, products and waves of two uniform variables, with noise."""
    rng = np.random.default_rng(11)
    u, v = rng.uniform(-2, 2, (2, N_ROWS))
    waves = [np.sin(2 * u), np.cos(2 * v), np.sin(u + v)]
    columns = np.stack([u, v, u**2, u * v, np.exp(v / 2), np.abs(u - v), *waves], axis=1)
    columns /= columns.std(axis=0)
    return _frame(columns + 0.2 * rng.standard_normal(columns.shape))


def lognormal_factors() -> pd.DataFrame:
    """Return exponentials of sums of three Gaussian factors."""
    rng = np.random.default_rng(12)
    factors = rng.standard_normal((N_ROWS, 3))
    noise = 0.3 * rng.standard_normal((N_ROWS, 10))
    return _frame(np.exp(0.7 * factors @ rng.standard_normal((3, 10)) + noise))


def smooth_surfaces() -> pd.DataFrame:
    """Return draws of a Gaussian process (by random cosines) over three hidden variables."""
    rng = np.random.default_rng(21)
    hidden = rng.standard_normal((N_ROWS, 3))
    frequencies = rng.standard_normal((3, 200)) / 1.5
    cosines = np.sqrt(2 / 200) * np.cos(hidden @ frequencies + rng.uniform(0, 2 * np.pi, 200))
    surfaces = cosines @ rng.standard_normal((200, 10))
    return _frame(surfaces + 0.1 * rng.standard_normal(surfaces.shape))


def heavy_tails() -> pd.DataFrame:
    """Return sums of four factors with three degrees of freedom, some columns Pareto."""
    rng = np.random.default_rng(22)
    factors = rng.standard_t(3, (N_ROWS, 4))
    columns = factors @ rng.standard_normal((4, 12)) + 0.5 * rng.standard_t(3, (N_ROWS, 12))
    ranks = columns[:, 8:].argsort(axis=0).argsort(axis=0)
    columns[:, 8:] = (1 - (ranks + 0.5) / N_ROWS) ** (-1 / 3)
    return _frame(columns)


def clusters() -> pd.DataFrame:
    """Return five Gaussian clusters, each with its own covariance of rank two and noise."""
    rng = np.random.default_rng(23)
    rows = []
    for size in (160, 120, 100, 70, 50):
        scores = rng.standard_normal((size, 2)) @ rng.standard_normal((2, 8))
        rows.append(2 * rng.standard_normal(8) + scores + 0.3 * rng.standard_normal((size, 8)))
    return _frame(rng.permutation(np.concatenate(rows)))


def thresholds() -> pd.DataFrame:
    """Return Gaussian factors, of which some columns are cut into ordered levels or booleans."""
    rng = np.random.default_rng(31)
    loadings = rng.standard_normal((3, 10))
    columns = rng.standard_normal((N_ROWS, 3)) @ loadings + rng.standard_normal((N_ROWS, 10))
    frame = _frame(columns)
    for name in ("x4", "x5", "x6"):
        levels = np.searchsorted(np.quantile(frame[name], [0.2, 0.5, 0.8]), frame[name])
        frame[name] = pd.Categorical.from_codes(
            levels, ["low", "middle", "high", "top"], ordered=True
        )
    for name, quantile in (("x7", 0.5), ("x8", 0.8)):
        frame[name] = frame[name] > frame[name].quantile(quantile)
    utilities = columns[:, :3] + rng.gumbel(size=(N_ROWS, 3))
    frame["x9"] = pd.Categorical.from_codes(utilities.argmax(axis=1), ["a", "b", "c"])
    return frame


def latent_classes() -> pd.DataFrame:
    """Return six classes, each with its own means and its own odds of every category."""
    rng = np.random.default_rng(41)
    classes = rng.choice(6, N_ROWS, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    numbers = 1.5 * rng.standard_normal((6, 5))[classes] + rng.standard_normal((N_ROWS, 5))
    frame = _frame(numbers)
    frame["x4"] = np.exp(frame["x4"] / 2)
    for i, n_levels in enumerate((3, 4, 6, 2, 5)):
        odds = rng.dirichlet(np.full(n_levels, 0.4), 6)[classes].cumsum(axis=1)
        levels = (rng.random((N_ROWS, 1)) > odds[:, :-1]).sum(axis=1)
        frame[f"c{i}"] = pd.Categorical.from_codes(levels, list("abcdef"[:n_levels]))
    frame["c3"] = frame["c3"] == "a"
    return frame


#: Kind, set and maker of every generated table.
GENERATORS: dict[str, tuple[str, str, Callable[[], pd.DataFrame]]] = {
    "powers and waves": ("numeric", "chose", powers_and_waves),
    "lognormal factors": ("numeric", "chose", lognormal_factors),
    "smooth surfaces": ("numeric", "fresh", smooth_surfaces),
    "heavy tails": ("numeric", "fresh", heavy_tails),
    "clusters": ("numeric", "fresh", clusters),
    "thresholds": ("mixed", "chose", thresholds),
    "latent classes": ("mixed", "fresh", latent_classes),
}
