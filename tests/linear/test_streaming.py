"""`partial_fit`: near the full fit without forgetting; with it, the model follows the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from polyspan import MiCUSaL, RobustMiCUSaL, load_model, save_model
from polyspan.baselines import KGROUSE, KSubspaces
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import closeness, draw_bases
from polyspan.linear._solve.alternation import Rules, alternate
from polyspan.linear._solve.memory import Memory, Past
from polyspan.linear._solve.observation import Observation
from polyspan.linear._solve.problem import batch_problem
from polyspan.linear._solve.shape import join
from polyspan.metrics import subspace_distance


def objective(model, X):
    """F1 of the bases on all samples."""
    return float(closeness(model.bases_[None])[0]) - model.lam_ * np.nansum(model.score_samples(X))


def stream(model, X, n_batches):
    for batch in np.array_split(X, n_batches):
        model.partial_fit(batch)
    return model


def shuffled(data, seed):
    return data.X[np.random.default_rng(seed).permutation(len(data.X))]


@pytest.mark.parametrize("seed", [0, 1])
def test_fifty_batches_of_the_papers_data(seed):
    """Ten times the paper's samples, so that a batch has 130."""
    data = make_union_of_subspaces((1500, 1000, 1500, 1000, 1500), random_state=seed)
    X = shuffled(data, seed)
    full = MiCUSaL(5, 13, random_state=seed).fit(X)
    model = stream(MiCUSaL(5, 13, random_state=seed), X, 50)
    assert model.n_samples_seen_ == len(X)
    assert objective(model, X) <= 1.03 * full.objective_
    # What it says of itself is the truth, but for early labels that have changed since.
    assert_allclose(model.objective_, objective(model, X), rtol=0.01)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_papers_own_samples_five_times_over(seed):
    """All 650 of them in ten batches, five times: fifty batches of 65."""
    X = shuffled(make_union_of_subspaces(random_state=seed), seed)
    full = MiCUSaL(5, 13, random_state=seed).fit(X)
    model = MiCUSaL(5, 13, random_state=seed)
    for _ in range(5):
        stream(model, X, 10)
    assert objective(model, X) <= 1.03 * full.objective_


def test_holes():
    data = make_union_of_subspaces((400, 400, 400), n_features=40, subspace_dim=3, random_state=0)
    X = mask_entries(shuffled(data, 0), 0.3, random_state=0)
    X[7] = np.nan
    with pytest.warns(UserWarning, match="rows have at most"):
        full = RobustMiCUSaL(3, 3, lam=4.0, center=True, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="rows have at most"):
        model = stream(RobustMiCUSaL(3, 3, lam=4.0, center=True, random_state=0), X, 20)
    assert objective(model, X) <= 1.03 * objective(full, X)
    assert_allclose(model.mean_, full.mean_, atol=1e-3)
    assert model.impute(X).shape == X.shape


def turning_batches(n_batches, degrees, rng):
    """Two planes in R^12, of which the first turns a little with each batch."""
    frame = draw_bases((12, 6), np.random.RandomState(0))
    still = frame[:, 4:]
    for k in range(n_batches):
        angle = np.radians(degrees * k)
        turning = np.cos(angle) * frame[:, :2] + np.sin(angle) * frame[:, 2:4]
        parts = [rng.standard_normal((60, 2)) @ basis.T for basis in (turning, still)]
        X = np.concatenate(parts) + 0.05 * rng.standard_normal((120, 12))
        yield X, turning


def test_a_turning_subspace_is_followed():
    distances = {}
    for factor in (0.7, 1.0):
        model = MiCUSaL(2, 2, lam=1.0, center=False, forget_factor=factor, random_state=0)
        batches = list(turning_batches(50, 1.5, np.random.default_rng(0)))
        for batch, _ in batches:
            model.partial_fit(batch)
        last = batches[-1][1]
        distances[factor] = min(float(subspace_distance(b, last)) for b in model.bases_)
    # 1.5° a batch, a memory of three batches: some 4° behind, of 75° that it turned.
    assert distances[0.7] < np.sqrt(2) * np.sin(np.radians(7))
    assert distances[1.0] > 3 * distances[0.7]


