"""Choose number and dimension of subspaces, and λ, by hidden entries and the BIC."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from polyspan.base.inputs import numbers_of_samples, require_numpy
from polyspan.base.private_sklearn import Interval, StrOptions, check_parameters
from polyspan.base.progress import progress_bar
from polyspan.data.working import auto_lam
from polyspan.linear import MiCUSaL, RobustMiCUSaL
from polyspan.model_selection.held_out import check_linear, hidden_entry_errors, masked_block
from polyspan.model_selection.size_choice import SizeChoice, bounds_reached

#: Factors of `lam` that are tried.
LAM_FACTORS = tuple(2.0**k for k in range(-2, 3))


def choose_size(
    X: Any,
    max_subspaces: int,
    max_dim: int,
    *,
    lam: float | str = "auto",
    choose_lam: bool = True,
    n_splits: int = 3,
    max_rounds: int = 3,
    n_seeds: int = 3,
    random_state: Any = None,
    progress: bool = False,
) -> SizeChoice:
    r"""Choose number and dimension of subspaces, and λ, from data without labels.

    Start with L = `max_subspaces` and choose the dimension s by the BIC at that L,

    .. math:: N(m-s) \log\sigma^2 + \sum_l N_l \sum_k \log e_{lk} + L s (m - s + 1) \log N

    (σ² is the residual variance, e_lk are the variances inside the subspaces). Then choose the
    number of subspaces by the prediction of hidden entries of held-out samples
    (`masked_entry_score`). Repeat both until one of them does not change. At the end choose λ on a
    grid of factors of 2. Each criterion has one task, because the prediction error hardly rises
    with one dimension too many, and the BIC merges subspaces that are close.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples, with NaN for missing entries.
    max_subspaces : int
        Largest number of subspaces to try.
    max_dim : int
        Largest dimension to try, below n_features.
    lam : float or "auto", default="auto"
        Weight λ > 0 while the sizes are chosen, and the middle of the grid for λ. "auto" as for
        `MiCUSaL`.
    choose_lam : bool, default=True
        Whether to choose λ too.
    n_splits : int, default=3
        Number of folds, each held out once.
    max_rounds : int, default=3
        Largest number of alternations between dimension and number.
    n_seeds : int, default=3
        Number of seeds whose answers are compared. All but the first choose the number once more,
        from the dimension that was found, and then the dimension, which takes about half of the
        time of the first. With 1 nothing is compared.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, of the starts and of the hidden entries.
    progress : bool, default=False
        Show a progress bar (needs rich: `pip install rich`). It may end early.

    Returns
    -------
    SizeChoice
        The sizes, how certain they are, and all that was tried. It prints as a short table.

    Warns
    -----
    UserWarning
        Where an answer is the last one of its grid, or where at most half of the seeds give its
        number of subspaces. Warnings of the models that are tried are not shown.

    Examples
    --------
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.model_selection import choose_size
    >>> X = make_union_of_subspaces((60, 60), n_features=20, subspace_dim=3, spread=0.5,
    ...                             random_state=0).X
    >>> choice = choose_size(X, 3, 4, choose_lam=False, random_state=0)
    >>> choice.n_subspaces, choice.subspace_dim
    (2, 3)
    >>> choice.stability
    'all 3 seeds give the same sizes'
    """
    check_parameters(
        "choose_size",
        max_subspaces=(max_subspaces, [Interval(Integral, 1, None, closed="left")]),
        max_dim=(max_dim, [Interval(Integral, 1, None, closed="left")]),
        lam=(lam, [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")]),
        choose_lam=(choose_lam, ["boolean"]),
        n_splits=(n_splits, [Interval(Integral, 2, None, closed="left")]),
        max_rounds=(max_rounds, [Interval(Integral, 1, None, closed="left")]),
        n_seeds=(n_seeds, [Interval(Integral, 1, None, closed="left")]),
        random_state=(random_state, ["random_state"]),
        progress=(progress, ["boolean"]),
    )
    require_numpy("choose_size", X=X)
    X = numbers_of_samples(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    if max_dim >= X.shape[1]:
        raise ValueError(
            f"max_dim={max_dim} must lie between 1 and n_features - 1 = {X.shape[1] - 1}"
        )
    lam = _own_lam(X) if isinstance(lam, str) else float(lam)
    rng = check_random_state(random_state)
    seeds = [int(rng.randint(2**31 - 1)) for _ in range(n_seeds)]
    grid = [lam * factor for factor in LAM_FACTORS] if choose_lam else [lam]
    most = (max_rounds + n_seeds - 1) * (max_subspaces + max_dim) + len(grid)
    with progress_bar(progress, most, "choose_size") as advance, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model of wrong size; the choice warns in its place
        search = _Search(X, n_splits, seeds[0], advance)
        choice = search.run(max_subspaces, max_dim, grid, max_rounds)
        for seed in seeds[1:]:
            other = _Search(X, n_splits, seed, advance)
            number, _ = other.choose_number(max_subspaces, choice.subspace_dim, lam)
            dim, _ = other.choose_dimension(number, max_dim, lam)
            choice.seed_answers.append((number, dim))
    choice.warn()
    return choice


def _own_lam(X: np.ndarray) -> float:
    """Return the λ that a model with `lam="auto"` takes for these samples."""
    holes = np.isnan(X)
    centred = np.where(holes, 0.0, X if holes.any() else X - X.mean(axis=0))
    per_row = (centred * centred).sum(axis=1) * X.shape[1] / np.maximum((~holes).sum(axis=1), 1)
    return auto_lam(float(per_row.mean()))


def gaussian_bic(model: Any, X: np.ndarray) -> float:
    """Return the BIC of a fitted union, with its clusters modelled as low-rank Gaussians.

    Each cluster has its own variances e_lk inside its subspace; outside, the residual variance is
    the same for all.

    Parameters
    ----------
    model : fitted linear model
        A model with `bases_`, `mean_` and `labels_`, of linear subspaces.
    X : ndarray of shape (n_samples, n_features)
        The samples of its fit, with NaN for missing entries.

    Returns
    -------
    float
        Bayesian information criterion; the lower the better.
    """
    check_linear(model, "gaussian_bic")
    n_subspaces, m, s = model.bases_.shape
    labels = model.labels_
    learned = labels >= 0
    X, labels = X[learned], labels[learned]
    n = len(X)
    block, scale = masked_block(X, model.mean_)
    coefficients = block.assigned_coefficients(model.bases_, labels) / scale
    noise = max(-model.score(X) / (m - s), np.finfo(float).tiny)
    fit = n * (m - s) * math.log(noise)
    for p in range(n_subspaces):
        own = coefficients[labels == p]
        if len(own):
            values = np.linalg.eigvalsh(own.T @ own / len(own))
            fit += len(own) * float(np.log(np.maximum(values, noise)).sum())
    return float(fit + n_subspaces * s * (m - s + 1) * math.log(n))


class _Search:
    """Fit models of many sizes and record their scores in a table."""

    def __init__(
        self, X: np.ndarray, n_splits: int, seed: int, advance: Callable[..., None]
    ) -> None:
        self.X, self.seed, self._advance = X, seed, advance
        self.table: list[dict[str, float | str]] = []
        self._most_subspaces = self._most_dim = 0  # the largest that the last rounds have tried
        self._splits = list(KFold(n_splits, shuffle=True, random_state=seed).split(X))
        self._kind: Any = RobustMiCUSaL if np.isnan(X).any() else MiCUSaL

    def run(
        self, max_subspaces: int, max_dim: int, lam_grid: list[float], max_rounds: int
    ) -> SizeChoice:
        """Alternate between dimension and number, and choose λ at the end."""
        lam = lam_grid[len(lam_grid) // 2]
        n_subspaces, dim = max_subspaces, 0
        for _ in range(max_rounds):
            before = (n_subspaces, dim)
            dim, margin = self.choose_dimension(n_subspaces, max_dim, lam)
            if dim != before[1]:
                n_subspaces, number_range = self.choose_number(max_subspaces, dim, lam)
            if n_subspaces == before[0] or dim == before[1]:
                break
        if len(lam_grid) > 1:
            lam = self.choose_lam(n_subspaces, dim, lam_grid)
        sizes = (n_subspaces, dim, lam)
        largest = (self._most_subspaces, self._most_dim)
        at_bound = bounds_reached(sizes, largest, (max_subspaces, max_dim), lam_grid)
        return SizeChoice(*sizes, number_range, margin, self.table, [(n_subspaces, dim)], at_bound)

    def _fit(self, X: np.ndarray, n_subspaces: int, dim: int, lam: float) -> Any:
        # The rules were chosen with annealed starts, which cost half of all kinds of starts.
        model = self._kind(n_subspaces, dim, lam=lam, init="anneal", random_state=self.seed)
        return model.fit(X)

    def _record(self, step: str, sizes: tuple[int, int, float], value: float, error: float) -> None:
        names = ("n_subspaces", "subspace_dim", "lam")
        row: dict[str, float | str] = {"step": step, **dict(zip(names, sizes, strict=True))}
        self.table.append({**row, "value": value, "standard_error": error})
        self._advance(f"choose_size: {step}")

    def choose_dimension(self, n_subspaces: int, max_dim: int, lam: float) -> tuple[int, float]:
        """Return the dimension with the lowest BIC and its margin over the second-best."""
        values = {}
        self._most_dim = min(max_dim, len(self.X) // n_subspaces)
        for s in range(1, self._most_dim + 1):
            values[s] = gaussian_bic(self._fit(self.X, n_subspaces, s, lam), self.X)
            self._record("dimension", (n_subspaces, s, lam), values[s], math.nan)
        best = min(values, key=values.__getitem__)
        others = [value for s, value in values.items() if s != best]
        margin = (min(others) - values[best]) / abs(values[best]) if others else math.inf
        return best, margin

    def choose_number(
        self, max_subspaces: int, dim: int, lam: float
    ) -> tuple[int, tuple[int, int]]:
        """Return the number with the lowest held-out error, and the range of equally good ones."""
        smallest = min(len(train) for train, _ in self._splits)
        sizes = [k for k in range(1, max_subspaces + 1) if k * dim <= smallest]
        self._most_subspaces = sizes[-1]
        errors = {k: self._held_out("number", k, dim, lam) for k in sizes}
        best = min(sizes, key=lambda k: errors[k].mean())
        close = [k for k in sizes if _excess(errors[k], errors[best]) <= 1.0]
        return best, (min(close), max(close))

    def choose_lam(self, n_subspaces: int, dim: int, grid: list[float]) -> float:
        """Return the λ of a grid with the lowest held-out error."""
        errors = {x: self._held_out("weight", n_subspaces, dim, x).mean() for x in grid}
        return min(grid, key=errors.__getitem__)

    def _held_out(self, step: str, n_subspaces: int, dim: int, lam: float) -> np.ndarray:
        """Return the mean squared error of hidden entries of every held-out sample."""
        out = np.empty(len(self.X))
        for train, test in self._splits:
            model = self._fit(self.X[train], n_subspaces, dim, lam)
            rng = np.random.RandomState(self.seed)
            errors = hidden_entry_errors(model.bases_, model.mean_, self.X[test], 0.2, rng)
            out[test] = errors.squares / np.maximum(errors.counts, 1)
        error = float(out.std(ddof=1) / math.sqrt(len(out)))
        self._record(step, (n_subspaces, dim, lam), float(out.mean()), error)
        return out


def _excess(errors: np.ndarray, best: np.ndarray) -> float:
    """Return how many standard errors a model is worse than the best, compared per sample."""
    difference = errors - best
    spread = float(difference.std(ddof=1)) / math.sqrt(len(difference))
    return float(difference.mean()) / spread if spread > 0 else 0.0
