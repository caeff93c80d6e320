"""Affine subspaces: limits, invariances, descent, and prediction."""

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from polyspan import MiCUSaL
from polyspan.baselines import KSubspaces
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.linear._solve.alternation import Rules, alternate, update_exactly
from polyspan.linear._solve.annealing import anneal
from polyspan.linear._solve.leave_one_out import coefficient_scatter_block
from polyspan.linear._solve.problem import prepare
from polyspan.linear._solve.shape import Affine, join
from polyspan.metrics import clustering_error
from polyspan.model_selection import masked_entry_score


def flats(seed=0, sizes=(40, 50, 60), m=12, s=2, apart=2.0, noise=0.05):
    rng = np.random.RandomState(seed)
    common = draw_bases((m, s), rng)
    parts, labels = [], []
    for p, n in enumerate(sizes):
        basis = np.linalg.qr(common + 0.1 * rng.standard_normal((m, s)))[0]
        parts.append(rng.standard_normal((n, s)) @ basis.T + apart * rng.standard_normal(m))
        labels += [p] * n
    X = np.concatenate(parts)
    return X + noise * rng.standard_normal(X.shape), np.array(labels)


def direct_objective(X, bases, anchors, labels, lam):
    """F1 with the extended metric, written out."""
    mean = X.mean(axis=0)
    unit = np.mean(np.sum((X - mean) ** 2, axis=1))
    complements = [np.eye(len(mean)) - basis @ basis.T for basis in bases]
    feet = [Q @ (c - mean) for Q, c in zip(complements, anchors, strict=True)]
    closeness = sum(
        subspace_distance(bases[p], bases[q]) ** 2 + np.sum((feet[p] - feet[q]) ** 2) / unit
        for p in range(len(bases))
        for q in range(len(bases))
        if p != q
    )
    rows = zip(X, labels, strict=True)
    fit = sum(np.sum((complements[p] @ (x - anchors[p])) ** 2) for x, p in rows)
    return fit if np.isinf(lam) else closeness + lam * fit


def problem_and_frames(X, lam, n_subspaces, s, seed=0, starts=2):
    problem, _ = prepare(X, lam, center=True, affine=True)
    assert isinstance(problem.shape, Affine)
    rng = np.random.RandomState(seed)
    bases = draw_bases((starts, n_subspaces, X.shape[1], s), rng)
    points = X[rng.choice(len(X), (starts, n_subspaces))] - X.mean(axis=0)
    return problem, join(bases, points)


@given(
    seed=st.integers(0, 500),
    lam=st.sampled_from([0.01, 0.5, 4.0, float("inf")]),
    solver=st.sampled_from(["power", "exact"]),
    s=st.integers(0, 3),
)
def test_objective_never_rises(seed, lam, solver, s):
    X, _ = flats(seed, sizes=(15, 20, 12), m=8, noise=0.3)
    problem, frames = problem_and_frames(X, lam, 3, s, seed)
    for run in alternate(problem, frames, Rules(solver, 60, 0.0)):
        history = np.array(run.history)
        assert np.all(np.diff(history) <= 1e-10 * np.abs(history[:-1]))
        assert s == 0 or is_orthonormal(problem.shape.split(run.frames)[0])


@given(seed=st.integers(0, 500), lam=st.sampled_from([0.1, 4.0, float("inf")]), s=st.integers(0, 2))
def test_free_energy_never_rises_at_fixed_temperature(seed, lam, s):
    X, _ = flats(seed, sizes=(15, 20, 12), m=8, noise=0.3)
    problem, frames = problem_and_frames(X, lam, 3, s, seed)
    _, history = anneal(problem, frames, [0.2] * 12)
    assert np.all(np.diff(history, axis=0) <= 1e-10 * np.abs(history[:-1]))


