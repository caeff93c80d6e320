"""Settings of scikit-learn that a user may have on: a fit does not depend on them."""

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits

from polyspan import MCKUSaL, MiCUSaL, RobustMCKUSaL, SubspaceImputer, SubspaceMixture, metrics
from polyspan.base.arrays import to_numpy
from polyspan.baselines import (
    BlockSparseDictionary,
    KernelKMeans,
    KernelPCADenoiser,
    SparseSubspaceClustering,
)
from polyspan.datasets import mask_entries
from polyspan.geometry import estimate_dimension
from support import require_torch

X = load_digits(n_class=3).data[:90] / 16 + 1e-3 * np.random.RandomState(0).random((90, 64))
HOLES = mask_entries(X, 0.1, random_state=0)
# Each of them calls functions of scikit-learn: seeds of k-means, spectral embedding, neighbours,
# kernels and their centring, randomised SVD, matching pursuit, an indicator of holes.
MODELS = [
    (MiCUSaL(3, 2, affine=True, random_state=0), X),
    (MCKUSaL(3, 2, random_state=0), X),
    (MCKUSaL(3, 2, kernel="poly", init="gkiop", n_init=1, random_state=0), X),
    (MCKUSaL(3, 2, low_rank=40, random_state=0), X),
    (RobustMCKUSaL(3, 2, random_state=0), HOLES),
    (SubspaceMixture(3, 2, random_state=0), X),
    (SubspaceMixture(3, 2, random_state=0), HOLES),
    (SubspaceImputer(2, 2, n_fits=1, add_indicator=True), HOLES),
    (SparseSubspaceClustering(3, random_state=0), X),
    (SparseSubspaceClustering(3, assign_labels="cluster_qr", random_state=0), X),
    (KernelKMeans(3, random_state=0), X),
    (KernelPCADenoiser(4), X),
    (BlockSparseDictionary(3, 2, max_iter=3, random_state=0), X),
]


def name_of(value):
    """Return a short name for a model, and for data whether they have holes."""
    names = {id(X): "complete", id(HOLES): "holes"}
    return names.get(id(value), str(value))


def result(model, X):
    """Return what a model makes of the data it is fitted on, as a NumPy array."""
    fitted = clone(model).fit(X)
    made = fitted.transform(X) if hasattr(fitted, "transform") else fitted.labels_
    return to_numpy(made)


@pytest.mark.parametrize(("model", "X"), MODELS, ids=name_of)
def test_dispatch_changes_nothing_for_numpy_arrays(model, X):
    expected = result(model, X)
    with sklearn.config_context(array_api_dispatch=True):
        found = result(model, X)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(("model", "X"), MODELS, ids=name_of)
def test_output_in_frames_changes_nothing_inside(model, X):
    expected = result(model, X)
    with sklearn.config_context(transform_output="pandas"):
        found = clone(model).fit(X)
        if hasattr(found, "transform"):
            table = found.transform(X)
            assert isinstance(table, pd.DataFrame)
            assert np.array_equal(table.to_numpy(), expected)
        else:
            assert np.array_equal(found.labels_, expected)


@pytest.mark.parametrize(
    ("model", "X"),
    [(model, X) for model, X in MODELS[:7] if model.__sklearn_tags__().array_api_support],
    ids=name_of,
)
@pytest.mark.parametrize("place", ["strict", "torch"])
def test_other_namespaces_with_dispatch(model, X, place):
    xp = require_torch() if place == "torch" else array_api_strict
    expected = result(model, X)
    with sklearn.config_context(array_api_dispatch=True):
        found = result(model, xp.asarray(X))
    assert_allclose(found, expected, atol=1e-6)


def test_metrics_with_dispatch():
    labels = np.repeat([0, 1, 2], 30)
    expected = estimate_dimension(X)
    with sklearn.config_context(array_api_dispatch=True):
        assert metrics.clustering_error(labels, (labels + 1) % 3) == 0
        assert estimate_dimension(X) == expected


def test_a_model_stays_in_its_namespace():
    model = MiCUSaL(3, 2, random_state=0)
    with sklearn.config_context(array_api_dispatch=True):
        model.fit(array_api_strict.asarray(X))
        with pytest.raises(ValueError, match="same namespace and the same device"):
            model.predict(X)
        elsewhere = array_api_strict.asarray(X, device=array_api_strict.Device("device1"))
        with pytest.raises(ValueError, match="same namespace and the same device"):
            model.predict(elsewhere)
        with pytest.raises(ValueError, match="same namespace and the same device"):
            model.predict(X.tolist())
        model.fit(X)
        assert np.array_equal(model.predict(X.tolist()), model.labels_)
