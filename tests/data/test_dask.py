"""Dask arrays: the same fit as in memory, on any number of workers, even after one dies."""

import os
import signal

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster, wait
from numpy.testing import assert_allclose
from sklearn.base import clone

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.data.dask import DaskRows
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases
from polyspan.linear._solve import alternation
from polyspan.linear._solve.alternation import Worst

SHAPE = (4, 40, 3)  # L, m, s
SIZES = (90, 60, 80, 70)


@pytest.fixture(scope="module", name="X")
def samples():
    data = make_union_of_subspaces(SIZES, n_features=40, subspace_dim=3, spread=0.3, random_state=0)
    return data.X + 0.5  # a mean to subtract


@pytest.fixture(scope="module")
def start():
    return draw_bases(SHAPE, np.random.RandomState(1))


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as two:
        yield two


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


def chunked(X, n_chunks):
    return da.from_array(X, chunks=(-(-len(X) // n_chunks), X.shape[1]))


def model_of(start, **options):
    return MiCUSaL(4, 3, init=start, tol=1e-9, **options)


@pytest.mark.parametrize("n_chunks", [1, 2, 7])
@pytest.mark.parametrize("lam", [4.0, float("inf")])
@pytest.mark.parametrize("center", [True, False])
def test_threads_equal_memory(X, start, n_chunks, lam, center):
    expected = model_of(start, lam=lam, center=center).fit(X)
    model = model_of(start, lam=lam, center=center).fit(chunked(X, n_chunks))
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert_allclose(model.objective_history_, expected.objective_history_, rtol=1e-9)
    assert_allclose(model.mean_, expected.mean_, atol=1e-14)
    assert isinstance(model.bases_, np.ndarray)
    assert isinstance(model.labels_, da.Array)
    assert np.array_equal(model.labels_.compute(), expected.labels_)


@pytest.mark.parametrize("n_chunks", [1, 2, 7])
def test_two_workers_equal_memory(client, X, start, n_chunks):
    model = model_of(start).fit(chunked(X, n_chunks).persist())
    assert_allclose(model.objective_, model_of(start).fit(X).objective_, rtol=1e-9)


def test_one_worker_equals_memory(X, start):
    expected = model_of(start).fit(X).objective_
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as one,
        Client(one),
    ):
        for n_chunks in (1, 2, 7):
            model = model_of(start).fit(chunked(X, n_chunks))
            assert_allclose(model.objective_, expected, rtol=1e-9)


def test_annealed_fit_equals_memory(X):
    expected = MiCUSaL(4, 3, random_state=0).fit(X)
    model = MiCUSaL(4, 3, random_state=0).fit(chunked(X, 3))
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert_allclose(model.anneal_history_, expected.anneal_history_, rtol=1e-9)


def test_random_starts_share_their_passes(X):
    lazy = chunked(X, 2)
    counts = {"passes": 0}

    def count(dsk, keys, **kwargs):
        counts["passes"] += 1
        return dask.threaded.get(dsk, keys, **kwargs)

    options = {"init": "random", "n_init": 5, "max_iter": 20, "tol": 0.0}
    options |= {"lam": 4.0, "random_state": 0}
    with dask.config.set(scheduler=count):
        model = MiCUSaL(4, 3, **options).fit(lazy)
    # Two to measure, nine for the pooled subspace and one to compare with it, 21 for all starts.
    assert counts["passes"] <= 2 + 9 + 1 + 21
    expected = MiCUSaL(4, 3, **options).fit(X)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)


def test_holes(X):
    holey = mask_entries(X, 0.3, random_state=0)
    holey[5] = np.nan
    with pytest.warns(UserWarning, match="1 of 300 rows"):
        expected = RobustMiCUSaL(4, 3, center=True, random_state=0).fit(holey)
    lazy = chunked(holey, 4)
    with pytest.warns(UserWarning, match="1 of 300 rows"):
        model = RobustMiCUSaL(4, 3, center=True, random_state=0).fit(lazy)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert np.array_equal(model.labels_.compute(), expected.labels_)
    assert_allclose(model.impute(lazy).compute(), expected.impute(holey), atol=1e-9)
    assert_allclose(model.score(lazy), expected.score(holey), rtol=1e-9)


def test_nothing_missing_is_complete_data(X):
    complete = RobustMiCUSaL(4, 3, random_state=0).fit(chunked(X, 3))
    assert_allclose(
        complete.objective_, RobustMiCUSaL(4, 3, random_state=0).fit(X).objective_, rtol=1e-9
    )


def test_prediction_is_lazy(X, start):
    lazy = chunked(X, 3)
    model = model_of(start).fit(X)
    for name in ("predict", "transform", "reconstruct", "score_samples"):
        found = getattr(model, name)(lazy)
        expected = getattr(model, name)(X)
        assert isinstance(found, da.Array), name
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert_allclose(found.compute(), expected, atol=1e-12, err_msg=name)
    assert isinstance(model.score(lazy), float)
    assert_allclose(model.score(lazy), model.score(X), rtol=1e-12)


def test_float32_and_integers(X, start):
    single = model_of(start).fit(chunked(X.astype(np.float32), 2))
    assert single.bases_.dtype == np.float32
    whole = np.round(X * 20).astype(np.int16)
    model = model_of(start, lam=0.01).fit(chunked(whole, 2))
    assert_allclose(model.objective_, model_of(start, lam=0.01).fit(whole).objective_, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-160, 1e160])
