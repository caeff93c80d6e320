"""Weights, trimming and unequal dimensions at once, and what is learned of the noise with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries

DIMS = (1, 2, 4)
DATA = make_union_of_subspaces(
    (40, 40, 40), n_features=15, subspace_dim=DIMS, spread=0.6, noise=0.05, random_state=0
)
WEIGHTS = np.random.RandomState(0).randint(0, 4, len(DATA.X))


def repeated(X):
    return np.repeat(X, WEIGHTS, axis=0)


@pytest.mark.parametrize("lam", [4.0, np.inf])
@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("trim", [0.0, 0.1])
def test_weights_are_repeats_for_subspaces_of_any_dimension(lam, solver, trim):
    model = MiCUSaL(3, DIMS, lam=lam, solver=solver, trim=trim, init=DATA.bases)
    weighted = model.fit(DATA.X, sample_weight=WEIGHTS)
    found = weighted.objective_, weighted.labels_, weighted.noise_variance_
    twice = model.fit(repeated(DATA.X))
    assert_allclose(found[0], twice.objective_, rtol=1e-9)
    assert_array_equal(np.repeat(found[1], WEIGHTS), twice.labels_)
    assert_allclose(found[2], twice.noise_variance_, rtol=1e-7)


def test_weights_are_repeats_with_missing_entries_and_any_dimension():
    X = mask_entries(DATA.X, 0.1, random_state=0)
    model = RobustMiCUSaL(3, DIMS, init=DATA.bases)
    weighted = model.fit(X, sample_weight=WEIGHTS)
    found = weighted.objective_, weighted.labels_, weighted.noise_variance_
    twice = model.fit(repeated(X))
    assert_allclose(found[0], twice.objective_, rtol=1e-9)
    assert_array_equal(np.repeat(found[1], WEIGHTS), twice.labels_)
    assert_allclose(found[2], twice.noise_variance_, rtol=1e-7)


def test_annealed_starts_of_unequal_dimensions_leave_out_outliers():
    rng = np.random.RandomState(1)
    outliers = rng.standard_normal((12, 15))
    X = np.concatenate([DATA.X, 3 * outliers / np.linalg.norm(outliers, axis=1, keepdims=True)])
    model = MiCUSaL(3, DIMS, trim=0.1, random_state=0).fit(X)
    assert_array_equal(model.trimmed_[-12:], True)
    assert np.mean(model.labels_[:120] == DATA.labels) > 0.95
    clean = MiCUSaL(3, DIMS, random_state=0).fit(DATA.X)
    assert_allclose(model.noise_variance_, clean.noise_variance_, rtol=0.1)


def test_noise_of_a_stream_counts_weights():
    model = MiCUSaL(3, 4, random_state=0).partial_fit(repeated(DATA.X))
    first = MiCUSaL(3, 4, random_state=0).partial_fit(repeated(DATA.X))
    weighted = model.partial_fit(DATA.X, sample_weight=WEIGHTS)
    twice = first.partial_fit(repeated(DATA.X))
    assert_allclose(weighted.noise_variance_, twice.noise_variance_, rtol=1e-6)
