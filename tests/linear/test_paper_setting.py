"""The paper's synthetic experiment (Sec. V-A, Tables I and II), and our better optimum.

Figures are means over draws of the subspaces, which spread by about .01 on d_avg.
"""

import numpy as np
import pytest

from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import average_subspace_distance, clustering_error

DRAWS = [make_union_of_subspaces(random_state=seed) for seed in range(10)]


def measure(draws=DRAWS, **options):
    distances, errors = [], []
    for seed, data in enumerate(draws):
        model = MiCUSaL(5, 13, random_state=seed, **options).fit(data.X)
        distances.append(average_subspace_distance(model.bases_, data.bases))
        errors.append(clustering_error(data.labels, model.labels_))
    return np.mean(distances), np.mean(errors)


def test_default_is_near_the_bound_of_known_labels():
    distance, error = measure()
    assert distance <= 0.096
    assert error <= 0.03


def test_default_beats_the_printed_algorithm_by_its_own_objective():
    data = DRAWS[0]
    printed = MiCUSaL(5, 13, init="random", solver="exact", n_init=8, random_state=0).fit(data.X)
    ours = MiCUSaL(5, 13, random_state=0).fit(data.X)
    assert ours.objective_ < 0.97 * printed.objective_


@pytest.mark.parametrize("lam", [2.0, 4.0])
def test_far_subspaces_are_found_without_error(lam):
    draws = [make_union_of_subspaces(spread=0.2, random_state=seed) for seed in range(5)]
    _, error = measure(draws, lam=lam)
    assert error == 0.0
