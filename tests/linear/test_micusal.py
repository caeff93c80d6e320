"""MiCUSaL as a whole: limits, and properties over shapes and dtypes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.metrics import clustering_error

pytestmark = pytest.mark.filterwarnings("ignore:no sample is assigned", "ignore:the alternation")


def small(seed=0, sizes=(40, 40), m=20, s=3, spread=0.3, noise=0.02):
    return make_union_of_subspaces(
        sizes, n_features=m, subspace_dim=s, spread=spread, noise=noise, random_state=seed
    )


shapes = st.tuples(
    st.integers(1, 4),  # subspaces
    st.integers(1, 3),  # dimension
    st.integers(4, 30),  # features
    st.integers(12, 60),  # samples
)


@settings(max_examples=40)
@given(
    shape=shapes,
    seed=st.integers(0, 10_000),
    dtype=st.sampled_from(["float64", "float32"]),
    solver=st.sampled_from(["power", "exact"]),
    init=st.sampled_from(["anneal", "random"]),
    lam=st.sampled_from([0.1, 4.0, float("inf")]),
    residual=st.sampled_from(["plain", "loo"]),
)
def test_what_every_fit_promises(shape, seed, dtype, solver, init, lam, residual):
    n_subspaces, s, m, n = shape
    X = np.random.RandomState(seed).standard_normal((n, m)).astype(dtype)
    before = X.copy()
    model = MiCUSaL(
        n_subspaces, s, lam=lam, solver=solver, init=init, residual=residual, n_init=2,
        anneal_steps=10, random_state=0,
    ).fit(X)  # fmt: skip
    assert np.array_equal(X, before)
    assert model.bases_.dtype == model.mean_.dtype == X.dtype
    assert model.bases_.shape == (n_subspaces, m, s)
    double = dtype == "float64"
    assert is_orthonormal(model.bases_, 1e-10 if double else 1e-5)
    assert model.labels_.min() >= 0
    assert model.labels_.max() < n_subspaces
    assert len(model.objective_history_) == model.n_iter_ + 1
    assert model.objective_ >= 0
    assert len(model.anneal_history_) == (10 if init == "anneal" else 0)
    if residual == "plain":
        assert model.objective_history_[-1] == model.objective_
        rise = np.diff(model.objective_history_)
        assert np.all(rise <= (1e-10 if double else 1e-5) * model.objective_history_[:-1] + 1e-9)
        distances = model.transform(X)
        nearest = np.take_along_axis(distances, model.labels_[:, None], axis=1)[:, 0]
        assert_allclose(nearest, distances.min(axis=1), atol=1e-6 if double else 1e-2)
        labels = model.predict(X)
        if double:
            assert np.array_equal(labels, model.labels_)
        else:
            assert np.mean(labels == model.labels_) > 0.9
    expected = _objective(model, X.astype("float64"))
    assert_allclose(model.objective_, expected, rtol=1e-9 if double else 1e-4, atol=1e-8)


def _objective(model, X):
    """F1 by its definition."""
    bases = model.bases_.astype("float64")
    Y = X - model.mean_
    own = bases[model.labels_]
    projected = np.einsum("nms,ns->nm", own, np.einsum("nms,nm->ns", own, Y))
    residual = np.sum((Y - projected) ** 2)
    if np.isinf(model.lam):
        return residual
    pairs = [(a, b) for i, a in enumerate(bases) for j, b in enumerate(bases) if i != j]
    return sum(subspace_distance(a, b) ** 2 for a, b in pairs) + model.lam * residual


@pytest.mark.parametrize(("n", "m"), [(60, 10), (20, 50)])
@pytest.mark.parametrize("center", [True, False])
def test_one_subspace_is_pca(n, m, center):
    X = np.random.RandomState(0).standard_normal((n, m)) * np.linspace(3, 1, m)
    model = MiCUSaL(1, 3, solver="exact", center=center, random_state=0).fit(X)
    if center:
        components = PCA(3).fit(X).components_
    else:
        components = np.linalg.svd(X, full_matrices=False)[2][:3]
    assert subspace_distance(model.bases_[0], components.T) <= 1e-6


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_infinite_lambda_is_the_limit_of_large_lambda(solver):
    data = small()
    start = draw_bases((2, 20, 3), np.random.RandomState(3))
    fits = [
        MiCUSaL(2, 3, lam=lam, init=start, solver=solver, tol=1e-12, max_iter=3000).fit(data.X)
        for lam in (1e12, float("inf"))
    ]
    assert np.array_equal(fits[0].labels_, fits[1].labels_)
    for a, b in zip(fits[0].bases_, fits[1].bases_, strict=True):
        assert subspace_distance(a, b) < 1e-5
    assert_allclose(fits[0].objective_ / 1e12, fits[1].objective_, rtol=1e-6)
    assert_allclose(fits[1].objective_, -fits[1].score(data.X) * 80)


def test_small_lambda_pulls_the_subspaces_together():
    data = small()
    spans = [
        MiCUSaL(2, 3, lam=lam, random_state=0).fit(data.X).subspace_distances_.max()
        for lam in (1e-3, 1.0, 100.0)
    ]
    assert spans[0] < 1e-2
    assert spans[0] < spans[1] < spans[2]


@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("residual", ["plain", "loo"])
def test_rotating_permuting_and_scaling(solver, residual):
    data = small(sizes=(30, 30, 30))
    start = draw_bases((3, 20, 3), np.random.RandomState(1))

    def fit(X, lam=4.0, init=start):
        return MiCUSaL(3, 3, lam=lam, init=init, solver=solver, residual=residual).fit(X)

    base = fit(data.X)
    turn = draw_bases((20, 20), np.random.RandomState(2))
    turned = fit(data.X @ turn.T, init=turn @ start)
    assert np.array_equal(turned.labels_, base.labels_)
    assert_allclose(turned.objective_, base.objective_, rtol=1e-9)
    for a, b in zip(turned.bases_, base.bases_, strict=True):
        assert subspace_distance(a, turn @ b) < 1e-6
    order = np.random.RandomState(3).permutation(len(data.X))
    permuted = fit(data.X[order])
    assert np.array_equal(permuted.labels_, base.labels_[order])
    scaled = fit(7.0 * data.X, lam=4.0 / 49.0)
    assert np.array_equal(scaled.labels_, base.labels_)
    assert_allclose(scaled.transform(7.0 * data.X), 7.0 * base.transform(data.X), atol=1e-6)


def test_annealing_takes_its_temperatures_from_the_data():
    data = small(sizes=(30, 30, 30))
    base = MiCUSaL(3, 3, lam=4.0, random_state=0).fit(data.X)
    scaled = MiCUSaL(3, 3, lam=4.0 / 1e6, random_state=0).fit(1e3 * data.X)
    assert np.array_equal(scaled.labels_, base.labels_)
    assert_allclose(scaled.objective_, base.objective_, rtol=1e-9)
    assert_allclose(scaled.anneal_history_, base.anneal_history_, rtol=1e-9)


@pytest.mark.parametrize("exponent", [-150, 150])
@pytest.mark.parametrize("init", ["anneal", "random"])
@pytest.mark.parametrize("lam", [4.0, float("inf")])
def test_huge_and_tiny_entries(exponent, init, lam):
    data = small(sizes=(30, 30))
    a = 10.0**exponent
    plain = MiCUSaL(2, 3, lam=lam, init=init, random_state=0).fit(data.X)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        scaled_lam = lam / a / a
        model = MiCUSaL(2, 3, lam=scaled_lam, init=init, random_state=0).fit(a * data.X)
        assert np.isfinite(model.objective_history_).all()
        distances = model.transform(a * data.X)
        labels = model.predict(a * data.X)
        back = model.reconstruct(a * data.X)
    assert np.array_equal(model.labels_, plain.labels_)
    assert np.array_equal(labels, plain.labels_)
    assert_allclose(distances / a, plain.transform(data.X), atol=1e-6)
    assert_allclose(back / a, plain.reconstruct(data.X), atol=1e-6)


@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("residual", ["plain", "loo"])
@pytest.mark.parametrize("init", ["anneal", "random"])
def test_one_chunk_equals_seven(solver, residual, init, monkeypatch):
    data = small(sizes=(35, 35))
    options = {"solver": solver, "residual": residual, "init": init, "random_state": 0}
    whole = MiCUSaL(2, 3, **options).fit(data.X)
    for module in (
        "base.arrays",
        "linear._solve.problem",
        "linear._solve.observation",
        "linear.linear_union",
    ):
        monkeypatch.setattr(f"polyspan.{module}.rows_at_once", lambda *a: 10)
    parts = MiCUSaL(2, 3, **options).fit(data.X)
    assert np.array_equal(parts.labels_, whole.labels_)
    assert_allclose(parts.objective_, whole.objective_, rtol=1e-10)
    assert_allclose(parts.bases_, whole.bases_, atol=1e-7)
    for method in ("transform", "reconstruct", "score_samples"):
        a, b = getattr(parts, method)(data.X), getattr(whole, method)(data.X)
        assert_allclose(a, b, atol=1e-7)


@pytest.mark.parametrize("init", ["anneal", "random"])
def test_same_bits_whatever_n_jobs(init, monkeypatch):
    # Groups of one start, so that there is something to run at once.
    monkeypatch.setattr("polyspan.linear.starts.GROUP_BYTES", 1)
    data = small()
    fits = [
        MiCUSaL(2, 3, init=init, n_init=5, random_state=7, n_jobs=n_jobs).fit(data.X)
        for n_jobs in (None, 1, 2, -1)
    ]
    for other in fits[1:]:
        assert np.array_equal(other.bases_, fits[0].bases_)
        assert np.array_equal(other.labels_, fits[0].labels_)
        assert other.objective_ == fits[0].objective_


def test_groups_of_starts_find_the_same_optimum(monkeypatch):
    data = small(spread=0.1)
    together = MiCUSaL(2, 3, init="random", n_init=6, random_state=0).fit(data.X)
    monkeypatch.setattr("polyspan.linear.starts.GROUP_BYTES", 1)
    alone = MiCUSaL(2, 3, init="random", n_init=6, random_state=0).fit(data.X)
    assert_allclose(alone.objective_, together.objective_, rtol=1e-9)
    assert np.array_equal(alone.labels_, together.labels_)


def test_more_starts_are_never_worse():
    data = small(spread=0.1)
    values = [
        MiCUSaL(2, 3, init="random", n_init=n, random_state=0).fit(data.X).objective_
        for n in (1, 4, 16)
    ]
    # Starts that end within 1e-9 of each other count as equal, and the first is kept.
    assert values[0] * (1 + 1e-9) >= values[1] >= values[2] * (1 - 1e-9)


def test_reconstruction_is_the_projection_and_denoises():
    data = small(noise=0.2)
    model = MiCUSaL(2, 3, random_state=0).fit(data.X)
    Z = data.X_test
    found, labels = model.reconstruct(Z), model.predict(Z)
    for z, row, label in zip(Z, found, labels, strict=True):
        D = model.bases_[label]
        assert_allclose(row, D @ (D.T @ (z - model.mean_)) + model.mean_, atol=1e-12)
    assert np.sum((found - data.X_test_clean) ** 2) < 0.5 * np.sum((Z - data.X_test_clean) ** 2)
    assert_allclose(model.reconstruct(found), found, atol=1e-8)


def test_distances_of_samples_in_a_subspace_are_exactly_small():
    data = small()
    model = MiCUSaL(2, 3, center=False, random_state=0).fit(data.X)
    inside = np.random.RandomState(0).standard_normal((5, 3)) @ model.bases_[1].T
    assert np.all(model.transform(inside)[:, 1] < 1e-14)
    assert model.score(inside) > -1e-28


def test_float32_is_close_to_float64():
    data = small()
    double = MiCUSaL(2, 3, init="anneal", random_state=0).fit(data.X)
    single = MiCUSaL(2, 3, init="anneal", random_state=0).fit(data.X.astype("float32"))
    assert np.array_equal(single.labels_, double.labels_)
    assert_allclose(single.objective_, double.objective_, rtol=1e-5)
    for a, b in zip(single.bases_, double.bases_, strict=True):
        assert subspace_distance(a.astype("float64"), b) < 1e-3


def test_a_large_offset_costs_no_labels(monkeypatch):
    for module in ("base.arrays", "linear._solve.problem", "linear._solve.observation"):
        monkeypatch.setattr(f"polyspan.{module}.rows_at_once", lambda *a: 16)
    data = small()
    plain = MiCUSaL(2, 3, random_state=0).fit(data.X)
    moved = MiCUSaL(2, 3, random_state=0).fit(data.X + 1e6)
    assert np.array_equal(moved.labels_, plain.labels_)


def test_leave_one_out_helps_where_clusters_are_small():
    """Twelve samples per cluster for six directions: there plain residuals say little."""
    plain, loo = [], []
    labels = np.repeat(np.arange(3), 12)
    for seed in range(5):
        rng = np.random.RandomState(seed)
        bases = draw_bases((3, 60, 6), rng)
        X = np.concatenate([rng.standard_normal((12, 6)) @ basis.T for basis in bases])
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X += rng.standard_normal(X.shape) * np.sqrt(0.1 / 60)
        for residual, errors in (("plain", plain), ("loo", loo)):
            model = MiCUSaL(
                3, 6, lam=float("inf"), residual=residual, random_state=0, n_init=10, center=False
            ).fit(X)
            errors.append(clustering_error(labels, model.labels_))
    assert np.mean(loo) < 0.02
    assert np.mean(plain) > 0.1
