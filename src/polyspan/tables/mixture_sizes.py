"""Choose the number and the dimension of subspaces that predict hidden entries of a table best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from polyspan.base.arrays import limit_threads, pass_work
from polyspan.mixture._solve.em import run_em, run_sparse_em
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture._solve.masked import MaskedSamples
from polyspan.mixture._solve.noise import Shrinkage
from polyspan.mixture.fitted import fitted_attributes
from polyspan.mixture.mixture import SubspaceMixture
from polyspan.mixture.problem import Problem
from polyspan.mixture.starts import annealed_start, fit_pooled
from polyspan.tables.mixture_fill import Fill, Scaling, predict

# Fraction of the observed entries that is hidden to compare sizes.
HIDDEN_FRACTION = 0.1
# Samples that every subspace must have on average; tables with fewer samples get one subspace.
SAMPLES_PER_SUBSPACE = 80
MOST_SUBSPACES = 20
# Bound on n_samples * dim**3, the cost of one step, for a single subspace of full dimension.
MOST_WORK = 2e7
# Tables with fewer entries are computed in float64, larger ones in float32.
FLOAT64_ENTRIES = 50_000
# Several subspaces are fitted only once where the error of the first fit is this many times the
# best error so far: an average over fits gains less than that.
GIVE_UP_RATIO = 1.15
# Weight of the pooled covariance, in samples, in a mixture of several subspaces.
CLOSENESS = 15.0
# Steps of the annealed start, of sparse EM, and of the last sparse EM on all entries, none hidden.
# The average of several short fits fills better than one fit that converged.
ANNEAL_STEPS, SPARSE_STEPS, LAST_STEPS = 2, 4, 1
# Tables with up to this many entries get a longer, more reliable annealed start.
SMALL_TABLE, SMALL_TABLE_STEPS = 10_000, 20
# Most iterations of EM for a single subspace, and its tolerance.
SINGLE_ITERATIONS, SINGLE_TOL = 32, 1e-5
# The slope of a feature is shrunk to the common slope of all features, and this one to 0. The
# weights are in hidden entries of the feature, and in hidden entries of the table.
SLOPE_SHRINKAGE, COMMON_SHRINKAGE = 60.0, 5.0


def sizes_to_try(
    n_samples: int, n_features: int, n_subspaces: int | str, subspace_dim: int | str
) -> list[tuple[int, int]]:
    """Return the pairs (number, dimension) of subspaces that are compared."""
    many = min(MOST_SUBSPACES, n_samples // SAMPLES_PER_SUBSPACE)
    numbers = sorted({1, many} - {0}) if n_subspaces == "auto" else [int(n_subspaces)]
    most = n_features - 1
    found = []
    for number in numbers:
        if subspace_dim != "auto":
            dims = {min(int(subspace_dim), most)}
        elif number == 1 and n_samples * most**3 <= MOST_WORK:
            # The whole covariance, which nearly dependent columns need, or a third of it.
            dims = {n_features // 3, most}
            if n_samples <= n_features:
                dims |= {n_samples // 4}  # n samples determine fewer than n directions
        elif number > 1 or many > 1:
            dims = {n_features // 5}  # for one the pooled Gaussian of several, fitted anyway
        else:
            dims = {n_features // 8}
        if subspace_dim == "auto":
            dims = {min(max(1, dim), 30) for dim in dims}
        found += [(number, dim) for dim in sorted(dims) if 0 <= dim <= most]
    return found


def choose_fill(
    scaling: Scaling,
    X: np.ndarray,
    sizes: list[tuple[int, int]],
    n_fits: int,
    rng: np.random.RandomState,
) -> Fill:
    """Choose among the sizes by hidden entries, and learn the chosen one from all entries."""
    # Small tables may have nearly dependent columns; large ones do not need the last digits.
    table = scaling.standardise(X, np.float64 if X.size < FLOAT64_ENTRIES else np.float32)
    usable = ~np.isnan(table).all(axis=1)
    column_means = Fill(scaling, (), np.zeros(X.shape[1]), (1, 0), 1.0)
    n_usable = int(usable.sum())
    sizes = [(min(number, n_usable), dim) for number, dim in sizes if n_usable >= 4]
    if not sizes:
        return column_means
    table = table[usable]
    # A new seed: the user may have drawn the missing entries with the seed of `rng`.
    draws = np.random.RandomState(rng.randint(2**31 - 1)).uniform(size=table.shape)
    hidden = ~np.isnan(table) & (draws < HIDDEN_FRACTION)
    hidden[:, (~np.isnan(table) & ~hidden).sum(axis=0) < 2] = False
    if not hidden.any():
        return column_means
    trial = Trial(table, hidden, scaling, rng)
    tried: list[Candidate] = []
    for number, dim in sizes:
        if number > 1:
            best = min((fill.error for fill, _ in tried), default=np.inf)
            tried.append(trial.fit_mixtures(number, dim, n_fits, best))
        else:
            is_pool = any(other > 1 and dim == other_dim for other, other_dim in sizes)
            tried.append(trial.fit_single(dim, pooled=is_pool and X.size >= FLOAT64_ENTRIES))
    fill, runs = min(tried, key=lambda candidate: candidate[0].error)
    stretch = fill.calibration(table, hidden)
    # Sparse steps need the masked form, even of a complete table.
    problem = Problem.of(table, "shared", affine=True, masked=runs[0].sparse)
    models = tuple(run.resume(problem).model() for run in runs)
    return replace(fill, models=models, stretch=stretch)


@dataclass(frozen=True)
class Run:
    """A mixture that was learned from a table."""

    problem: Problem
    pooled: Gaussians
    """The Gaussian to whose covariance those of the mixture are shrunk."""
    gaussians: Gaussians
    sparse: bool = True
    """Whether it is learned by a few sparse steps, or by EM until it converges."""
    likely: np.ndarray | None = None
    """Components that are considered for every sample, (n_samples, n_subspaces); None: all."""

    def model(self) -> SubspaceMixture:
        """Return the mixture as an estimator."""
        number, m, dim = self.gaussians.bases.shape
        closeness = CLOSENESS if self.sparse else 0.0
        model = SubspaceMixture(number, dim, closeness=closeness, noise="shared")
        model.__dict__.update(fitted_attributes(self.gaussians, self.problem.mean))
        model.n_features_in_ = m
        return model

    def resume(self, problem: Problem) -> Run:
        """Continue learning on a problem with the same samples and more observed entries."""
        # The means of the components are relative to the mean of their problem.
        means = self.gaussians.means + (self.problem.mean - problem.mean)
        noise = np.maximum(self.gaussians.noise, means.dtype.type(problem.rule.floor))
        moved = replace(self.gaussians, means=means, noise=noise)
        return replace(self, problem=problem, gaussians=moved).learn(LAST_STEPS)

    def learn(self, sparse_steps: int) -> Run:
        """Continue learning on the same problem."""
        samples, start = self.problem.samples, self.gaussians
        number, m, dim = start.bases.shape
        with limit_threads(pass_work(len(self.problem.values), m, number * (dim + 1))):
            if not self.sparse:
                free, most = Shrinkage(self.pooled, 0.0), SINGLE_ITERATIONS
                found = run_em(samples, start, free, max_iter=most, tol=SINGLE_TOL)
                return replace(self, gaussians=found.gaussians)
            assert isinstance(samples, MaskedSamples)
            shrinkage = Shrinkage(self.pooled, CLOSENESS if number > 1 else 0.0)
            gaussians, likely = run_sparse_em(
                samples, start, shrinkage, n_iter=sparse_steps, likely=self.likely
            )
        return replace(self, gaussians=gaussians, likely=likely)


#: What fills a table with hidden entries, and the mixtures that it was learned by.
Candidate = tuple[Fill, list[Run]]


class Trial:
    """A table with hidden entries, on which sizes are compared.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Standardised, NaN where missing.
    hidden : ndarray of bool, of the same shape
        True for observed entries that the models do not see.
    scaling : Scaling
        By which X was standardised.
    """

    def __init__(
        self, X: np.ndarray, hidden: np.ndarray, scaling: Scaling, rng: np.random.RandomState
    ) -> None:
        self.hidden, self.scaling, self.rng = hidden, scaling, rng
        self.unit = scaling.scale / scaling.spread  # so that errors count in spreads
        self.truth = X * self.unit
        self.visible: np.ndarray = np.where(hidden, X.dtype.type(np.nan), X)
        self._problem = Problem.of(self.visible, "shared", affine=True)
        # One subspace fitted to all samples; it is learned at the first call.
        self._pooled = cache(self._fit_pooled)

    def fit_single(self, dim: int, *, pooled: bool) -> Candidate:
        """Learn one subspace until EM converges; with `pooled`, take that of `_pooled` instead."""
        run = self._pooled(dim) if pooled else replace(self._fit_pooled(dim), sparse=False).learn(0)
        return self._candidate((1, dim), [run], predict(run.model(), self.visible))

    def fit_mixtures(self, number: int, dim: int, n_fits: int, best: float) -> Candidate:
        """Learn several subspaces `n_fits` times, or once if that is far above the best error."""
        pooled = self._pooled(dim)
        single, shrinkage = pooled.gaussians, Shrinkage(pooled.gaussians, CLOSENESS)
        n, m = self.visible.shape
        steps = ANNEAL_STEPS if n * m > SMALL_TABLE else SMALL_TABLE_STEPS
        work = pass_work(n, m, number * (dim + 1))
        runs: list[Run] = []
        total = np.zeros_like(self.visible)
        for k in range(n_fits):
            with limit_threads(work):
                start = annealed_start(
                    self._problem, single, number, shrinkage, self.rng, steps=steps, hottest=0.1
                )
            runs.append(replace(pooled, gaussians=start).learn(SPARSE_STEPS))
            total += predict(runs[-1].model(), self.visible)
            if k == 0 or k == n_fits - 1:
                candidate = self._candidate((number, dim), runs, total / (k + 1))
            if candidate[0].error > GIVE_UP_RATIO * best:
                break
        return candidate

    def _fit_pooled(self, dim: int) -> Run:
        n, m = self.visible.shape
        with limit_threads(pass_work(n, m, dim + 1)):
            _, single = fit_pooled(self._problem, dim, self.rng)
        return Run(self._problem, single, single)

    def _candidate(
        self, sizes: tuple[int, int], runs: list[Run], predicted: np.ndarray
    ) -> Candidate:
        slopes, error = fit_slopes(predicted * self.unit, self.truth, self.hidden)
        models = tuple(run.model() for run in runs)
        return Fill(self.scaling, models, slopes, sizes, error), list(runs)


def fit_slopes(
    predicted: np.ndarray, truth: np.ndarray, hidden: np.ndarray
) -> tuple[np.ndarray, float]:
    """Regress true values on predictions for every feature; return the slopes and the error.

    The regression lines go through the mean of the feature. Slopes of features with few hidden
    entries are shrunk to the common slope, and the common slope to 0.
    """
    guess = np.where(hidden, predicted, 0).astype(np.float64)
    target = np.where(hidden, truth, 0).astype(np.float64)
    products, squares = (guess * target).sum(axis=0), (guess * guess).sum(axis=0)
    unit = squares.sum() / hidden.sum()
    slopes = np.zeros_like(squares)
    if unit > 0:
        common = products.sum() / (squares.sum() + COMMON_SHRINKAGE * unit)
        own = products + SLOPE_SHRINKAGE * unit * common
        slopes = np.clip(own / (squares + SLOPE_SHRINKAGE * unit), 0.0, 1.0)
    error = float(np.sqrt(((slopes * guess - target) ** 2).sum() / hidden.sum()))
    return slopes, error
