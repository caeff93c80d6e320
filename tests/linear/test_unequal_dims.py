"""Subspaces of different dimension in the linear models."""

import dask.array as da
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.base.arrays import to_numpy
from polyspan.baselines import KGROUSE, KSubspaces
from polyspan.batch import fit_micusal
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance, zero_padded
from polyspan.linear._solve.alternation import Rules, alternate, refill_empty
from polyspan.linear._solve.annealing import (
    anneal,
    annealed_starts,
    levels,
    member_sums_block,
    temperatures,
    units_of_levels,
)
from polyspan.linear._solve.observation import CompleteBlock
from polyspan.linear._solve.problem import prepare
from polyspan.linear._solve.shape import Linear, join
from polyspan.metrics import average_subspace_distance
from polyspan.storage.models import load_model, save_model

DIMS = (1, 4, 2)
SMALL = make_union_of_subspaces(
    (30, 40, 35), n_features=12, subspace_dim=DIMS, spread=0.3, noise=0.03, random_state=0
)
CLEAR = make_union_of_subspaces(
    (25, 30), n_features=8, subspace_dim=(3, 1), spread=0.5, noise=0.01, random_state=2
).X
HOLES = mask_entries(SMALL.X, 0.15, random_state=0)
INFINITE = float("inf")
# Twins need the same steps, not the optimum.
QUICK = {"n_init": 1, "anneal_steps": 10, "random_state": 0}


def each_basis(bases, dims):
    return [bases[p][:, :s] for p, s in enumerate(dims)]


def check_bases(bases, dims):
    """Own columns are orthonormal, those beyond exactly zero."""
    for p, s in enumerate(dims):
        assert is_orthonormal(bases[p][:, :s], 1e-10) if s else True
        assert np.all(bases[p][:, s:] == 0)


def projectors(bases):
    return bases @ bases.swapaxes(-1, -2)


def objective(model, X, lam):
    """Return F1 from projectors."""
    P, Y = projectors(model.bases_), X - model.mean_
    near = sum(((a - b) ** 2).sum() / 2 for a in P for b in P)
    residual = sum(((y - P[k] @ y) ** 2).sum() for y, k in zip(Y, model.labels_, strict=True))
    return residual if np.isinf(lam) else near + lam * residual


@pytest.mark.parametrize("spread", [0.2, 0.1])
@pytest.mark.parametrize("order", [(3, 6, 12), (6, 12, 3)])
def test_every_label_and_dimension_is_found(order, spread):
    data = make_union_of_subspaces((150,) * 3, subspace_dim=order, spread=spread, random_state=3)
    model = MiCUSaL(3, (3, 6, 12), random_state=3).fit(data.X)
    found = np.array([3, 6, 12])[model.labels_]
    assert_array_equal(found, np.array(order)[data.labels])
    assert_array_equal(model.subspace_dims_, [3, 6, 12])
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * model.objective_)
    assert average_subspace_distance(model.bases_, data.bases) < 0.4
    assert_array_equal(model.predict(data.X_test), model.labels_)  # the same order of labels


def test_labels_with_missing_entries_and_unequal_sizes():
    data = make_union_of_subspaces((60, 120, 240), subspace_dim=(3, 6, 12), spread=0.2,
                                   random_state=4)  # fmt: skip
    X = mask_entries(data.X, 0.2, random_state=4)
    model = RobustMiCUSaL(3, (3, 6, 12), n_init=1, random_state=4).fit(X)
    assert_array_equal(model.labels_, data.labels)