def test_extreme_scales(X, start, factor):
    expected = model_of(start, lam=float("inf")).fit(X)
    model = model_of(start, lam=float("inf")).fit(chunked(X * factor, 3))
    assert np.array_equal(model.labels_.compute(), expected.labels_)
    assert_allclose(model.mean_ / factor, expected.mean_, rtol=1e-12)


def test_rows_far_from_zero(X, start):
    far = model_of(start).fit(chunked(X + 1e6, 3))
    assert_allclose(far.objective_, model_of(start).fit(X + 1e6).objective_, rtol=1e-6)


def test_unknown_row_counts_and_empty_chunks(X, start):
    lazy = chunked(X, 4)
    filtered = lazy[lazy[:, 0] > lazy[:150, 0].max() - 10]  # all rows, which dask cannot know
    assert np.isnan(filtered.shape[0])
    empty = da.concatenate([lazy[:0], lazy, da.zeros((0, 40), chunks=(1, 40))])
    expected = model_of(start).fit(X)
    for rows in (filtered, empty):
        model = model_of(start).fit(rows)
        assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
        assert np.array_equal(model.labels_.compute(), expected.labels_)
        assert_allclose(model.score(rows), expected.score(X), rtol=1e-9)


def test_fewer_samples_than_features(start):
    X = make_union_of_subspaces((8, 8, 7, 8), n_features=40, subspace_dim=3, random_state=0).X
    model = model_of(start).fit(chunked(X, 2))
    assert_allclose(model.objective_, model_of(start).fit(X).objective_, rtol=1e-9)


def test_a_dask_frame(X, start):
    columns = [f"x{k}" for k in range(40)]
    frame = dd.from_pandas(pd.DataFrame(X, columns=columns), npartitions=3)
    model = model_of(start).fit(frame)
    assert_allclose(model.objective_, model_of(start).fit(X).objective_, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda X: da.from_array(X, chunks=(100, 20)), {}, r"rechunk\(\{1: -1\}\)"),
        (lambda X: da.from_array(X[0], chunks=10), {}, "Expected 2D array"),
        (lambda X: chunked(X, 2) + 1j, {}, "complex128"),
        (lambda X: chunked(X, 2)[:0], {}, "0 sample"),
        (lambda X: chunked(X, 2)[:, :0], {}, "0 feature"),
        (lambda X: chunked(X, 2)[:5], {}, "n_samples=5"),
        (
            lambda X: da.ones((20, 1025), chunks=(9, -1)),
            {"solver": "exact"},
            r"solver='exact' needs all samples in memory, or at most 1024 features \(X has 1025\)",
        ),
        (lambda X: da.where(chunked(X, 2) > 1, np.nan, 0), {}, "use polyspan.RobustMiCUSaL"),
        (lambda X: da.where(chunked(X, 2) > 1, np.inf, 0), {}, "infinity"),
    ],
)
def test_clear_errors(X, make, options, message):
    with pytest.raises(ValueError, match=message):
        MiCUSaL(4, 3, **options).fit(make(X))


