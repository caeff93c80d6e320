"""Several mixtures of one table, from different starts, that share what is common to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyspan.arrays import keep_freed_memory, limit_threads, pass_work
from polyspan.models.mixture import SubspaceMixture
from polyspan.models.mixture_start import annealed_start, as_samples, noise_rule, pool
from polyspan.solvers.masked_preparation import observed_mean
from polyspan.solvers.mixture import Gaussians, Pull
from polyspan.solvers.mixture_masked import MaskedSamples
from polyspan.solvers.mixture_noise import NoiseRule
from polyspan.solvers.mixture_sparse import learn_sparse

# The weight of the pooled covariance, in samples.
CLOSENESS = 15.0
# Steps of the annealed start, of EM, and of EM that takes in the hidden entries in the end. The
# average of several hasty fits fills better than one that is learned to the end.
STEPS, ITERATIONS, LAST_ITERATIONS = 2, 4, 1
# Tables of few entries can afford a start that does not miss the subspaces.
SMALL_TABLE, SMALL_TABLE_STEPS = 10_000, 20


@dataclass(frozen=True)
class Table:
    """A table with holes, in the form that EM takes."""

    mean: np.ndarray
    values: np.ndarray
    """About the mean, 0 where missing."""
    observed: np.ndarray
    rule: NoiseRule
    samples: MaskedSamples

    @classmethod
    def of(cls, X: np.ndarray) -> Table:
        """Take standardised features, NaN where missing."""
        keep_freed_memory()
        missing = np.isnan(X)
        mean = observed_mean(X, missing)
        values = np.where(missing, X.dtype.type(0), X - mean)
        rule = noise_rule("shared", values, ~missing)
        samples = as_samples(values, ~missing, affine=True, rule=rule)
        assert isinstance(samples, MaskedSamples)
        return cls(mean, values, ~missing, rule, samples)

    def model(self, gaussians: Gaussians) -> SubspaceMixture:
        """Return the mixture that fills by these components."""
        number, _, dim = gaussians.bases.shape
        model = SubspaceMixture(number, dim, closeness=CLOSENESS, noise="shared")
        for name, value in model._fitted(gaussians, self.mean).items():
            setattr(model, name, value)
        model.n_features_in_ = len(self.mean)
        return model


@dataclass(frozen=True)
class Learned:
    """A mixture of a table."""

    table: Table
    pooled: Gaussians
    """What its covariances are drawn to."""
    gaussians: Gaussians
    likely: np.ndarray | None = None
    """Components that every sample looks at, (n_samples, n_subspaces); None: all."""

    @property
    def model(self) -> SubspaceMixture:
        """The mixture as an estimator."""
        return self.table.model(self.gaussians)

    def on(self, table: Table) -> Learned:
        """Go on with a table of the same samples and more entries."""
        # Components are about the mean of their table.
        moved = replace(self.gaussians, means=self.gaussians.means + (self.table.mean - table.mean))
        return _learn(replace(self, table=table, gaussians=moved), LAST_ITERATIONS)


def learn_pooled(table: Table, dim: int, rng: np.random.RandomState) -> Learned:
    """Learn the one subspace that all samples share."""
    n, m = table.values.shape
    with limit_threads(pass_work(n, m, dim + 1)):
        one = pool(table.samples, dim, table.rule, rng)[1]
    return Learned(table, one, one)


def learn_several(pooled: Learned, number: int, rng: np.random.RandomState) -> Learned:
    """Learn a mixture of several subspaces, from a start that is drawn."""
    table, one = pooled.table, pooled.gaussians
    n, m = table.values.shape
    with limit_threads(pass_work(n, m, number * (one.bases.shape[2] + 1))):
        start = annealed_start(
            (table.values, table.observed),
            one,
            number,
            Pull(one, CLOSENESS),
            rng,
            affine=True,
            rule=table.rule,
            steps=STEPS if n * m > SMALL_TABLE else SMALL_TABLE_STEPS,
            hottest=0.1,
        )
    return _learn(Learned(table, one, start), ITERATIONS)


def _learn(learned: Learned, n_iter: int) -> Learned:
    number, m, dim = learned.gaussians.bases.shape
    with limit_threads(pass_work(len(learned.table.values), m, number * (dim + 1))):
        gaussians, likely = learn_sparse(
            learned.table.samples,
            learned.gaussians,
            Pull(learned.pooled, CLOSENESS if number > 1 else 0.0),
            n_iter=n_iter,
            likely=learned.likely,
        )
    return replace(learned, gaussians=gaussians, likely=likely)
