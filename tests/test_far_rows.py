"""Rows whose squares overflow: a finite answer, infinity of the right sign, or an error."""

import warnings

import numpy as np
import pytest
from sklearn import config_context

from polyspan import MCKUSaL, RobustMCKUSaL, SubspaceMixture, SubspaceOutlierDetector
from polyspan.baselines import KernelKMeans, KernelPCADenoiser, RobustKernelPCA
from polyspan.datasets import make_union_of_subspaces

DATA = make_union_of_subspaces((30, 30), n_features=6, subspace_dim=2, spread=0.9, random_state=0)
NEAR = np.stack([DATA.X[0], DATA.X[40], DATA.X[3]])
SCALES = np.array([[1e160], [1e300], [1e150]])
RBF = [
    MCKUSaL(2, 2, kernel="rbf", random_state=0),
    MCKUSaL(2, 2, kernel="rbf", gamma=1e-3, low_rank=20, random_state=0),
    RobustMCKUSaL(2, 2, kernel="rbf", random_state=0),
    KernelPCADenoiser(2, kernel="rbf"),
    RobustKernelPCA(2, kernel="rbf"),
]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.parametrize("model", RBF, ids=lambda model: type(model).__name__)
def test_gaussian_kernels_are_zero_far_away(model):
    model = model.fit(DATA.X)
    far = model.score_samples(NEAR * SCALES)
    assert np.isfinite(far).all()
    # As far as makes all kernel values 0, and no farther.
    assert np.allclose(far, model.score_samples(NEAR * 1e6), rtol=1e-12)
    assert np.array_equal(model.predict(NEAR * SCALES), model.predict(NEAR * 1e6))
    both = model.score_samples(np.vstack([NEAR, NEAR * SCALES]))
    assert np.allclose(both[:3], model.score_samples(NEAR), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("method", ["score_samples", "predict"])
@pytest.mark.parametrize("family", [MCKUSaL, RobustMCKUSaL])
def test_kernels_of_products_say_what_to_do(family, method, kernel):
    model = family(2, 2, kernel=kernel, random_state=0).fit(DATA.X)
    with pytest.raises(ValueError, match="kernel values are not finite: scale X"):
        getattr(model, method)(NEAR * SCALES)


def test_clusters_of_kernel_kmeans():
    model = KernelKMeans(2, kernel="rbf", random_state=0).fit(DATA.X)
    assert np.array_equal(model.predict(NEAR * SCALES), model.predict(NEAR * 1e6))
    model = KernelKMeans(2, kernel="linear", random_state=0).fit(DATA.X)
    with pytest.raises(ValueError, match="kernel values are not finite: scale X"):
        model.predict(np.full((1, 6), 1e308))


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("outliers", [False, True])
def test_a_mixture(outliers, holes):
    model = SubspaceMixture(2, 2, outliers=outliers, random_state=0).fit(DATA.X)
    near, far = NEAR * 1e100, NEAR * SCALES
    if holes:
        near[:, 1] = far[:, 1] = np.nan
    assert np.array_equal(model.predict(far), model.predict(near))
    assert np.allclose(model.predict_proba(far), model.predict_proba(near))
    assert np.allclose(model.transform(far), model.transform(near) * (SCALES / 1e100))
    scores = model.score_samples(far)
    if outliers:
        assert np.allclose(scores, model.score_samples(near))
        assert np.allclose(model.outlier_probability(far), 1)
    else:
        assert (scores[:2] == -np.inf).all()
        assert np.isclose(scores[2] / model.score_samples(near)[2], 1e100)
        assert model.score(far) == -np.inf


def test_a_mixture_of_tensors():
    torch = pytest.importorskip("torch")
    model = SubspaceMixture(2, 2, random_state=0)
    with config_context(array_api_dispatch=True):
        model.fit(torch.asarray(DATA.X))
        scores = model.score_samples(torch.asarray(NEAR * SCALES))
    assert torch.isinf(scores).tolist() == [True, True, False]


def test_an_outlier_detector():
    model = SubspaceOutlierDetector(random_state=0).fit(DATA.X)
    scores = model.score_samples(np.vstack([NEAR, NEAR * SCALES]))
    assert np.isfinite(scores).all()
    assert scores[3:].max() < scores[:3].min()
    assert (model.predict(NEAR * SCALES) == -1).all()