def test_sweeps_over_single_samples_are_refused(X):
    with pytest.raises(ValueError, match="solver='grouse' needs all samples in memory, not a dask"):
        RobustMiCUSaL(4, 3, solver="grouse").fit(chunked(X, 2))


@pytest.mark.parametrize(
    "options",
    [{"solver": "exact"}, {"residual": "loo"}, {"affine": True}],
    ids=["exact", "loo", "affine"],
)
@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_results_per_row_stay_where_the_rows_are(client, X, options, fraction):
    """Labels are lazy: nothing has gathered them."""
    X = mask_entries(X, fraction, random_state=0)
    lazy = chunked(X, 5).persist()
    model = RobustMiCUSaL(4, 3, n_init=1, random_state=0, anneal_steps=5, tol=1e-3, **options)
    expected = clone(model).fit(X)
    model.fit(lazy)
    assert isinstance(model.labels_, da.Array)
    assert model.labels_.chunks == lazy.chunks[:1]
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert np.array_equal(model.labels_.compute(), expected.labels_)


def test_results_per_row_are_arguments_of_the_next_pass(X):
    rows = DaskRows(chunked(X, 4))
    total, first = rows.reduce(count_and_sum, None, 2.0, keep=True)
    assert total == len(X)
    again, second = rows.reduce(count_and_sum, first, 3.0, keep=True)
    assert again == len(X)
    assert len(second.parts) == 4
    found = np.concatenate(dask.compute(*second.parts))
    assert_allclose(found, 3.0 * (X.sum(axis=1) + 2.0 * X.sum(axis=1)))
    assert rows.reduce(count_and_sum, first, 3.0) == (len(X), None)


def count_and_sum(block, earlier, factor):
    """Count the rows, and return the sum of each row and its result of an earlier task."""
    own = block.sum(axis=1)
    return len(block), factor * (own if earlier is None else own + earlier)


def test_other_columns_are_refused(X, start):
    model = model_of(start).fit(X)
    with pytest.raises(ValueError, match="39 features"):
        model.predict(chunked(X[:, :39], 2))


def test_empty_subspaces_are_refilled_from_gathered_samples(X, monkeypatch):
    """No sample is assigned to the directions of least variance; refilling gives them samples."""
    found, worst_block = [], alternation.worst_block

    def spy(*arguments):
        found.append(worst_block(*arguments))
        return found[-1]

    directions = np.linalg.eigh(np.cov(X.T))[1]
    start = np.stack([directions[:, k : k + 3] for k in (37, 0, 3, 6)])
    expected = model_of(start).fit(X)
    monkeypatch.setattr(alternation, "worst_block", spy)
    model = model_of(start).fit(chunked(X, 3))
    assert len(found) >= 3
    assert len(found) % 3 == 0
    assert all(worst.samples.shape == (100, 40) for worst, _ in found)
    assert (np.bincount(model.labels_.compute(), minlength=4) > 0).all()
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)


def test_the_worst_of_two_blocks():
    one = Worst(np.array([3.0, 1.0]), np.array([[3.0], [1.0]]), 3)
    both = one + Worst(np.array([2.0]), np.array([[2.0]]), 3)
    assert both.residuals.tolist() == [3.0, 2.0, 1.0]
    assert both.samples.ravel().tolist() == [3.0, 2.0, 1.0]
    more = both + Worst(np.array([2.5]), np.array([[2.5]]), 3)
    assert more.residuals.tolist() == [3.0, 2.5, 2.0]
    assert more.samples.ravel().tolist() == [3.0, 2.5, 2.0]