@pytest.mark.parametrize("lam", [0.1, 4.0, float("inf")])
def test_free_energy_is_the_one_written_out(lam):
    """With the best weights: the closeness term - λτ Σ_i log Σ_l exp(-r_il/τ); for λ=∞ λ is 1."""
    X, _ = flats(0, sizes=(15, 20, 12), m=8, noise=0.3)
    problem, frames = problem_and_frames(X, lam, 3, 2, 0)
    _, history = anneal(problem, frames, [0.2])
    factor = lam if np.isfinite(lam) else 1.0
    for frame, found in zip(frames, history[0], strict=True):
        bases, points = problem.shape.split(frame)
        centred = (X - X.mean(axis=0))[None] - points[:, None]
        inside = centred @ bases
        residuals = (centred**2).sum(axis=2) - (inside**2).sum(axis=2)
        expected = -factor * 0.2 * scipy.special.logsumexp(-residuals / 0.2, axis=0).sum()
        closeness = float(problem.shape.closeness(frame[None])[0]) if np.isfinite(lam) else 0.0
        assert_allclose(found, closeness + expected, rtol=1e-9)


@pytest.mark.parametrize("lam", [0.2, 4.0, float("inf")])
@pytest.mark.parametrize("solver", ["power", "exact"])
def test_objective_is_the_one_written_out(lam, solver):
    X, labels = flats()
    model = MiCUSaL(3, 2, affine=True, lam=lam, solver=solver, random_state=0).fit(X)
    expected = direct_objective(X, model.bases_, model.anchors_, model.labels_, lam)
    assert_allclose(model.objective_, expected, rtol=1e-9)
    assert clustering_error(labels, model.labels_) == 0
    assert np.array_equal(model.labels_, model.predict(X))


def test_linear_subspaces_cannot_tell_parallel_flats_apart():
    X, labels = flats()
    linear = MiCUSaL(3, 2, random_state=0).fit(X)
    affine = MiCUSaL(3, 2, affine=True, random_state=0).fit(X)
    assert clustering_error(labels, affine.labels_) == 0
    assert affine.score(X) > linear.score(X)


def test_one_subspace_is_pca():
    X, _ = flats()
    model = MiCUSaL(1, 2, affine=True, solver="exact", random_state=0).fit(X)
    pca = PCA(2).fit(X)
    assert subspace_distance(model.bases_[0], pca.components_.T) < 1e-7
    assert_allclose(model.anchors_[0], X.mean(axis=0))
    assert_allclose(model.reconstruct(X), pca.inverse_transform(pca.transform(X)), atol=1e-9)


def test_points_without_closeness_are_k_means():
    X, _ = flats(noise=0.4)
    start = X[[3, 60, 110]]
    init = start[:, :, None]
    model = KSubspaces(3, 0, affine=True, init=init, tol=0.0, max_iter=300).fit(X)
    peer = KMeans(3, init=start, n_init=1, tol=0.0).fit(X)
    assert_allclose(model.anchors_, peer.cluster_centers_, atol=1e-9)
    assert_allclose(model.objective_, peer.inertia_)
    assert np.array_equal(model.labels_, peer.labels_)
    assert_allclose(model.transform(X), peer.transform(X), atol=1e-6)


def test_one_point_per_sample_is_convex_clustering_with_squared_norms():
    # min Σ_{l≠p} ‖c_l - c_p‖²/v + λ Σ ‖y_i - c_i‖² has c_i = y_i / (1 + 2L/(λv)) about the mean.
    X = np.random.RandomState(0).standard_normal((9, 4))
    mean = X.mean(axis=0)
    unit = np.mean(np.sum((X - mean) ** 2, axis=1))
    for lam in (200.0, 40.0):
        model = MiCUSaL(9, 0, affine=True, lam=lam, init=X[:, :, None], tol=0.0).fit(X)
        assert np.array_equal(model.labels_, np.arange(9))
        expected = mean + (X - mean) / (1 + 2 * 9 / (lam * unit))
        assert_allclose(model.anchors_, expected, atol=1e-6)


