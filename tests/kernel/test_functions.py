import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.kernels import Kernel

X = np.random.RandomState(0).standard_normal((6, 4))
Y = np.random.RandomState(1).standard_normal((3, 4))


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (Kernel("rbf", gamma=0.3), lambda x, y: np.exp(-0.3 * np.sum((x - y) ** 2))),
        (Kernel("rbf"), lambda x, y: np.exp(-np.sum((x - y) ** 2) / 4)),
        (Kernel("poly", gamma=1, coef0=2, degree=3), lambda x, y: (x @ y + 2) ** 3),
        (Kernel("poly", degree=2, coef0=1), lambda x, y: (x @ y / 4 + 1) ** 2),
        (Kernel("linear"), lambda x, y: x @ y),
        (Kernel(lambda x, y, a=1: a * (x @ y), others={"a": 2}), lambda x, y: 2 * (x @ y)),
    ],
)
def test_values_and_diagonal(kernel, value):
    expected = np.array([[value(x, y) for y in Y] for x in X])
    assert_allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-14)
    own = np.array([[value(x, y) for y in X] for x in X])
    assert_allclose(kernel(X), own, rtol=1e-12, atol=1e-14)
    assert np.array_equal(kernel(X), kernel(X).T)
    assert_allclose(kernel.diagonal(X), np.diag(own), rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Kernel("poly", degree=2), "degree=2 has no pre-image"),
        (Kernel("poly", degree=2.5), "degree=2.5"),
        (Kernel(lambda x, y: x @ y), "'rbf', 'linear' and 'poly' with an odd degree"),
    ],
)
def test_kernels_without_preimage(kernel, words):
    with pytest.raises(ValueError, match=words):
        kernel.check_preimage()


@pytest.mark.parametrize("kernel", [Kernel("rbf"), Kernel("linear"), Kernel("poly", degree=3)])
def test_kernels_with_preimage(kernel):
    kernel.check_preimage()
