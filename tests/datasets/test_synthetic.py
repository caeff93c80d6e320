import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.extmath import svd_flip

from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import is_orthonormal, subspace_distance


def test_shapes_labels_and_sizes():
    data = make_union_of_subspaces(
        (5, 7, 3), n_features=12, subspace_dim=2, test_sizes=(1, 2, 3), random_state=0
    )
    assert data.X.shape == data.X_clean.shape == (15, 12)
    assert data.X_test.shape == data.X_test_clean.shape == (6, 12)
    assert data.bases.shape == (3, 12, 2)
    assert is_orthonormal(data.bases, 1e-13)
    assert np.bincount(data.labels).tolist() == [5, 7, 3]
    assert np.bincount(data.labels_test).tolist() == [1, 2, 3]


def test_clean_samples_have_norm_one_and_lie_in_their_subspace():
    data = make_union_of_subspaces(random_state=0)
    assert data.X.shape == (650, 180)
    for samples, labels in (
        (data.X_clean, data.labels),
        (data.X_test_clean, data.labels_test),
    ):
        assert_allclose(np.linalg.norm(samples, axis=1), 1.0)
        for p, basis in enumerate(data.bases):
            own = samples[labels == p]
            assert_allclose(own @ basis @ basis.T, own, atol=1e-12)


def test_noise_has_the_given_power():
    data = make_union_of_subspaces(noise=0.1, test_noise=0.5, random_state=1)
    power = np.mean(np.sum((data.X - data.X_clean) ** 2, axis=1))
    assert_allclose(power, 0.1, rtol=0.02)
    power = np.mean(np.sum((data.X_test - data.X_test_clean) ** 2, axis=1))
    assert_allclose(power, 0.5, rtol=0.02)
    clean = make_union_of_subspaces(noise=0.0, random_state=1)
    assert np.array_equal(clean.X, clean.X_clean)


def _matlab_orth(a):
    u, _, vt = np.linalg.svd(a, full_matrices=False)
    return svd_flip(u, vt)[0]


def test_chain_is_matlabs_orth_of_the_last_basis_plus_uniform_steps():
    data = make_union_of_subspaces((4, 4), n_features=9, subspace_dim=3, spread=0.1, random_state=3)
    rng = np.random.RandomState(3)
    first = _matlab_orth(rng.standard_normal((9, 3)))
    second = _matlab_orth(first + 0.1 * rng.uniform(size=(9, 3)))
    assert_allclose(data.bases, np.stack([first, second]), atol=1e-12)


def test_spread_sets_the_distance():
    near, far = (make_union_of_subspaces(spread=t, random_state=0).bases for t in (0.04, 0.2))
    same = make_union_of_subspaces(spread=0.0, random_state=0).bases
    assert subspace_distance(same[0], same[4]) < 1e-12
    # Neighbours are about .2 apart in the paper's setting.
    assert 0.1 < subspace_distance(near[0], near[1], normalize=True) < 0.3
    assert subspace_distance(far[0], far[1]) > 2 * subspace_distance(near[0], near[1])


def test_seeds():
    assert np.array_equal(
        make_union_of_subspaces(random_state=4).X, make_union_of_subspaces(random_state=4).X
    )
    assert not np.array_equal(
        make_union_of_subspaces(random_state=4).X, make_union_of_subspaces(random_state=5).X
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": ()}, "sizes=\\(\\) must hold"),
        ({"sizes": (3, 0)}, "each ≥ 1"),
        ({"sizes": (3, 2.5)}, "each ≥ 1"),
        ({"test_sizes": (3,)}, "need the same length"),
        ({"subspace_dim": 180}, "below n_features=180"),
        ({"subspace_dim": 0}, "'subspace_dim' parameter of make_union"),
        ({"noise": -1.0}, "'noise' parameter of make_union"),
        ({"spread": float("nan")}, "'spread' parameter of make_union"),
        ({"test_noise": float("inf")}, "'test_noise' parameter of make_union"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_union_of_subspaces(**arguments)


def test_different_dimensions():
    dims = (2, 5, 3)
    data = make_union_of_subspaces((20, 30, 25), n_features=14, subspace_dim=dims, spread=0.0,
                                   noise=0.0, random_state=0)  # fmt: skip
    assert data.bases.shape == (3, 14, 5)
    for p, s in enumerate(dims):
        basis, samples = data.bases[p], data.X[data.labels == p]
        assert is_orthonormal(basis[:, :s], 1e-13)
        assert not basis[:, s:].any()
        assert np.linalg.matrix_rank(samples) == s
        assert_allclose(samples @ basis @ basis.T, samples, atol=1e-13)
    # Without spread of two in a row one contains the other.
    for small, large in ((0, 1), (2, 1)):
        inside = data.bases[large] @ (data.bases[large].T @ data.bases[small])
        assert_allclose(inside, data.bases[small], atol=1e-13)
    with pytest.raises(ValueError, match=r"subspace_dim=\(2, 5\) and sizes=\(3, 3, 3\)"):
        make_union_of_subspaces((3, 3, 3), subspace_dim=(2, 5))
    with pytest.raises(ValueError, match=r"at least one dimension, each ≥ 1"):
        make_union_of_subspaces((3, 3), subspace_dim=(2, 0))


def test_equal_dimensions_keep_their_bits():
    one = make_union_of_subspaces((5, 6), n_features=9, subspace_dim=3, random_state=1)
    each = make_union_of_subspaces((5, 6), n_features=9, subspace_dim=(3, 3), random_state=1)
    for name, value in vars(one).items():
        assert np.array_equal(getattr(each, name), value), name