def test_a_small_weight_brings_all_points_together():
    X, _ = flats()
    model = MiCUSaL(3, 0, affine=True, lam=1e-6, random_state=0).fit(X)
    assert np.abs(model.anchors_ - X.mean(axis=0)).max() < 1e-2
    far = MiCUSaL(3, 0, affine=True, lam=1e3, random_state=0).fit(X)
    assert np.abs(far.anchors_ - X.mean(axis=0)).max() > 1.0


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_translation_rotation_and_scale(solver):
    X, _ = flats()
    rng = np.random.RandomState(1)
    rotation, shift = draw_bases((12, 12), rng), 10 * rng.standard_normal(12)
    model = MiCUSaL(3, 2, affine=True, lam=1.0, solver=solver, random_state=0)
    plain = model.fit(X)
    bases, anchors, labels, value = (
        plain.bases_,
        plain.anchors_,
        plain.labels_,
        plain.objective_,
    )
    init = join(bases, anchors)
    init[..., -1] += 0.1
    moved = MiCUSaL(3, 2, affine=True, lam=1.0, solver=solver, init=init).fit(X)
    turned = join(rotation @ init[..., :-1], init[..., -1] @ rotation.T + shift)
    other = MiCUSaL(3, 2, affine=True, lam=1.0, solver=solver, init=turned)
    other.fit(X @ rotation.T + shift)
    assert np.array_equal(other.labels_, moved.labels_)
    assert_allclose(other.objective_, moved.objective_, rtol=1e-9)
    assert_allclose(other.anchors_, moved.anchors_ @ rotation.T + shift, atol=1e-7)
    scaled = MiCUSaL(3, 2, affine=True, lam=1.0 / 64, solver=solver, random_state=0).fit(8 * X)
    assert np.array_equal(scaled.labels_, labels)
    assert_allclose(scaled.anchors_, 8 * anchors, atol=1e-9)
    assert_allclose(scaled.objective_, value)


def test_more_features_than_samples():
    X, labels = flats(sizes=(8, 9, 7), m=40)
    short = MiCUSaL(3, 2, affine=True, lam=1.0, random_state=0).fit(X)
    expected = direct_objective(X, short.bases_, short.anchors_, short.labels_, 1.0)
    assert_allclose(short.objective_, expected, rtol=1e-9)
    assert clustering_error(labels, short.labels_) == 0
    start = join(draw_bases((3, 40, 2), np.random.RandomState(0)), X[[0, 10, 20]])
    given_one = MiCUSaL(3, 2, affine=True, lam=1.0, init=start).fit(X)
    assert_allclose(given_one.objective_, short.objective_, rtol=1e-5)


def test_chunks_make_no_difference(monkeypatch):
    X, _ = flats(sizes=(300, 400, 500))
    one = MiCUSaL(3, 2, affine=True, random_state=0).fit(X + 3.0)
    monkeypatch.setattr("polyspan.base.arrays.CHUNK_BYTES", 1)
    monkeypatch.setattr("polyspan.base.arrays.CHUNK_MIN_ROWS", 170)
    many = MiCUSaL(3, 2, affine=True, random_state=0).fit(X + 3.0)
    assert_allclose(many.objective_, one.objective_, rtol=1e-10)
    assert_allclose(many.anchors_, one.anchors_, atol=1e-9)
    assert np.array_equal(many.labels_, one.labels_)
    exact = MiCUSaL(3, 2, affine=True, solver="exact", random_state=0).fit(X + 3.0)
    assert_allclose(exact.objective_, one.objective_, rtol=1e-6)


def test_float32_and_extreme_scales():
    X, labels = flats()
    model = MiCUSaL(3, 2, affine=True, random_state=0).fit(X.astype(np.float32))
    assert model.anchors_.dtype == np.float32
    assert clustering_error(labels, model.labels_) == 0
    tiny = KSubspaces(3, 2, affine=True, random_state=0).fit(X * 1e-150)
    assert clustering_error(labels, tiny.predict(X * 1e-150)) == 0
    assert_allclose(tiny.reconstruct(X * 1e-150) * 1e150, X, atol=0.5)


def test_leave_one_out_of_a_point_is_exact():
    # Leaving y out of a mean of n samples turns its residual r into r/(1 - 1/n)².
    X, labels = flats()
    problem, frames = problem_and_frames(X, float("inf"), 3, 0, starts=1)
    centred = X - X.mean(axis=0)
    means = np.stack([centred[labels == p].mean(axis=0) for p in range(3)])
    frames = means[None, :, :, None]
    scatter, _ = problem.rows.reduce(
        coefficient_scatter_block, frames, problem.shape, labels[:, None]
    )
    (fit,) = problem.rows.block.fits(*problem.shape.split(frames))
    members = (labels == np.arange(3)[:, None]).astype(float)[None]
    found = scatter.leverage(affine=True).residuals(fit, members)[0]
    for i in (0, 45, 120):
        p = labels[i]
        others = (labels == p) & (np.arange(len(X)) != i)
        expected = np.sum((centred[i] - centred[others].mean(axis=0)) ** 2)
        assert_allclose(found[p, i], expected)


