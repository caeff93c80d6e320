"""One estimate from those of several filled copies of a table (Rubin's rules)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit
from sklearn.utils import check_scalar


@dataclass(frozen=True)
class PooledEstimate:
    """The result of `pool_estimates`: floats for one parameter, arrays for several."""

    estimate: Any
    """Mean of the estimates of all draws."""
    std_error: Any
    """Square root of the total variance."""
    df: Any
    """Degrees of freedom of Student's t; infinite where all draws agree."""
    within: Any
    """Mean of the variances of the draws; a matrix where covariances were given."""
    between: Any
    """Variance of the estimates over draws: what the missing entries add."""
    total: Any
    """`within` + (1 + 1 / n_draws) `between`."""
    fraction_missing: Any
    """Fraction of the information about a parameter that is missing, Rubin's γ, from 0 to 1."""
    n_draws: int

    @property
    def relative_efficiency(self) -> Any:
        """Variance with infinitely many draws over that with `n_draws`, 1 / (1 + γ / n_draws)."""
        return 1.0 / (1.0 + self.fraction_missing / self.n_draws)

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Return the lower and the upper ends of confidence intervals.

        Parameters
        ----------
        level : float, default=0.95
            How often such an interval contains the true value, between 0 and 1.
        """
        check_scalar(level, "level", Real, min_val=0.0, max_val=1.0, include_boundaries="neither")
        quantile = np.where(self.df > 0, stdtrit(self.df, (1.0 + level) / 2.0), np.inf)
        margin = quantile * self.std_error
        return _plain(self.estimate - margin), _plain(self.estimate + margin)

    def p_value(self, value: Any = 0.0) -> Any:
        """Return the two-sided p-value of the hypothesis that a parameter has the given value.

        Parameters
        ----------
        value : float or array of shape (n_parameters,), default=0.0
        """
        distance = np.abs(self.estimate - np.asarray(value, dtype=np.float64))
        certain = np.asarray(self.std_error) == 0.0
        t = distance / np.where(certain, 1.0, self.std_error)
        tails = np.where(self.df > 0, 2.0 * stdtr(self.df, -t), 1.0)
        return _plain(np.where(certain, np.where(distance == 0.0, 1.0, 0.0), tails))


def pool_estimates(
    estimates: Any, variances: Any, *, complete_df: float | None = None
) -> PooledEstimate:
    r"""Combine the estimates from several filled copies of a table by Rubin's rules.

    Fill the table several times by draws, estimate the parameters from each copy as if it were
    complete, and combine. The standard errors then also contain what the missing entries could
    have been. With estimates q_k and variances u_k of m draws

    .. math:: T = \frac1m \sum_k u_k + \Big(1 + \frac1m\Big) \frac1{m-1} \sum_k (q_k - \bar q)^2

    is the variance of the mean q̄.

    Parameters
    ----------
    estimates : array-like of shape (n_draws,) or (n_draws, n_parameters)
        What was estimated from each copy: a mean, the coefficients of a regression. At least two
        draws.
    variances : array-like of the same shape, or (n_draws, n_parameters, n_parameters)
        The squared standard errors of the estimates, or their covariance matrices.
    complete_df : float, default=None
        Degrees of freedom that the estimates would have if nothing were missing, such as rows
        minus coefficients. With it the degrees of freedom are those of Barnard and Rubin, which are
        never more than these: give it where the table has few rows. None stands for many rows.

    Returns
    -------
    PooledEstimate
        The pooled result, with `estimate`, `std_error`, `df`, `fraction_missing`, `interval()`,
        `p_value()`.

    References
    ----------
    D. B. Rubin, Multiple Imputation for Nonresponse in Surveys, 1987, Sec. 3.3.
    J. Barnard and D. B. Rubin, Small-sample degrees of freedom with multiple imputation,
    Biometrika 86, 1999.

    Examples
    --------
    >>> from polyspan.tables import pool_estimates
    >>> pooled = pool_estimates([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])
    >>> pooled.estimate, round(pooled.std_error, 3), round(pooled.df, 2)
    (2.0, 1.354, 3.78)
    >>> low, high = pooled.interval(0.95)
    >>> round(low, 2), round(high, 2)
    (-1.85, 5.85)
    """
    q, u = _checked(estimates, variances)
    if complete_df is not None:
        check_scalar(complete_df, "complete_df", Real, min_val=0.0, include_boundaries="neither")
    m = len(q)
    deviations = q - q.mean(axis=0)
    squares = deviations.T @ deviations if u.ndim == 3 else (deviations * deviations).sum(axis=0)
    between = squares / (m - 1)
    within = u.mean(axis=0)
    total = within + (1.0 + 1.0 / m) * between
    own, added = _diagonal(total), (1.0 + 1.0 / m) * _diagonal(between)
    share = added / np.where(own > 0.0, own, 1.0)
    df = _degrees_of_freedom(share, m, complete_df)
    # Rubin's (r + 2 / (df + 3)) / (r + 1), where r is added over within: r / (r + 1) is the share.
    missing = share + (1.0 - share) * 2.0 / (df + 3.0)
    arrays = (q.mean(axis=0), np.sqrt(own), df, within, between, total, missing)
    values = [*map(_plain, arrays), m]
    return PooledEstimate(*values)


def _degrees_of_freedom(share: np.ndarray, m: int, complete_df: float | None) -> np.ndarray:
    """Return Rubin's degrees of freedom, or those of Barnard and Rubin, by shares of variance."""
    certain = share == 0.0
    rubin = np.where(certain, np.inf, (m - 1) / np.where(certain, 1.0, share) ** 2)
    if complete_df is None or np.isinf(complete_df):
        return rubin
    observed = (complete_df + 1.0) / (complete_df + 3.0) * complete_df * (1.0 - share)
    # The harmonic sum of both, also where the first is infinite.
    return np.asarray(observed / (1.0 + observed / rubin))


def _checked(estimates: Any, variances: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both as arrays of numbers, or raise an error."""
    q, u = (np.asarray(values, dtype=np.float64) for values in (estimates, variances))
    if q.ndim not in (1, 2):
        raise ValueError(
            f"estimates has shape {q.shape}: give (n_draws,) or (n_draws, n_parameters)"
        )
    if len(q) < 2:
        raise ValueError(
            f"estimates has {len(q)} draws: how much they differ needs at least 2; draw more, "
            "such as 20"
        )
    shapes = [q.shape, (*q.shape, q.shape[1])] if q.ndim == 2 else [q.shape]
    if u.shape not in shapes:
        wanted = " or ".join(str(shape) for shape in shapes)
        raise ValueError(
            f"variances has shape {u.shape}, and estimates {q.shape}: give variances of shape "
            f"{wanted}"
        )
    for name, values in (("estimates", q), ("variances", u)):
        bad = np.count_nonzero(~np.isfinite(values))
        if bad:
            raise ValueError(
                f"{name} contains {bad} entries that are NaN or infinite: leave out draws without "
                "an estimate"
            )
    own = u if u.ndim == q.ndim else np.diagonal(u, axis1=1, axis2=2)
    if (own < 0.0).any():
        raise ValueError(
            f"variances contains {np.count_nonzero(own < 0.0)} negative entries, the least "
            f"{own.min():g}: give squares of standard errors"
        )
    return q, u


def _diagonal(variance: np.ndarray) -> np.ndarray:
    """Return the variances of the parameters, given these or their covariances."""
    return np.diagonal(variance) if np.ndim(variance) == 2 else np.asarray(variance)


def _plain(values: Any) -> Any:
    """Return an array, or a float for one without axes."""
    return np.asarray(values)[()] if np.ndim(values) else float(values)
