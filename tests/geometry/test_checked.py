"""What the public functions say of arrays that they cannot work on."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn import config_context

from polyspan import geometry

RNG = np.random.RandomState(0)
BASES = geometry.draw_bases((3, 6, 2), RNG)
SQUARE = np.eye(4) + 0.1
CALLS = {
    "cholesky_or_none": (SQUARE,),
    "closeness": (BASES[None],),
    "closeness_of_gram": ((BASES[0].T @ BASES[0])[None], 1),
    "distances_between": (BASES,),
    "is_orthonormal": (BASES,),
    "leading_eigen": (SQUARE, 0.1),
    "near_copies": (BASES[0], 2),
    "orthonormal_columns": (BASES,),
    "orthonormal_rows": (BASES.mT,),
    "orthonormal_step": (BASES,),
    "orthonormalise": (BASES,),
    "range_basis": (BASES[0],),
    "side_by_side": (BASES[None],),
    "subspace_dims": (BASES,),
    "zero_padded": (BASES, (2, 1, 2)),
    "pairwise_subspace_distances": (BASES,),
    "principal_angles": (BASES[0], BASES[1]),
    "subspace_distance": (BASES[0], BASES[1]),
}


def call(name, change):
    first, *others = CALLS[name]
    return getattr(geometry, name)(change(first), *others)


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


def holed(a):
    a = np.array(a)
    a[..., 0, 0] = np.nan
    return a


@pytest.mark.parametrize("name", CALLS)
def test_nan_axes_text_and_complex_numbers_are_named(name, capfd):
    with pytest.raises(ValueError, match=r"^\d+ of \d+ entries of \w+ are NaN or infinite"):
        call(name, holed)
    with pytest.raises(ValueError, match=r"shape \(.*\).*, found .*\(6,\)"):
        call(name, lambda a: np.ones(6))
    with pytest.raises(ValueError, match="cannot be read as one array of numbers"):
        call(name, lambda a: [[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match="holds complex numbers, of the type complex128"):
        call(name, lambda a: a + 0j)
    assert capfd.readouterr().out == "", "a message of LAPACK"


@pytest.mark.parametrize("name", CALLS)
def test_lists_are_taken(name):
    found, expected = (call(name, change) for change in (np.ndarray.tolist, np.copy))
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_other_packages_stay_what_they_are(name):
    torch = pytest.importorskip("torch")
    first, *others = CALLS[name]
    others = [torch.asarray(one) if isinstance(one, np.ndarray) else one for one in others]
    with config_context(array_api_dispatch=True):
        found = getattr(geometry, name)(torch.asarray(first), *others)
    expected = call(name, lambda a: a)
    if isinstance(expected, bool | float):
        assert found == pytest.approx(expected)
    else:
        assert all(isinstance(one, torch.Tensor) for one in as_tuple(found))
        assert np.allclose(as_tuple(found)[0].numpy(), as_tuple(expected)[0])


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("orthonormal_columns", (np.ones((2, 3)),), "at least as many features as dimensions"),
        ("orthonormal_rows", (np.ones((3, 2)),), "at least as many features as dimensions"),
        ("draw_bases", ((4, 2, 3), RNG), "at least as many features as dimensions"),
        ("draw_bases", ((4,), RNG), r"shape needs the shape \(.*\), found \(4,\)"),
        ("leading_eigen", (np.ones((2, 3)), 0.1), "needs square matrices"),
        ("range_basis", (np.ones((3, 0)),), r"has no entries, its shape is \(3, 0\)"),
        ("near_copies", (BASES[0], 0), "n=0 must be a whole number of at least 1"),
        ("near_copies", (BASES[0], 2, (1, 2, 2)), r"dims=\(1, 2, 2\) must be 2 whole numbers"),
        ("zero_padded", (BASES, (1, 2)), "must be 3 whole numbers from 0 to 2"),
        ("closeness", (BASES[None], (1, 2, 3)), "must be 3 whole numbers from 0 to 2"),
        ("closeness_of_gram", (np.eye(6)[None], 4), "6 columns, which are not those of n=4"),
        ("orthonormal_rows", (BASES.mT, (2, 2, 7)), "must be 3 whole numbers from 0 to 2"),
    ],
)
def test_sizes_that_do_not_fit(name, arguments, says):
    with pytest.raises(ValueError, match=says):
        getattr(geometry, name)(*arguments)


def test_keywords_names_and_pickles():
    assert np.array_equal(geometry.zero_padded(dims=None, bases=BASES), BASES)
    for name in geometry.__all__:
        found = getattr(geometry, name)
        if callable(found) and name != "Dims":
            assert pickle.loads(pickle.dumps(found)) is found
            assert found.__doc__ == getattr(found, "__wrapped__", found).__doc__


SOLVERS = """
import numpy as np
from polyspan import MiCUSaL, RobustMiCUSaL, geometry
from polyspan.geometry import checked
assert checked.with_checks
def fail(*args, **options):
    raise AssertionError("a solver pays for the checks of users")
checked.check_axes = checked.check_dims = fail
X = np.random.RandomState(0).standard_normal((40, 6))
MiCUSaL(2, (2, 1), random_state=0).fit(X).predict(X)
X[::7, 1] = np.nan
RobustMiCUSaL(2, 2, random_state=0).fit(X).score_samples(X)
"""


def test_solvers_call_the_functions_without_checks():
    done = subprocess.run([sys.executable, "-c", SOLVERS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