def test_leave_one_out_fit():
    X, labels = flats(sizes=(9, 9, 9))
    model = KSubspaces(3, 2, affine=True, residual="loo", random_state=0).fit(X)
    assert clustering_error(labels, model.labels_) == 0


def test_empty_subspaces_are_refilled():
    X, _ = flats()
    start = join(draw_bases((3, 12, 2), np.random.RandomState(0)), X[[0, 50, 100]])
    start[2, :, -1] = 1e3
    two = KSubspaces(2, 2, affine=True, init=start[:2]).fit(X)
    model = KSubspaces(3, 2, affine=True, init=start).fit(X)
    assert (np.bincount(model.labels_, minlength=3) > 0).all()
    assert model.objective_ < 0.9 * two.objective_


def test_a_linear_fit_after_an_affine_one_forgets_its_points():
    X, _ = flats()
    model = MiCUSaL(3, 2, affine=True, random_state=0).fit(X)
    model.set_params(affine=False).fit(X)
    fresh = MiCUSaL(3, 2, random_state=0).fit(X)
    assert not hasattr(model, "anchors_")
    assert np.array_equal(model.predict(X), fresh.labels_)
    assert model.score(X) == fresh.score(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objective_keeps_its_digits_where_clusters_are_far_apart(dtype):
    X, labels = flats(apart=1e6 if dtype == np.float64 else 1e3)
    model = KSubspaces(3, 2, affine=True, random_state=0).fit(X.astype(dtype))
    assert clustering_error(labels, model.labels_) == 0
    parts = [X[labels == p] - X[labels == p].mean(axis=0) for p in range(3)]
    best = sum(float(np.sum(np.linalg.svd(part)[1][2:] ** 2)) for part in parts)
    assert_allclose(model.objective_, best, rtol=1e-6 if dtype == np.float64 else 0.05)


def test_the_exact_step_is_the_optimum_of_one_basis():
    # With the points and the other bases fixed, no other basis has a lower objective.
    X, _ = flats(noise=0.5, apart=1.0)
    problem, frames = problem_and_frames(X, 0.2, 3, 2, starts=1)
    labels, _ = problem.assign(frames, with_products=False)
    bases, points = problem.shape.split(update_exactly(problem, frames[0], labels, 0))
    rng = np.random.RandomState(0)
    centred = X - X.mean(axis=0)

    def value(basis):
        changed = bases.copy()
        changed[2] = basis
        rest = centred - points[labels[:, 0]]
        inside = np.einsum("nm,nms->ns", rest, changed[labels[:, 0]])
        residual = np.sum(rest**2) - np.sum(inside**2)
        return float(problem.shape.closeness(join(changed, points)[None])[0]) + 0.2 * residual

    best = value(bases[2])
    for size in (1e-3, 1e-2, 1e-1, 1.0):
        for _ in range(20):
            other = np.linalg.qr(bases[2] + size * rng.standard_normal((12, 2)))[0]
            assert value(other) >= best - 1e-12


def test_scores_that_know_no_points_refuse_affine_models():
    X, _ = flats()
    model = MiCUSaL(3, 2, affine=True, random_state=0).fit(X)
    with pytest.raises(ValueError, match="affine subspaces"):
        masked_entry_score(model, X)


def test_errors():
    X, _ = flats()
    with pytest.raises(ValueError, match="needs affine=True"):
        MiCUSaL(3, 0).fit(X)
    with pytest.raises(ValueError, match=r"subspace_dim \+ 1\) is \(3, 12, 3\)"):
        MiCUSaL(3, 2, affine=True, init=draw_bases((3, 12, 2), np.random.RandomState(0))).fit(X)
    with pytest.raises(ValueError, match=r"n_subspaces \* \(subspace_dim \+ 1\)"):
        MiCUSaL(3, 2, affine=True).fit(X[:8])