MODELS = [
    MiCUSaL(3, 2, random_state=0),
    MiCUSaL(3, 2, lam=1e-6, random_state=0),
    MiCUSaL(3, 2, init="random", solver="exact", n_init=2, random_state=0),
    MiCUSaL(3, 2, affine=True, n_init=2, random_state=0),
    MiCUSaL(3, 2, residual="loo", random_state=0),
    KSubspaces(3, 2, random_state=0),
    RobustMiCUSaL(3, 2, random_state=0),
    RobustMiCUSaL(3, 2, affine=True, solver="exact", n_init=2, random_state=0),
    RobustMiCUSaL(3, 2, solver="grouse", n_sweeps=2, max_iter=2, random_state=0),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_equal_dimensions_give_the_bits_of_one_number(model):
    X = HOLES if isinstance(model, RobustMiCUSaL) else SMALL.X
    expected = clone(model).fit(X)
    found = clone(model).set_params(subspace_dim=np.array([2, 2, 2])).fit(X)
    for name in ("bases_", "labels_", "objective_history_", "anneal_history_", "mean_"):
        assert_array_equal(getattr(found, name), getattr(expected, name), strict=True)


OPTIONS = [
    {},
    {"lam": INFINITE},
    {"lam": 1e-3},
    {"init": "random"},
    {"solver": "exact", "init": "random"},
    {"affine": True, "n_init": 2},
    {"affine": True, "solver": "exact", "init": "random"},
    {"residual": "loo", "lam": INFINITE},
    {"center": False},
]


@pytest.mark.filterwarnings("ignore:all 3 subspaces", "ignore:no sample is assigned")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_padding_stays_zero_and_the_objective_never_rises(options, holes):
    kind, X = (RobustMiCUSaL, HOLES) if holes else (MiCUSaL, SMALL.X)
    model = kind(3, DIMS, random_state=0, **{"n_init": 1, **options}).fit(X)
    check_bases(model.bases_, DIMS)
    assert model.bases_.shape == (3, 12, 4)
    assert_array_equal(model.subspace_dims_, DIMS)
    if "residual" not in options:
        history = model.objective_history_
        assert np.all(np.diff(history) <= 1e-9 * np.abs(history[:-1]))
    if not holes and "affine" not in options:
        expected = objective(model, X, model.lam_)
        assert_allclose(model.objective_, expected, rtol=1e-9)


@pytest.mark.parametrize("X", [SMALL.X, SMALL.X[::12], HOLES], ids=["rows", "span", "holes"])
@pytest.mark.parametrize("affine", [False, True])
def test_annealing_with_own_dimensions_lowers_the_free_energy(X, affine):
    problem, _ = prepare(X, 4.0, center=True, affine=affine, holes=bool(np.isnan(X).any()))
    problem, m = problem.with_dims(DIMS), problem.rows.like.shape[1]
    rng = np.random.RandomState(0)
    frames = zero_padded(draw_bases((2, 3, m, 4), rng), DIMS)
    frames = join(frames, rng.standard_normal((2, 3, m)) / 9) if affine else frames
    schedule = temperatures(0.05, 1.0, 1.0, 30)
    frames, free = anneal(problem, frames, schedule)
    assert np.all(np.diff(free, axis=0) <= 1e-9 * np.abs(free[:-1]))
    for bases in problem.shape.split(frames)[0]:
        check_bases(bases, DIMS)


def test_points_and_subspaces_together():
    """Dimensions (0, 1): samples about a point, and samples along a line."""
    rng = np.random.RandomState(0)
    blob = 5 + 0.1 * rng.standard_normal((40, 3))
    line = rng.uniform(-3, 3, (60, 1)) * np.array([1.0, 0, 0]) + 0.1 * rng.standard_normal((60, 3))
    X = np.concatenate([line, blob])
    for options in ({}, {"solver": "exact"}, {"lam": INFINITE}):
        model = MiCUSaL(2, (0, 1), affine=True, random_state=0, **options).fit(X)
        assert_array_equal(model.labels_, np.repeat([1, 0], [60, 40]))
        assert_array_equal(model.subspace_dims_, [0, 1])
    assert_allclose(model.anchors_[0], blob.mean(axis=0))
    with pytest.raises(ValueError, match=r"the 0 in subspace_dim=\(0, 1\) is a point"):
        MiCUSaL(2, (0, 1)).fit(X)


def test_one_exact_step_by_hand():
    """With λ=∞ and fixed labels a basis holds the leading directions, as many as its own."""
    X = np.concatenate([np.diag([5.0, 4, 3, 0, 0]), np.diag([0, 0, 0, 2.0, 1])])
    init = zero_padded(np.stack([np.eye(5)[:, :3], np.eye(5)[:, [3, 4, 0]]]), (3, 1))
    model = MiCUSaL(2, (3, 1), lam=INFINITE, center=False, solver="exact", init=init).fit(X)
    assert_allclose(model.objective_, 1.0)  # the sample (0, 0, 0, 0, 1) has no direction left
    assert_allclose(np.abs(model.bases_[1]), np.eye(5)[:, [3]] * [1, 0, 0], atol=1e-12)


def test_an_empty_subspace_is_refilled_with_its_own_dimension():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 8)) * np.array([3, 3, 2, 2, 1, 1, 0.1, 0])
    problem, _ = prepare(X, INFINITE, center=False)
    problem = problem.with_dims((3, 1))
    # The last feature is zero: no sample is nearest to the second subspace.
    frames = zero_padded(np.stack([np.eye(8)[:, :3], np.eye(8)[:, [7, 6, 5]]]), (3, 1))
    (found,) = alternate(problem, frames[None], Rules())
    assert found.counts[1] == 0
    refilled = refill_empty(problem, found, Rules())
    assert refilled.objective < found.objective
    check_bases(refilled.frames, (3, 1))


