"""Many problems at once: each result equals that of a single `MiCUSaL`, on any device."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import polyspan.linear._solve.batched as batched
import polyspan.linear._solve.batched_runs as batched_runs
from polyspan.base.arrays import to_numpy
from polyspan.batch import fit_micusal
from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.linear import MiCUSaL
from support import require_torch


def problems(n=5, sizes=(20, 25, 15), n_features=16, subspace_dim=3, noise=0.1):
    return np.stack(
        [
            make_union_of_subspaces(
                sizes, n_features=n_features, subspace_dim=subspace_dim, spread=0.1, noise=noise,
                random_state=seed,
            ).X
            for seed in range(n)
        ]
    )  # fmt: skip


def flats(n=4, sizes=(20, 25, 15), n_features=10, subspace_dim=2, apart=2.0, noise=0.1):
    """Return problems whose samples lie near subspaces that do not go through their mean."""
    return np.stack(
        [
            x + np.repeat(apart * rng.standard_normal((len(sizes), n_features)), sizes, axis=0)
            for x, rng in zip(
                problems(n, sizes, n_features, subspace_dim, noise),
                map(np.random.RandomState, range(n)),
                strict=True,
            )
        ]
    )


def assert_all_on(device, fit):
    for name in fit.__dataclass_fields__:
        if name != "anchors" or fit.anchors is not None:
            assert getattr(fit, name).device == device


def assert_equals_single(fit, X, *args, **options):
    """Compare with one fit per problem; bases by their spans."""
    for k, x in enumerate(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            single = MiCUSaL(*args, **{"lam": 4.0, "init": "anneal", **options}).fit(x)
        # Closeness is a difference of numbers of the size L(L-1)s: it has their rounding.
        assert_allclose(float(fit.objective[k]), single.objective_, rtol=1e-9, atol=1e-13)
        assert np.array_equal(to_numpy(fit.labels)[k], single.labels_)
        assert int(fit.n_iter[k]) == single.n_iter_
        assert bool(fit.converged[k]) == single.converged_
        assert_allclose(to_numpy(fit.means)[k], single.mean_, atol=1e-12)
        for found, expected in zip(to_numpy(fit.bases)[k], single.bases_, strict=True):
            assert subspace_distance(found, expected) < 1e-6
        if single.affine:
            assert_allclose(to_numpy(fit.anchors)[k], single.anchors_, atol=1e-9)
        else:
            assert fit.anchors is None
    assert not fit.bases.shape[3] or is_orthonormal(fit.bases, 1e-10)


@pytest.mark.parametrize("init", ["random", "anneal"])
@pytest.mark.parametrize("lam", [0.5, 20.0, float("inf")])
@pytest.mark.parametrize("max_bytes", [None, 40_000])
def test_equals_single_fits(init, lam, max_bytes):
    X = problems()
    options = {"init": init, "lam": lam, "random_state": 3}
    fit = fit_micusal(X, 3, 3, **options, max_bytes=max_bytes)
    assert_equals_single(fit, X, 3, 3, **options)


@pytest.mark.parametrize("init", ["random", "anneal"])
def test_fewer_samples_than_features(init):
    X = problems(sizes=(9, 9, 9), n_features=60)
    options = {"init": init, "random_state": 0, "lam": 50.0}
    assert_equals_single(fit_micusal(X, 3, 2, **options), X, 3, 2, **options)


def test_every_namespace(xp):
    X = problems(n=4)
    for init in ("random", "anneal"):
        fit = fit_micusal(xp.asarray(X), 3, 3, init=init, random_state=1)
        assert type(fit.bases) is type(fit.objective) is type(xp.asarray(X))
        assert_equals_single(fit, X, 3, 3, init=init, random_state=1)


def test_on_a_device_that_is_not_the_cpu(accelerator):
    X = problems(n=4)
    fit = fit_micusal(accelerator.asarray(X), 3, 3, init="random", n_init=3, random_state=1)
    assert_all_on(accelerator.device, fit)
    assert fit.anchors is None
    assert_equals_single(fit, X, 3, 3, init="random", n_init=3, random_state=1)


def test_torch_equals_numpy_in_single_precision():
    torch = require_torch()
    X = problems().astype("float32")
    fit, other = (fit_micusal(A, 3, 3, random_state=0) for A in (X, torch.asarray(X)))
    assert fit.bases.dtype == np.float32
    assert other.bases.dtype == torch.float32
    assert fit.objective.dtype == np.float64
    assert_allclose(to_numpy(other.objective), fit.objective, rtol=1e-5)


@pytest.mark.parametrize("apart", [0.0, 0.9])
@pytest.mark.parametrize("idle", [1e-3, 0.9])
def test_runs_of_very_different_length(idle, apart, accelerator, monkeypatch):
    # Whether idle places are given up early or late, with their problem or on their own, on a
    # CPU or elsewhere, changes nothing.
    X = np.concatenate([problems(3, noise=1e-6), problems(4, noise=0.5)])
    monkeypatch.setattr(batched_runs, "IDLE_FRACTION_APART", apart)
    monkeypatch.setattr(batched_runs, "IDLE_FRACTION", idle)
    options = {"init": "random", "random_state": 5, "tol": 1e-8, "n_init": 5}
    for data in (X, accelerator.asarray(X)):
        fit = fit_micusal(data, 3, 3, **options)
        n_iter = to_numpy(fit.n_iter)
        assert n_iter.max() > 1.5 * n_iter.min()
        assert_equals_single(fit, X, 3, 3, **options)


def test_members_gathered_or_masked(monkeypatch):
    X = problems()
    masked = fit_micusal(X, 3, 3, init="random", random_state=0)
    monkeypatch.setattr(batched, "GATHERED_FROM", 0)
    gathered = fit_micusal(X, 3, 3, init="random", random_state=0)
    assert_allclose(gathered.objective, masked.objective, rtol=1e-12)


def test_one_problem_one_subspace_no_centring():
    X = problems(1)
    for args, options in [((3, 3), {}), ((1, 2), {}), ((2, 1), {"center": False})]:
        fit = fit_micusal(X, *args, random_state=0, **options)
        assert_equals_single(fit, X, *args, random_state=0, **options)
    assert not fit.means.any()


def test_integers_are_taken_as_numbers():
    X = np.random.RandomState(0).randint(-9, 9, size=(3, 40, 6))
    assert_equals_single(fit_micusal(X, 2, 2, random_state=0), X, 2, 2, random_state=0)


def test_given_starts():
    X = problems()
    shared = draw_bases((3, 16, 3), np.random.RandomState(1))
    fit = fit_micusal(X, 3, 3, init=shared)
    assert_equals_single(fit, X, 3, 3, init=shared)
    own = draw_bases((5, 3, 16, 3), np.random.RandomState(2))
    fit = fit_micusal(X, 3, 3, init=own)
    for k in range(5):
        single = MiCUSaL(3, 3, lam=4.0, init=own[k]).fit(X[k])
        assert_allclose(fit.objective[k], single.objective_, rtol=1e-9)
    few = problems(sizes=(6, 6), n_features=40)
    start = draw_bases((2, 40, 2), np.random.RandomState(3))
    assert_equals_single(fit_micusal(few, 2, 2, init=start), few, 2, 2, init=start)


def test_a_seed_for_every_problem():
    X = problems(4)
    seeds = [3, 1, 4, 1]
    fit = fit_micusal(X, 3, 3, init="random", n_init=2, random_state=seeds, max_bytes=1)
    for k, seed in enumerate(seeds):
        single = MiCUSaL(3, 3, lam=4.0, init="random", n_init=2, random_state=seed).fit(X[k])
        assert_allclose(fit.objective[k], single.objective_, rtol=1e-9)
    with pytest.raises(ValueError, match="2 seeds for 4 problems"):
        fit_micusal(X, 3, 3, random_state=[1, 2])


def test_empty_subspaces_are_refilled_and_reported():
    rng = np.random.RandomState(0)
    X = np.zeros((2, 60, 8))
    X[:, :20, :2], X[:, 20:40, 2:4], X[:, 40:, 4:6] = rng.standard_normal((3, 2, 20, 2))
    start = np.stack([np.eye(8)[:, :2], np.eye(8)[:, 2:4], np.eye(8)[:, 6:8]])
    options = {"init": start, "lam": float("inf"), "center": False}
    assert_equals_single(fit_micusal(X, 3, 2, **options), X, 3, 2, **options)
    with pytest.warns(UserWarning, match="of 2 problems have subspaces without samples"):
        fit_micusal(X[:, :20], 3, 2, **options)


def test_a_small_weight_goes_on_from_the_pooled_subspace():
    options = {"lam": 1e-3, "init": "random", "random_state": 0}
    assert_equals_single(
        fit_micusal(problems() * 1e-3, 3, 3, **options), problems() * 1e-3, 3, 3, **options
    )
    X = problems(sizes=(60, 60, 60), n_features=20, subspace_dim=2)
    options = {"lam": 1e-3, "init": "random", "random_state": 3, "n_init": 4}
    assert_equals_single(fit_micusal(X, 5, 2, **options), X, 5, 2, **options)


@pytest.mark.parametrize("init", ["random", "anneal"])
@pytest.mark.parametrize("lam", [0.5, 20.0, float("inf")])
@pytest.mark.parametrize("subspace_dim", [0, 2])
def test_affine_equals_single_fits(init, lam, subspace_dim):
    X = flats()
    options = {"init": init, "lam": lam, "random_state": 3, "affine": True, "n_init": 3}
    fit = fit_micusal(X, 3, subspace_dim, **options, max_bytes=30_000)
    assert_equals_single(fit, X, 3, subspace_dim, **options)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_affine_problems_of_any_scale(scale):
    X = scale * flats()
    options = {"init": "anneal", "lam": 2.0 / scale**2, "random_state": 3, "affine": True}
    assert_equals_single(fit_micusal(X, 3, 2, **options), X, 3, 2, **options)


def test_affine_in_every_namespace(xp):
    X = flats(3)
    for s in (0, 2):
        options = {"affine": True, "n_init": 2, "random_state": 1}
        fit = fit_micusal(xp.asarray(X), 3, s, **options)
        assert type(fit.anchors) is type(fit.objective) is type(xp.asarray(X))
        assert_equals_single(fit, X, 3, s, **options)


def test_affine_on_a_device_that_is_not_the_cpu(accelerator):
    X = flats(3)
    options = {"affine": True, "init": "random", "n_init": 3, "random_state": 1}
    fit = fit_micusal(accelerator.asarray(X), 3, 2, **options)
    assert fit.anchors is not None
    assert_all_on(accelerator.device, fit)
    assert_equals_single(fit, X, 3, 2, **options)


def test_affine_in_single_precision(xp):
    X = flats(3).astype("float32")
    options = {"affine": True, "random_state": 0, "n_init": 2}
    fit = fit_micusal(xp.asarray(X), 3, 2, **options)
    assert fit.anchors.dtype == fit.bases.dtype == xp.float32
    single = [
        MiCUSaL(3, 2, **{"lam": 4.0, "init": "anneal", **options}).fit(x).objective_ for x in X
    ]
    assert_allclose(to_numpy(fit.objective), single, rtol=1e-5)


def test_affine_objective_is_that_of_the_parts():
    X, lam = flats(2), 4.0
    fit = fit_micusal(X, 3, 2, lam=lam, affine=True, random_state=0)
    for k, x in enumerate(X):
        across = [np.eye(10) - basis @ basis.T for basis in fit.bases[k]]
        feet = [Q @ (c - x.mean(0)) for Q, c in zip(across, fit.anchors[k], strict=True)]
        unit = np.mean(np.sum((x - x.mean(0)) ** 2, axis=1))
        value = sum(
            subspace_distance(fit.bases[k, p], fit.bases[k, q]) ** 2
            + np.sum((feet[p] - feet[q]) ** 2) / unit
            for p in range(3)
            for q in range(3)
        )
        for y, p in zip(x, fit.labels[k], strict=True):
            value += lam * np.sum((across[p] @ (y - fit.anchors[k, p])) ** 2)
        assert_allclose(fit.objective[k], value, rtol=1e-9)


@pytest.mark.parametrize("max_bytes", [None, 1])
def test_affine_with_a_seed_for_every_problem(max_bytes):
    X = flats()
    seeds = [3, 1, 4, 1]
    options = {"affine": True, "init": "random", "n_init": 2}
    fit = fit_micusal(X, 3, 2, **options, random_state=seeds, max_bytes=max_bytes)
    for k, seed in enumerate(seeds):
        single = MiCUSaL(3, 2, **{"lam": 4.0, "init": "anneal", **options}, random_state=seed).fit(
            X[k]
        )
        assert_allclose(fit.objective[k], single.objective_, rtol=1e-9)


def test_affine_with_given_starts():
    X = flats()
    rng = np.random.RandomState(1)
    shared = np.concatenate([draw_bases((3, 10, 2), rng), X[0, [0, 25, 50], :, None]], axis=-1)
    options = {"affine": True, "init": shared}
    assert_equals_single(fit_micusal(X, 3, 2, **options), X, 3, 2, **options)
    own = np.concatenate([draw_bases((4, 3, 10, 2), rng), X[:, [0, 25, 50], :, None]], axis=-1)
    fit = fit_micusal(X, 3, 2, affine=True, init=own)
    for k in range(4):
        single = MiCUSaL(3, 2, affine=True, lam=4.0, init=own[k]).fit(X[k])
        assert_allclose(fit.objective[k], single.objective_, rtol=1e-9)
    few, points = flats(sizes=(7, 7), n_features=40), 2 + rng.standard_normal((2, 40, 1))
    start = np.concatenate([draw_bases((2, 40, 2), rng), points], axis=-1)
    options = {"affine": True, "init": start, "lam": 0.1}
    assert_equals_single(fit_micusal(few, 2, 2, **options), few, 2, 2, **options)
    with pytest.raises(ValueError, match=r"subspace_dim \+ 1\) is \(4, 3, 10, 3\)"):
        fit_micusal(X, 3, 2, affine=True, init=own[..., :2])


def test_affine_with_fewer_samples_than_features():
    X = flats(sizes=(9, 9, 9), n_features=40)
    options = {"affine": True, "n_init": 2, "random_state": 0, "lam": 50.0}
    assert_equals_single(fit_micusal(X, 3, 2, **options), X, 3, 2, **options)


def test_affine_subspaces_that_are_empty_are_refilled():
    X = flats(2, n_features=8, apart=5.0)
    far = 1e3 * np.ones((1, 8))
    start = np.concatenate([X[0, [0, 25]], far])[..., None]
    options = {"affine": True, "lam": float("inf"), "init": start}
    fit = fit_micusal(X, 3, 0, **options)
    assert all(len(np.unique(labels)) == 3 for labels in fit.labels)
    assert_equals_single(fit, X, 3, 0, **options)


def test_affine_goes_on_from_the_pooled_subspace():
    X = flats(3, sizes=(60, 60, 60), apart=0.0)
    options = {"affine": True, "lam": 1e-3, "init": "random", "random_state": 3, "n_init": 2}
    assert_equals_single(fit_micusal(X, 5, 2, **options), X, 5, 2, **options)


def test_affine_members_gathered_or_masked(monkeypatch):
    X = flats()
    masked = fit_micusal(X, 3, 2, affine=True, random_state=0)
    monkeypatch.setattr(batched, "GATHERED_FROM", 0)
    gathered = fit_micusal(X, 3, 2, affine=True, random_state=0)
    assert_allclose(gathered.objective, masked.objective, rtol=1e-12)


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0)])
def test_every_call_draws_anew(seed):
    first, second = (
        fit_micusal(problems(3, noise=0.5), 3, 3, init="random", n_init=1, max_bytes=1,
                    random_state=seed).bases
        for _ in range(2)
    )  # fmt: skip
    assert not np.allclose(first, second)


def test_directions_of_little_variance_are_not_taken_for_none():
    spread = np.array([1, 0.005, 0.004, 0.003], dtype=np.float32)
    X = np.random.RandomState(0).standard_normal((1, 60000, 4)).astype(np.float32) * spread
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fit = fit_micusal(X, 1, 2, random_state=0)
    assert fit.converged.all()


def test_runs_end_at_the_rounding_of_their_own_problem():
    # Exact data on very different scales: what is rounding for one problem is not for another.
    X = problems(3, noise=0.0) * np.array([1e6, 1.0, 1e-6])[:, None, None]
    options = {"init": "random", "n_init": 2, "center": False, "lam": float("inf"), "tol": 0.0,
               "random_state": 0}  # fmt: skip
    fit = fit_micusal(X, 3, 3, **options)
    for k, x in enumerate(X):
        single = MiCUSaL(3, 3, **{"lam": 4.0, "init": "anneal", **options}).fit(x)
        assert int(fit.n_iter[k]) == single.n_iter_


def test_warnings():
    X = problems()
    with pytest.warns(ConvergenceWarning, match="5 of 5 problems did not converge"):
        fit = fit_micusal(X, 3, 3, init="random", lam=20.0, max_iter=3, random_state=0)
    assert fit.n_iter.tolist() == [3] * 5
    flat = np.random.RandomState(0).standard_normal((2, 30, 1)) @ np.ones((2, 1, 6))
    with pytest.warns(UserWarning, match="2 of 2 problems span fewer directions"):
        fit_micusal(flat, 2, 2, random_state=0)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda X: X[0], {}, r"shape \(60, 16\).*n_problems, n_samples, n_features"),
        (lambda X: X[:0], {}, "none of them 0"),
        (lambda X: np.where(X[1, 2, 3] == X, np.nan, X), {}, "1 of 5 problems .the first is 1"),
        (lambda X: X * 1e200, {}, "scale X"),
        (lambda X: X, {"solver": "exact"}, "power steps"),
        (lambda X: X, {"subspace_dim": 16}, "smaller than n_features"),
        (lambda X: X[:, :5], {}, "fewer than n_subspaces"),
        (lambda X: X, {"tol": -1}, "tol"),
        (lambda X: X, {"affine": "yes"}, "affine"),
        (lambda X: X, {"subspace_dim": 0}, "affine=True"),
        (lambda X: X[:, :10], {"affine": True}, r"\(subspace_dim \+ 1\)"),
        (lambda X: X, {"init": np.zeros((2, 3, 16, 3))}, r"\(5, 3, 16, 3\)"),
        (lambda X: X, {"init": np.zeros((3, 15, 3))}, r"\(3, 16, 3\)"),
        (lambda X: X, {"anneal_range": (0.1, 0.2)}, "anneal_range"),
    ],
)
def test_bad_input(change, options, message):
    with pytest.raises(ValueError, match=message):
        fit_micusal(change(problems()), **{"n_subspaces": 3, "subspace_dim": 3, **options})