def kill_in_pass(client, monkeypatch, *deaths):
    """Kill a worker before some passes; return the list to which each pass is added."""
    passes, reduce = [], DaskRows.reduce

    def reduce_with_deaths(self, task, *arguments, **options):
        passes.append(task)
        if len(passes) in deaths:
            pids = client.run(os.getpid)
            kill = getattr(signal, "SIGKILL", signal.SIGTERM)  # which ends it at once on Windows
            os.kill(next(iter(pids.values())), kill)
        return reduce(self, task, *arguments, **options)

    monkeypatch.setattr(DaskRows, "reduce", reduce_with_deaths)
    return passes


def test_a_worker_dies(client, X, monkeypatch):
    options = {"init": "anneal", "random_state": 0, "anneal_steps": 20}
    expected = MiCUSaL(4, 3, **options).fit(chunked(X, 7))
    lazy = chunked(X, 7).persist()
    wait(lazy)
    passes = kill_in_pass(client, monkeypatch, 8)  # while the pooled subspace is found
    model = MiCUSaL(4, 3, **options).fit(lazy)
    assert len(passes) > 24
    assert_allclose(model.objective_, expected.objective_, rtol=1e-12)
    assert_allclose(model.bases_, expected.bases_, atol=1e-10)
    assert np.array_equal(model.labels_.compute(), expected.labels_.compute())


def test_results_per_row_of_a_dead_worker_are_made_again(client, X, monkeypatch):
    """Responsibilities while the start is annealed, labels in the alternation after it."""
    model = MiCUSaL(4, 3, residual="loo", affine=True, n_init=1, random_state=0, anneal_steps=10)
    expected = clone(model).fit(X)
    lazy = chunked(X, 7).persist()
    wait(lazy)
    # Two passes measure, nine find the pooled subspace; then there are two to each step.
    passes = kill_in_pass(client, monkeypatch, 20, 34)
    model.fit(lazy)
    assert len(passes) > 34
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert isinstance(model.labels_, da.Array)
    assert np.array_equal(model.labels_.compute(), expected.labels_)


def incoming(dask_worker):
    return sum(transfer["total"] for transfer in dask_worker.transfer_incoming_log)


def test_data_sent_to_a_worker(client):
    """In each pass a worker is sent the bases once, and at most the sums of every chunk."""
    n_subspaces, m, s = 5, 200, 20  # large next to what a message costs by itself
    rng = np.random.default_rng(0)
    client.wait_for_workers(2)
    lazy = da.from_array(rng.standard_normal((1400, m)), chunks=(200, m)).persist()
    wait(lazy)
    places = client.who_has(lazy)
    before = client.run(incoming)
    n_iter = 10
    start = draw_bases((n_subspaces, m, s), rng)
    with pytest.warns(UserWarning, match="converge"):
        MiCUSaL(n_subspaces, s, init=start, max_iter=n_iter, tol=0.0).fit(lazy)
    after = client.run(incoming)
    n_passes = 2 + 9 + n_iter + 1 + 1
    unit = n_subspaces * m * s * 8
    for worker in after:
        n_chunks = sum(worker in holders for holders in places.values())
        moved = (after[worker] - before[worker]) / n_passes
        assert 0 < moved <= (1 + n_chunks) * unit + 5000


def test_a_pass_sends_the_bases_once(client, X):
    """The graph that goes to the scheduler holds the bases once, not once for every chunk."""
    lazy = chunked(X, 7).persist()
    sizes = []

    def measure(expression, keys, **kwargs):
        sizes.append(len(cloudpickle.dumps(expression)))
        return [None]

    bases = np.zeros((5, 200, 20))
    with dask.config.set(scheduler=measure):
        DaskRows(lazy).reduce(abs, bases)
    assert bases.nbytes < sizes[0] < bases.nbytes + 40_000