@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("torch", {}),
        ("strict", {}),
        ("accelerator", {}),
        ("accelerator", {"solver": "exact", "init": "random"}),
        ("accelerator", {"affine": True}),
    ],
    indirect=["place"],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:no sample is assigned", "ignore:the alternation did not")
def test_other_namespaces_equal_numpy(place, options):
    for kind, X in ((MiCUSaL, CLEAR), (RobustMiCUSaL, mask_entries(CLEAR, 0.1, random_state=0))):
        model = kind(2, (1, 3), **QUICK, **options)
        expected = clone(model).fit(X)
        with sklearn.config_context(array_api_dispatch=True):
            found = clone(model).fit(place.asarray(X))
            assert_array_equal(to_numpy(found.labels_), expected.labels_)
            assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
        check_bases(to_numpy(found.bases_), (1, 3))


@pytest.mark.parametrize("options", [{}, {"solver": "exact"}, {"affine": True}], ids=str)
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.filterwarnings("ignore:no sample is assigned", "ignore:the alternation did not")
def test_dask_equals_numpy(options, holes):
    kind, X = (
        (RobustMiCUSaL, mask_entries(CLEAR, 0.1, random_state=0)) if holes else (MiCUSaL, CLEAR)
    )
    model = kind(2, (1, 3), **QUICK, **options)
    expected = clone(model).fit(X)
    found = clone(model).fit(da.from_array(X, chunks=(20, 8)))
    assert_array_equal(np.asarray(found.labels_), expected.labels_)
    assert_allclose(found.objective_, expected.objective_, rtol=1e-10)
    assert_allclose(projectors(found.bases_), projectors(expected.bases_), atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"lam": INFINITE}, {"lam": 1e-6}, {"affine": True},
                                     {"init": "random", "n_init": 3}], ids=str)  # fmt: skip
@pytest.mark.filterwarnings("ignore:all 2 subspaces", "ignore:.*without samples",
                            "ignore:no sample is assigned")  # fmt: skip
def test_batches_equal_single_fits(options):
    X = np.stack([CLEAR, 1.5 * CLEAR[::-1]])
    fit = fit_micusal(X, 2, (1, 3), random_state=0, **options)
    for k, samples in enumerate(X):
        options = {"lam": 4.0, "init": "anneal", **options}
        model = MiCUSaL(2, (1, 3), random_state=0, **options).fit(samples)
        check_bases(fit.bases[k], (1, 3))
        assert_allclose(fit.objective[k], model.objective_, rtol=1e-6)
        assert_array_equal(fit.labels[k], model.labels_)