def test_a_moving_mean_is_followed():
    data = make_union_of_subspaces((600, 600), n_features=20, subspace_dim=2, random_state=0)
    X = shuffled(data, 0)
    model = MiCUSaL(2, 2, forget_factor=0.5, random_state=0)
    for k, batch in enumerate(np.array_split(X, 20)):
        model.partial_fit(batch + 0.1 * k)
    assert_allclose(model.mean_.mean(), 1.9, atol=0.2)
    late = MiCUSaL(2, 2, random_state=0).fit(X)
    order = [int(np.argmin([subspace_distance(a, b) for b in late.bases_])) for a in model.bases_]
    assert sorted(order) == [0, 1]


def test_nothing_forgotten_remembers_the_scatter_exactly():
    rng = np.random.default_rng(0)
    X, mean = rng.standard_normal((300, 8)) + 3, rng.standard_normal(8)
    labels = rng.integers(2, size=300)
    memory = Memory.empty(np.full(8, 2.0), 2, 1)
    for k in range(0, 300, 50):
        part = slice(k, k + 50)
        memory = memory.with_samples(X[part] - mean, np.ones(50), mean, labels[part])
    assert all(len(rows) <= 16 for rows in memory.factors)
    other = rng.standard_normal(8)  # about any point
    bases = draw_bases((2, 8, 1), np.random.RandomState(0))
    for p in range(2):
        own = X[labels == p] - other
        assert_allclose(Past(memory, other).products(bases)[p], own.T @ (own @ bases[p]), rtol=1e-9)
    assert_allclose(Past(memory, other).squares(), np.sum((X - other) ** 2), rtol=1e-9)
    faded = memory.faded(0.25)
    assert_allclose(
        Past(faded, other).products(bases), Past(memory, other).products(bases) / 4, rtol=1e-9
    )
    assert_allclose(Past(faded, other).squares(), Past(memory, other).squares() / 4, rtol=1e-9)


def filled_by_hand(y, basis, prior):
    """Return a sample filled with (1-ρ)Dθ, θ the least-squares fit with a prior on the rest."""
    seen = ~np.isnan(y)
    gram = basis[seen].T @ basis[seen] + prior * basis[~seen].T @ basis[~seen]
    theta = np.linalg.solve(gram, basis[seen].T @ y[seen])
    return np.where(seen, y, (1 - prior) * basis @ theta)


@pytest.mark.parametrize("prior", [0.02, 0.4])
def test_of_holes_the_filled_samples_are_remembered(prior):
    data = make_union_of_subspaces((60, 60), n_features=12, subspace_dim=2, random_state=0)
    X = mask_entries(shuffled(data, 0), 0.3, random_state=0)
    model = RobustMiCUSaL(2, 2, fill_prior=prior, random_state=0).partial_fit(X)
    memory = model._stream.memory
    assert memory.rank == 12  # all of the scatter
    filled = [
        filled_by_hand(y, model.bases_[p], prior) for y, p in zip(X, model.labels_, strict=True)
    ]
    weights = 12 / (~np.isnan(X)).sum(axis=1)
    Y = np.array(filled) * np.sqrt(weights)[:, None]
    products = Past(memory, np.zeros(12)).products(model.bases_)
    for p in range(2):
        own = Y[model.labels_ == p]
        assert_allclose(products[p], own.T @ (own @ model.bases_[p]), rtol=1e-7, atol=1e-9)
        assert_allclose(memory.counts[p], weights[model.labels_ == p].sum())
    assert_allclose(Past(memory, np.zeros(12)).squares(), np.sum(Y * Y), rtol=1e-9)


