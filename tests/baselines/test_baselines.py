"""The compared systems: scikit-learn's checks, and the clusters that each must find."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning

from polyspan import MCKUSaL, MiCUSaL, RobustMCKUSaL
from polyspan.baselines import (
    GROUSE,
    KGROUSE,
    ElasticNetSubspaceClustering,
    EnsembleKSubspaces,
    KernelKMeans,
    KernelPCADenoiser,
    KSubspaces,
    LeastSquaresSubspaceClustering,
    RobustKernelPCA,
    RobustShapeInteraction,
    RobustSparseSubspaceClustering,
    SparseSubspaceClustering,
    ThresholdingSubspaceClustering,
)
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.metrics import clustering_error

GRAPHS = [
    SparseSubspaceClustering,
    RobustSparseSubspaceClustering,
    ThresholdingSubspaceClustering,
    ElasticNetSubspaceClustering,
    LeastSquaresSubspaceClustering,
    EnsembleKSubspaces,
    RobustShapeInteraction,
]


def independent(seed=0, n=40, m=30, s=3, L=3, noise=0.01):
    rng = np.random.RandomState(seed)
    bases = draw_bases((L, m, s), rng)
    X = np.concatenate([rng.standard_normal((n, s)) @ basis.T for basis in bases])
    X += noise * rng.standard_normal(X.shape)
    return X, np.repeat(np.arange(L), n), bases


@pytest.mark.parametrize(
    "model",
    [
        SparseSubspaceClustering(3, 3),
        SparseSubspaceClustering(3, 3, algorithm="omp", n_nonzero=3),
        SparseSubspaceClustering(3, 3, outliers=True),
        SparseSubspaceClustering(3, 3, assign_labels="cluster_qr"),
        SparseSubspaceClustering(3, 3, affine=True),
        RobustSparseSubspaceClustering(3, 3),
        RobustSparseSubspaceClustering(3, 3, lam=0.1),
        RobustSparseSubspaceClustering(3, 3, lam="two-step", noise=0.05),
        ThresholdingSubspaceClustering(3, 3),
        ElasticNetSubspaceClustering(3, 3),
        ElasticNetSubspaceClustering(3, 3, nonnegative=True),
        LeastSquaresSubspaceClustering(3, 3),
        LeastSquaresSubspaceClustering(3, 3, alpha=0.1, power=1, q=None, normalize=False),
        EnsembleKSubspaces(3, 3, n_runs=50),
        RobustShapeInteraction(3, 3),
        RobustShapeInteraction(3, 3, q=5, assign_labels="cluster_qr"),
        KSubspaces(3, 3),
    ],
    ids=repr,
)
def test_independent_subspaces_are_found(model):
    X, labels, bases = independent()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(random_state=0).fit(X)
    assert clustering_error(labels, model.labels_) < 0.05
    assert model.bases_.shape == (3, 30, 3)
    assert is_orthonormal(model.bases_, 1e-8)
    nearest = [min(subspace_distance(b, found) for found in model.bases_) for b in bases]
    assert max(nearest) < 0.2
    assert clustering_error(labels, model.predict(X)) == 0
    assert np.sum((model.reconstruct(X) - X) ** 2) < 0.01 * np.sum(X**2)


@pytest.mark.parametrize("cls", GRAPHS)
def test_the_number_of_clusters_by_the_eigengap(cls):
    X, labels, _ = independent(seed=1, noise=0.0)
    model = cls(None, 3, random_state=0)
    if cls is RobustSparseSubspaceClustering:
        model.set_params(lam=0.1)
    if cls is ThresholdingSubspaceClustering:
        assert model.fit(X).q_ == 2 * max(3, -(-120 // 200))
    model.fit(X)
    assert model.n_subspaces_ == 3
    assert clustering_error(labels, model.labels_) == 0


def test_a_graph_is_symmetric_sparse_and_kept():
    X, _, _ = independent()
    for cls in GRAPHS:
        graph = cls(3, 3, random_state=0).fit(X).affinity_
        assert abs(graph - graph.T).max() == 0
        assert graph.nnz < 0.7 * 120**2 or cls is RobustShapeInteraction  # dense unless q is given
        assert graph.min() >= 0
        assert graph.diagonal().max() == 0


@pytest.mark.parametrize("cls", GRAPHS)
def test_the_same_random_state_gives_the_same_labels(cls):
    X, _, _ = independent(noise=0.3)
    first, second = (cls(3, 3, random_state=7).fit(X) for _ in range(2))
    assert np.array_equal(first.labels_, second.labels_)
    assert abs(first.affinity_ - second.affinity_).max() == 0


def test_affine_codes_tell_parallel_planes_apart():
    rng = np.random.RandomState(0)
    basis = draw_bases((20, 2), rng)
    offset = 3 * draw_bases((20, 2), rng)
    X = np.concatenate([rng.standard_normal((40, 2)) @ basis.T + offset[:, k] for k in (0, 1)])
    labels = np.repeat([0, 1], 40)
    model = SparseSubspaceClustering(2, 2, affine=True, random_state=0).fit(X)
    assert clustering_error(labels, model.labels_) == 0


def test_outlying_entries_are_modelled():
    X, labels, _ = independent(seed=2, m=60)
    rng = np.random.RandomState(0)
    X[rng.uniform(size=X.shape) < 0.02] += 1.0
    errors = [
        clustering_error(
            labels,
            SparseSubspaceClustering(3, 3, outliers=on, alpha_outliers=a, random_state=0)
            .fit(X)
            .labels_,
        )
        for on, a in ((False, 20.0), (True, 5.0))
    ]
    assert errors[1] <= errors[0]


def test_codes_that_are_empty_say_so():
    X, _, _ = independent()
    with pytest.warns(UserWarning, match="sparse codes are empty with alpha=0.01"):
        SparseSubspaceClustering(3, 3, alpha=0.01, random_state=0).fit(X)


def test_a_graph_in_more_parts_than_clusters_warns_and_still_labels():
    X, _, _ = independent(L=4, noise=0.0)
    with pytest.warns(UserWarning, match="has 4 connected components"):
        model = SparseSubspaceClustering(2, 3, algorithm="omp", n_nonzero=3, random_state=0).fit(X)
    assert set(model.labels_) == {0, 1}


@pytest.mark.parametrize("cls", GRAPHS)
def test_zero_rows_are_labelled(cls):
    X, _, _ = independent()
    X[5] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cls(3, 3, random_state=0).fit(X)
    assert model.labels_.shape == (120,)
    assert np.isfinite(model.bases_).all()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SparseSubspaceClustering(3, 30), "subspace_dim=30"),
        (SparseSubspaceClustering(121, 3), "n_subspaces=121 is larger than n_samples=120"),
        (SparseSubspaceClustering(alpha=0.0), "alpha"),
        (RobustSparseSubspaceClustering(lam=-1.0), "lam"),
        (ThresholdingSubspaceClustering(q=0), "q"),
        (KernelKMeans(121), "n_clusters=121 is larger than n_samples=120"),
        (GROUSE(30), "subspace_dim=30"),
        (KernelPCADenoiser(121), "fewer than"),
    ],
)
def test_bad_input(model, words):
    X, _, _ = independent()
    with pytest.raises(ValueError, match=words):
        model.fit(X)


def test_k_subspaces_is_micusal_without_closeness():
    X, _, _ = independent()
    ours = KSubspaces(3, 3, random_state=0).fit(X)
    theirs = MiCUSaL(3, 3, lam=float("inf"), random_state=0).fit(X)
    assert np.array_equal(ours.bases_, theirs.bases_)
    assert "lam" not in ours.get_params()


def test_grouse_finds_the_subspace_of_clean_samples_with_half_missing():
    rng = np.random.RandomState(0)
    basis = draw_bases((40, 4), rng)
    X = rng.standard_normal((300, 4)) @ basis.T
    holes = mask_entries(X, 0.5, random_state=0)
    model = GROUSE(4, random_state=0).fit(holes)
    assert subspace_distance(model.bases_[0], basis) < 1e-6
    assert_allclose(model.impute(holes), X, atol=1e-5)
    assert model.labels_.tolist() == [0] * 300
    stream = GROUSE(4, random_state=0)
    for turn in range(40):
        stream.partial_fit(holes[(turn % 10) * 30 :][:30])
    assert stream.n_seen_ == 1200
    assert subspace_distance(stream.bases_[0], basis) < 1e-3


def test_grouse_averages_noise_with_a_diminishing_step():
    rng = np.random.RandomState(1)
    basis = draw_bases((40, 3), rng)
    X = rng.standard_normal((400, 3)) @ basis.T
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    X += rng.standard_normal(X.shape) * np.sqrt(0.1 / 40)
    holes = mask_entries(X, 0.3, random_state=0)
    distances = [
        subspace_distance(GROUSE(3, step_size=step, random_state=0).fit(holes).bases_[0], basis)
        for step in ("greedy", 1.0)
    ]
    assert distances[1] < 0.5 * distances[0]


def test_k_grouse_with_small_and_with_good_steps():
    data = make_union_of_subspaces(
        (60, 60), n_features=40, subspace_dim=3, spread=0.4, noise=0.05, random_state=0
    )
    holes = mask_entries(data.X, 0.2, random_state=0)
    values = []
    for step in (0.01, 1.5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = KGROUSE(2, 3, step_size=step, random_state=0).fit(holes)
        values.append(model.objective_)
        assert is_orthonormal(model.bases_, 1e-8)
    assert values[1] < values[0]


def test_kernel_k_means_with_a_linear_kernel_is_k_means():
    X, _ = make_blobs(200, centers=4, cluster_std=1.5, random_state=0)
    ours = KernelKMeans(4, kernel="linear", n_init=20, random_state=0).fit(X)
    theirs = KMeans(4, n_init=20, random_state=0).fit(X)
    assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-9)
    assert clustering_error(theirs.labels_, ours.labels_) == 0
    new = X + 0.1
    assert clustering_error(theirs.predict(new), ours.predict(new)) == 0
    given = KernelKMeans(4, kernel="precomputed", n_init=20, random_state=0).fit(X @ X.T)
    assert np.array_equal(given.labels_, ours.labels_)
    assert np.array_equal(given.predict(new @ X.T), ours.predict(new))


def test_kernel_k_means_keeps_its_clusters_and_says_when_it_stops_early():
    X = np.repeat(np.arange(3.0), 5)[:, None]
    assert len(set(KernelKMeans(3, gamma=1.0, random_state=0).fit(X).labels_)) == 3
    assert len(set(KernelKMeans(5, gamma=1.0, random_state=0).fit(X).labels_)) == 5
    blobs, _ = make_blobs(200, centers=6, cluster_std=3.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        KernelKMeans(6, gamma=0.1, n_init=1, max_iter=1, random_state=0).fit(blobs)


def test_kernel_pca_is_one_subspace():
    X = load_digits(n_class=2).data[:120] / 60
    ours = KernelPCADenoiser(8, gamma=1.0).fit(X)
    theirs = MCKUSaL(1, 8, gamma=1.0, random_state=0).fit(X)
    assert_allclose(ours.reconstruct(X), theirs.reconstruct(X), atol=1e-10)
    holes = mask_entries(X, 0.1, random_state=0)
    robust = RobustKernelPCA(8, gamma=1.0).fit(holes)
    assert_allclose(
        robust.impute(holes),
        RobustMCKUSaL(1, 8, gamma=1.0, random_state=0).fit(holes).impute(holes),
        atol=1e-10,
    )


def test_kernel_pca_takes_the_number_that_held_out_noise_chooses():
    X = load_digits(n_class=2).data[:150] / 60
    model = KernelPCADenoiser("noise", noise=0.5, gamma=1.0, random_state=0).fit(X)
    table = model.noise_choice_.table
    best = min(table, key=lambda row: row["error"])
    assert model.subspace_dim_ == best["params"]["subspace_dim"] == model.coefs_[0].shape[1]
    assert max(row["params"]["subspace_dim"] for row in table) == 99
    fixed = KernelPCADenoiser(model.subspace_dim_, gamma=1.0).fit(X)
    assert np.array_equal(fixed.reconstruct(X), model.reconstruct(X))
    again = KernelPCADenoiser("noise", noise=[0.5], gamma=1.0, random_state=0).fit(X)
    assert [row["error"] for row in again.noise_choice_.table] == [row["error"] for row in table]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelPCADenoiser("noise"), "give noise"),
        (KernelPCADenoiser("noise", noise=0.1, kernel="precomputed"), "precomputed"),
        (KernelPCADenoiser("noise", noise=0.1, n_splits=40), "2 \\* n_splits = 80"),
        (KernelPCADenoiser("noise", noise=[-1.0]), "not negative"),
        (KernelPCADenoiser("all"), "subspace_dim"),
    ],
)
def test_kernel_pca_says_what_the_choice_needs(model, message):
    X = np.eye(20)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