def test_a_batch_on_an_accelerator(accelerator):
    X = np.stack([SMALL.X, 1.5 * SMALL.X[::-1]])
    expected = fit_micusal(X, 3, DIMS, init="random", random_state=0)
    found = fit_micusal(accelerator.asarray(X), 3, DIMS, init="random", random_state=0)
    assert_allclose(to_numpy(found.objective), expected.objective, rtol=1e-9)
    for bases in to_numpy(found.bases):
        check_bases(bases, DIMS)


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.parametrize("affine", [False, True])
def test_streams(holes, affine):
    data = make_union_of_subspaces((300, 300, 300), n_features=12, subspace_dim=DIMS, spread=0.3,
                                   noise=0.02, random_state=1)  # fmt: skip
    order = np.random.RandomState(0).permutation(900)
    X = mask_entries(data.X, 0.1, random_state=0) if holes else data.X
    model = (RobustMiCUSaL if holes else MiCUSaL)(3, DIMS, affine=affine, random_state=0)
    for batch in np.split(X[order], 9):
        model.partial_fit(batch)
        check_bases(model.bases_, DIMS)
    history = model.objective_history_
    assert np.all(np.diff(history) <= 1e-9 * history[0])
    assert np.mean(model.predict(X) == data.labels) > 0.95
    with pytest.raises(ValueError, match=r"subspace_dim=\(4, 1, 2\) was set within a stream"):
        model.set_params(subspace_dim=(4, 1, 2)).partial_fit(X[:50])
    same = clone(model).set_params(subspace_dim=(2, 2, 2)).partial_fit(X[order][:100])
    same.set_params(subspace_dim=2).partial_fit(X[order][100:200])