def test_a_scaled_memory_is_that_of_scaled_samples():
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((40, 6)), rng.integers(2, size=40)
    mean, other = rng.standard_normal(6), rng.standard_normal(6)
    bases = draw_bases((2, 6, 1), np.random.RandomState(0))
    one, four = (
        Memory.empty(by * np.ones(6), 2, 1).with_samples(by * X, np.ones(40), by * mean, labels)
        for by in (1.0, 4.0)
    )
    assert_allclose(Past(one.scaled(4.0), other).products(bases), Past(four, other).products(bases))
    assert_allclose(Past(one.scaled(4.0), other).squares(), Past(four, other).squares())


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_steps_on_a_batch_never_raise_the_objective(affine, fraction):
    data = make_union_of_subspaces((200, 200, 200), n_features=30, subspace_dim=2, random_state=0)
    X = mask_entries(shuffled(data, 0), fraction, random_state=0)
    mean = np.zeros(30)
    observation = Observation(
        np.dtype(float), mean, center_first=True, holes=fraction > 0, prior=0.02
    )
    bases = draw_bases((3, 30, 2), np.random.RandomState(0))
    frames = join(bases, 0.1 * bases[..., 0]) if affine else bases
    memory = Memory.empty(mean, 3, 2)
    for batch in np.array_split(X, 6):
        block = observation.block(batch)
        problem = batch_problem(block, 4.0, affine, Past(memory, mean))
        (found,) = alternate(problem, frames[None], Rules("power", 10, 0.0))
        assert len(found.history) > 2
        assert np.diff(found.history).max() <= 1e-9 * found.history[0]
        complete, weights = block.completed(*problem.shape.split(found.frames), found.labels)
        weights = np.ones(len(batch)) if weights is None else weights
        memory = memory.with_samples(complete.X, weights, mean, found.labels)
        frames = found.frames


def test_few_samples_are_kept_until_there_are_enough():
    X = make_union_of_subspaces((60, 60), n_features=12, subspace_dim=2, random_state=0).X
    X = X[np.random.default_rng(0).permutation(120)]
    model = MiCUSaL(2, 2, random_state=0).partial_fit(X[:3])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X[3:10])
    assert model.predict(X).shape == (120,)
    assert model.labels_.shape == (7,)
    model.partial_fit(X[10:40])
    one_fit = MiCUSaL(2, 2, random_state=0).fit(X[:40])
    assert_allclose(model.objective_, one_fit.objective_, rtol=1e-4)


def test_fit_ends_a_stream(tmp_path):
    X = make_union_of_subspaces((60, 60), n_features=12, subspace_dim=2, random_state=0).X
    model = stream(MiCUSaL(2, 2, random_state=0), X, 4)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops").partial_fit(X[:20])
    assert_allclose(again.bases_, model.partial_fit(X[:20]).bases_)
    model.fit(X)
    assert not hasattr(model, "n_samples_seen_")
    assert_allclose(model.bases_, MiCUSaL(2, 2, random_state=0).fit(X).bases_)
    assert model.partial_fit(X[:50]).n_samples_seen_ == 50


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MiCUSaL(2, 12), "subspace_dim=12 must be smaller"),
        (MiCUSaL(2, 2, forget_factor=0.0), "forget_factor"),
    ],
)
def test_clear_errors(model, message):
    with pytest.raises(ValueError, match=message):
        model.partial_fit(np.ones((50, 12)))


@pytest.mark.parametrize(
    ("model", "option"),
    [
        (MiCUSaL(2, 2, solver="exact"), "solver='exact'"),
        (MiCUSaL(2, 2, residual="loo"), "residual='loo'"),
        (RobustMiCUSaL(2, 2, solver="grouse"), "solver='grouse'"),
        (KGROUSE(2, 2), "solver='grouse'"),
    ],
)
def test_what_cannot_stream_has_no_partial_fit(model, option):
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        model.partial_fit(np.ones((50, 12)))
    assert f"{option} needs all samples in memory, not batches" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subspace_dim": (2, 3)}, "has 2 dimensions for n_subspaces=3"),
        ({"subspace_dim": (2, 3, -1)}, "sequence of ints that are 0 or more"),
        ({"solver": "none"}, "'solver' parameter of MiCUSaL"),
        ({"tol": "none"}, "'tol' parameter of MiCUSaL"),
        ({"anneal_range": (1, 2, 3)}, "must hold two numbers"),
    ],
)
def test_wrong_values_are_no_missing_method(options, message):
    model = MiCUSaL(3).set_params(**options)
    for method in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match=message):
            method(np.ones((50, 12)))


def test_other_columns_are_refused():
    X = np.random.default_rng(0).standard_normal((60, 12))
    model = KSubspaces(2, 2, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="11 features"):
        model.partial_fit(X[:, :11])


def test_float32_stays():
    X = np.random.default_rng(0).standard_normal((200, 12)).astype(np.float32)
    model = stream(MiCUSaL(2, 2, random_state=0), X, 4)
    assert model.bases_.dtype == np.float32
    assert model.mean_.dtype == np.float32
