"""Kernel runs in every namespace, and on a device that is not the CPU, equal NumPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import KernelCenterer

from polyspan.base.arrays import to_numpy
from polyspan.kernel._solve.alternation import KernelRules, alternate, refill_empty
from polyspan.kernel._solve.leave_one_out import leave_one_out_labels
from polyspan.kernel._solve.subspaces import gkiop
from polyspan.kernel.functions import Kernel
from polyspan.kernel.nystrom import NystromMap
from polyspan.kernel.preimages import Expansion, combination_weights, polish, preimages

RNG = np.random.RandomState(0)
X = RNG.standard_normal((50, 12)) * np.linspace(2, 0.5, 12)
LABELS = RNG.randint(3, size=50)


@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_kernel_runs(place, name):
    kernel = Kernel(name, gamma=0.1)
    G = KernelCenterer().fit_transform(kernel(X))
    rules = KernelRules(3, 3, 5.0, max_iter=4, floor=1e-12)
    empty = np.minimum(LABELS, 1)

    def run(place):
        moved = place.asarray(G)
        assert_allclose(to_numpy(kernel(place.asarray(X))), kernel(X), atol=1e-12)
        assert_allclose(
            to_numpy(kernel(place.asarray(X), place.asarray(X[:9]))), kernel(X, X[:9]), atol=1e-12
        )
        assert_allclose(to_numpy(kernel.diagonal(place.asarray(X))), kernel.diagonal(X))
        starts = (gkiop(moved, 3, 3, np.array([0, 1, 2])), LABELS, empty)
        runs = [alternate(moved, start, rules) for start in starts]
        runs[2] = refill_empty(moved, runs[2], rules)
        loo = leave_one_out_labels(place.asarray(X), LABELS, 3, 2)
        return runs, to_numpy(loo.labels), loo.criterion

    expected, labels, criterion = run(np)
    found, other, value = run(place)
    assert np.array_equal(other, labels)
    assert_allclose(value, criterion, rtol=1e-8)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a.history, b.history, rtol=1e-8)
        assert np.array_equal(to_numpy(a.labels), b.labels)


def test_preimages_and_low_rank(place):
    weights = RNG.uniform(size=(7, 50)) / 25
    for kernel in (Kernel("rbf", gamma=0.1), Kernel("poly", gamma=0.1, degree=3)):

        def run(place, kernel=kernel):
            Y, chi = place.asarray(X), place.asarray(weights)
            G = kernel(Y)
            point = Expansion.of(chi, G)
            e = combination_weights(kernel, point, place.asarray(np.diag(to_numpy(G)).copy()))
            z = preimages(kernel, e, Y, place.asarray(X > -1))
            map_ = NystromMap.of(kernel, place.asarray(X[:20]))
            Z = map_(Y)
            residuals = to_numpy(map_.residuals(Y, Z))
            return [to_numpy(a) for a in (z, polish(kernel, z, chi, Y), Z @ Z.mT, residuals)]

        expected = run(np)
        for a, b in zip(run(place), expected, strict=True):
            assert_allclose(a, b, rtol=1e-5, atol=1e-9)


def test_a_kernel_that_is_a_function_needs_numpy(accelerator):
    with pytest.raises(ValueError, match="needs NumPy arrays"):
        Kernel(lambda x, y: x @ y)(accelerator.asarray(X))
