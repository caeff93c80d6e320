"""Weights of rows that are not all in memory: cut into blocks as the rows are."""

import itertools
import warnings

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose

import polyspan.data.sliced
from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases

N, M = 90, 12
X = make_union_of_subspaces(
    (30, 30, 30), n_features=M, subspace_dim=2, spread=0.5, noise=0.05, random_state=0
).X
HOLES = mask_entries(X, 0.2, random_state=0)
HOLES[7, 2:] = np.nan
WEIGHTS = np.random.RandomState(1).randint(0, 4, N)
START = draw_bases((3, M, 2), np.random.RandomState(3))
AFFINE_START = np.concatenate([START, X[[5, 40, 70]][:, :, None]], axis=2)


def as_file(X):
    file = zarr.create_array(store={}, shape=X.shape, chunks=(16, M), dtype=X.dtype)
    file[:] = X
    return file


def as_dask(X):
    return da.from_array(X, chunks=(25, M))


def uncounted(X):
    """A dask array that does not know the sizes of its chunks."""
    rows = as_dask(X)
    return rows[~da.isinf(rows[:, 0])]


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(polyspan.data.sliced, "SLICE_BYTES", 16 * M * 8)


OPTIONS = [
    {},
    {"affine": True},
    {"solver": "exact", "lam": float("inf")},
    {"solver": "exact", "affine": True},
    {"residual": "loo"},
]


@pytest.mark.filterwarnings("ignore:1 of 90 rows")
@pytest.mark.parametrize(
    ("rows", "options"),
    [*itertools.product((as_file, as_dask), OPTIONS), *((uncounted, one) for one in OPTIONS[:2])],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.parametrize("holes", [False, True])
def test_weights_of_blocks_are_those_of_arrays(rows, holes, options):
    kind, data = (RobustMiCUSaL, HOLES) if holes else (MiCUSaL, X)
    options = {"init": AFFINE_START if options.get("affine") else START, **options}
    model = kind(3, 2, **options).fit(rows(data), sample_weight=WEIGHTS)
    plain = kind(3, 2, **options).fit(data, sample_weight=WEIGHTS)
    assert_allclose(model.objective_, plain.objective_, rtol=1e-9)
    assert_allclose(model.mean_, plain.mean_, atol=1e-12)
    assert np.array_equal(np.asarray(model.labels_), plain.labels_)
    score = model.score(rows(data), sample_weight=WEIGHTS)
    assert_allclose(score, plain.score(data, sample_weight=WEIGHTS), rtol=1e-9)


def test_starts_and_empty_subspaces_follow_the_weights():
    used = (WEIGHTS > 0).astype(float)
    far = AFFINE_START.copy()
    far[1:, :, -1] += 9.0
    model = MiCUSaL(3, 2, affine=True, lam=float("inf"), init=far)
    objective = model.fit(as_dask(X), sample_weight=used).objective_
    assert_allclose(objective, model.fit(X[used > 0]).objective_, rtol=1e-9)
    distant = np.where(used[:, None] > 0, X, X + 100.0)  # points would be drawn from these
    model = MiCUSaL(3, 0, affine=True, init="random", n_init=1, max_iter=1, random_state=0)
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(as_dask(distant), sample_weight=used)
    assert np.abs(model.anchors_).max() < 2.0


def test_weights_may_be_lazy():
    model = MiCUSaL(3, 2, init=START)
    lazy = model.fit(as_dask(X), sample_weight=da.from_array(WEIGHTS, chunks=40)).objective_
    assert lazy == model.fit(as_dask(X), sample_weight=WEIGHTS).objective_
    score = model.score(as_dask(X), sample_weight=da.from_array(WEIGHTS, chunks=40))
    assert score == model.score(as_dask(X), sample_weight=WEIGHTS)


@pytest.mark.parametrize("rows", [as_file, as_dask])
def test_bad_weights_are_refused(rows):
    for weights, message in (
        (np.ones(N - 1), r"shape \(89,\), expected \(90,\)"),
        (-np.ones(N), "Negative values"),
        (np.zeros(N), "at least one non-zero"),
    ):
        with pytest.raises(ValueError, match=message):
            MiCUSaL(3, 2).fit(rows(X), sample_weight=weights)


@pytest.mark.parametrize("rows", [as_file, as_dask])
@pytest.mark.parametrize("holes", [False, True])
def test_rows_without_weight_have_no_part_in_the_working_scale(rows, holes):
    kind, data = (RobustMiCUSaL, HOLES) if holes else (MiCUSaL, X)
    data, used = data[8:].astype(np.float32), np.arange(N - 8) > 0
    filled = data.copy()
    filled[0] = 9.97e36
    for options in ({"init": START}, {"init": START, "residual": "loo"}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = kind(3, 2, **options).fit(rows(filled), sample_weight=used)
        expected = kind(3, 2, **options).fit(data[1:])
        assert_allclose(model.objective_, expected.objective_, rtol=1e-4)
        assert_allclose(model.noise_variance_, expected.noise_variance_, rtol=1e-4)
        assert_allclose(model.mean_, expected.mean_, atol=1e-6)
        if not holes or "residual" in options:
            assert np.array_equal(np.asarray(model.labels_)[1:], expected.labels_)
        nearest = np.asarray(model.predict(rows(filled)))[0]
        assert np.asarray(model.labels_)[0] == nearest >= 0


@pytest.mark.parametrize("rows", [as_file, as_dask])
def test_rows_without_weight_are_no_samples(rows):
    first = np.arange(N) < 5
    for weights in (first, 10.0 * first):
        with pytest.raises(ValueError, match=r"n_samples=5 is fewer than .* a weight above 0"):
            MiCUSaL(3, 2).fit(rows(X), sample_weight=weights)
    with pytest.raises(ValueError, match="0 for every sample with enough observed entries"):
        RobustMiCUSaL(3, 2).fit(rows(HOLES), sample_weight=np.arange(N) == 7)
    # Rows with too few entries are counted, whatever they weigh.
    with pytest.warns(UserWarning, match="1 of 90 rows have at most"):
        RobustMiCUSaL(3, 2, init=START).fit(rows(HOLES), sample_weight=WEIGHTS)


@pytest.mark.parametrize("rows", [np.asarray, as_dask])
def test_many_rows_are_drawn_by_their_weights(rows, monkeypatch):
    """Among more rows than candidates, a start takes those that weigh most."""
    monkeypatch.setattr("polyspan.linear.starts.MOST_CANDIDATES", 20)
    weights = np.where(np.arange(N) % 30 == 3, 1e9, np.where(WEIGHTS, 1e-9, 0.0))
    model = MiCUSaL(3, 0, affine=True, init="random", n_init=1, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows(X), sample_weight=weights)
    heavy = X[weights > 1]
    distances = np.linalg.norm(model.anchors_[:, None, :] - heavy, axis=2)
    assert sorted(distances.argmin(axis=1)) == list(range(len(heavy)))
    assert_allclose(distances.min(axis=1), 0.0, atol=1e-6)
