"""Files outlive moves and renamings of classes."""

import sys
import types
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import sklearn.preprocessing
import skops.io

from polyspan import MCKUSaL, MiCUSaL, load_model, save_model
from polyspan.kernel._solve.subspaces import KernelSubspaces
from polyspan.kernels import Kernel
from polyspan.storage import saved_types


def test_names_of_the_format_stay():
    parts = [
        "ExactUnion",
        "Fill",
        "Kernel",
        "KernelRun",
        "KernelSubspaces",
        "LowRankUnion",
        "Memory",
        "Merge",
        "NystromMap",
        "Scaling",
        "Stream",
    ]
    assert {f"polyspan.parts.{name}" for name in parts} <= saved_types._PARTS.keys()


@contextmanager
def moved(kind):
    """Put a class into another module and under another name, and forget where it was."""
    module, name = kind.__module__, kind.__name__
    place = sys.modules["polyspan_moved"] = types.ModuleType("polyspan_moved")
    place.Renamed = kind
    delattr(sys.modules[module], name)
    kind.__module__, kind.__name__ = "polyspan_moved", "Renamed"
    try:
        yield
    finally:
        kind.__module__, kind.__name__ = module, name
        setattr(sys.modules[module], name, kind)
        del sys.modules["polyspan_moved"]


@pytest.mark.parametrize(
    "kind",
    [MCKUSaL, Kernel, KernelSubspaces, sklearn.preprocessing.KernelCenterer],
    ids=lambda kind: kind.__name__,
)
def test_a_model_saved_before_a_move_of_its_class_loads_after_it(kind, tmp_path):
    X = np.random.RandomState(0).standard_normal((30, 6))
    model = MCKUSaL(2, 2, random_state=0).fit(X)
    expected = model.transform(X.copy())  # BLAS rounds otherwise for X itself
    path = tmp_path / "m.skops"
    save_model(model, path)
    with moved(kind):
        again = load_model(path)
        np.testing.assert_array_equal(again.transform(X), expected)
        save_model(again, tmp_path / "moved.skops")
        # skops alone would name the new place.
        assert b"polyspan_moved" in skops.io.dumps(again)
    assert b"polyspan_moved" not in (tmp_path / "moved.skops").read_bytes()
    again = load_model(tmp_path / "moved.skops")
    np.testing.assert_array_equal(again.transform(X), expected)


def kept(name):
    return Path(__file__).parent / name


def test_a_file_of_the_first_release_loads():
    model = load_model(kept("micusal_v2.skops"))
    assert type(model) is MiCUSaL
    assert (model.n_subspaces, model.subspace_dim, model.random_state) == (2, 2, 0)
    assert model.bases_.shape == (2, 6, 2)
    assert model.objective_ == pytest.approx(1.884433889875269)
    points = np.array([[1.0, -2.0], [0.5, 3.0]])
    for k, basis in enumerate(model.bases_):
        X = points @ basis.T + model.mean_
        np.testing.assert_array_equal(model.predict(X), [k, k])
        np.testing.assert_allclose(model.reconstruct(X), X, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Trying to unpickle estimator")  # of a later scikit-learn
def test_a_kernel_model_of_the_first_release_loads():
    model = load_model(kept("mckusal_v2.skops"))
    assert type(model) is MCKUSaL
    X = np.arange(12.0).reshape(2, 6) / 10.0
    distances = [[0.38769928, 0.40272556], [0.81646927, 0.82450026]]
    np.testing.assert_allclose(model.transform(X), distances, rtol=1e-6)