def test_a_start_has_zeros_beyond_every_dimension():
    truth = SMALL.bases
    model = MiCUSaL(3, DIMS, init=truth).fit(SMALL.X)
    assert np.mean(model.labels_ == SMALL.labels) > 0.97
    with pytest.raises(ValueError, match=r"beyond the first 1 columns of subspace 0.*\(1, 4, 2\)"):
        MiCUSaL(3, DIMS, init=truth[[1, 0, 2]]).fit(SMALL.X)
    message = r"\(3, 12, 3\), but \(n_subspaces, n_features, max\(subspace_dim\)\) is \(3, 12, 4\)"
    with pytest.raises(ValueError, match=message):
        MiCUSaL(3, DIMS, init=truth[..., :3]).fit(SMALL.X)
    with pytest.warns(UserWarning, match="not orthonormal"):
        scaled = MiCUSaL(3, DIMS, init=2 * truth).fit(SMALL.X)
    assert_allclose(scaled.objective_history_, model.objective_history_)
    few = SMALL.X[::12]  # fewer samples than features: worked on in their span
    check_bases(MiCUSaL(3, DIMS, init=truth).fit(few).bases_, DIMS)
    frames = np.concatenate([truth, SMALL.X[[0, 40, 80], :, None]], axis=-1)
    check_bases(MiCUSaL(3, DIMS, init=frames, affine=True).fit(SMALL.X).bases_, DIMS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subspace_dim": (1, 2)}, r"has 2 dimensions for n_subspaces=3: give one for each"),
        ({"subspace_dim": (1, 2, -1)}, r"sequence of ints that are 0 or more"),
        ({"subspace_dim": (1, 2, 1.5)}, r"sequence of ints that are 0 or more"),
        ({"subspace_dim": (1, 2, True), "n_init": 1, "max_iter": 1}, None),
        ({"subspace_dim": "3"}, r"subspace_dim"),
        ({"subspace_dim": (1, 12, 2)},
         r"subspace_dim=\(1, 12, 2\) holds 12, which must be smaller than n_features=12"),
        ({"subspace_dim": (12, 12, 12)}, r"subspace_dim=12 must be smaller than n_features=12"),
        ({"n_subspaces": 11, "subspace_dim": (*range(1, 11), 10)}, None),
        ({"n_subspaces": 12, "subspace_dim": (9,) * 11 + (10,)},
         r"n_samples=105 is fewer than the sum of subspace_dim over .* = 109"),
        ({"solver": "grouse", "subspace_dim": DIMS},
         r"solver='grouse' needs one subspace_dim for all subspaces, found \(1, 4, 2\)"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_errors_name_what_was_found(options, message):
    model = RobustMiCUSaL(3, n_init=1, anneal_steps=2, max_iter=2, random_state=0)
    model.set_params(**options)
    if message is None:
        model.fit(SMALL.X)
        return
    with pytest.raises(ValueError, match=message):
        model.fit(SMALL.X)


def test_models_of_one_dimension_say_so():
    with pytest.raises(ValueError, match="'subspace_dim' parameter of KGROUSE must be an int"):
        KGROUSE(3, DIMS).fit(SMALL.X)


@pytest.mark.filterwarnings("ignore:no sample is assigned")
def test_subspaces_that_contain_each_other_are_named():
    with pytest.warns(UserWarning, match="all 3 subspaces contain each other"):
        model = MiCUSaL(3, DIMS, lam=1e-6, random_state=0).fit(SMALL.X)
    least = sum(abs(a - b) for a in DIMS for b in DIMS) / 2
    assert_allclose(model.objective_, least, atol=1e-3)


def test_predictions_ignore_the_padding(tmp_path):
    model = RobustMiCUSaL(3, DIMS, random_state=0).fit(HOLES)
    distances = model.transform(SMALL.X)
    for p, basis in enumerate(each_basis(model.bases_, DIMS)):
        residual = SMALL.X - SMALL.X @ basis @ basis.T
        assert_allclose(distances[:, p], np.linalg.norm(residual, axis=1), atol=1e-12)
    assert_allclose(model.subspace_distances_[0, 1],
                    subspace_distance(*each_basis(model.bases_, DIMS)[:2]))  # fmt: skip
    few = np.full((1, 12), np.nan)
    few[0, :4] = 1.0  # as many entries as the largest dimension
    assert model.predict(few)[0] == -1
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert_array_equal(again.transform(SMALL.X), distances)
    assert again.get_params()["subspace_dim"] == DIMS


def test_levels_and_units():
    assert levels((3, 12, 6, 3)) == [3, 6, 12]
    assert levels((1, 2, 3, 4, 9)) == [1, 3, 9]
    assert levels((2, 5)) == [2, 5]
    units = units_of_levels((1, 3), 2.0, np.array([10.0, 20.0, 70.0]), 10)
    assert units == {1: 5.0, 3: 2.0}


@pytest.mark.parametrize("trim", [0.0, 0.25])
def test_sums_of_given_members(trim):
    """Against sums over the members, without the samples that no subspace represents well."""
    rng = np.random.RandomState(0)
    Y, labels = rng.standard_normal((20, 6)), rng.randint(0, 2, (20, 1))
    bases = draw_bases((1, 2, 6, 2), rng)
    sums, _ = member_sums_block(CompleteBlock(Y, None, 7), bases, Linear(), labels, trim)
    residual = ((Y**2).sum(axis=1) - ((Y @ bases[0]) ** 2).sum(axis=2)).min(axis=0)
    kept = residual <= np.sort(residual)[round((1 - trim) * 20) - 1]
    for p, basis in enumerate(bases[0]):
        own = Y[(labels[:, 0] == p) & kept]
        assert_allclose(sums.counts[0, p], len(own))
        assert_allclose(sums.products[0, p], own.T @ own @ basis, atol=1e-12)
    assert_allclose(sums.energy[0], np.sum(bases[0] * sums.products[0]))


def test_clusters_get_the_dimensions_of_their_spectra():
    """Three orthogonal blocks: whatever the order of the clusters, the slots are right."""
    rng = np.random.RandomState(0)
    X = np.zeros((90, 9))
    for k, s in enumerate((2, 3, 1)):
        X[30 * k : 30 * k + 30, 3 * k : 3 * k + s] = rng.standard_normal((30, s))
    problem, _ = prepare(X, INFINITE, center=False)
    problem = problem.with_dims((1, 2, 3))
    schedules = {d: temperatures(0.3, 1.0, 0.1, 40) for d in levels((1, 2, 3))}
    frames = draw_bases((6, 3, 9, 3), rng)
    starts, free = annealed_starts(problem, frames, schedules)
    assert free.shape == (40, 6)
    _, sums = problem.assign(starts, with_products=False)
    residual = problem.total - sums.energy
    assert residual.min() < 1e-8 * problem.total
    check_bases(starts[residual.argmin()], (1, 2, 3))
