"""Clusters that anybody would expect to be found: the defaults find the truth on every seed."""

import numpy as np
import pytest
from dask.array import from_array
from sklearn.base import clone
from sklearn.datasets import make_blobs

from polyspan import MiCUSaL, RobustMiCUSaL, SubspaceMixture
from polyspan.baselines import KSubspaces
from polyspan.datasets import mask_entries
from polyspan.geometry import draw_bases
from polyspan.metrics import clustering_error

SEEDS = range(5)


def union(seed, sizes, m, dims, noise=0.02, orthogonal=False, offset=0.0):
    """Rows of mean squared norm 1 near subspaces that are far apart, or with offsets."""
    rng = np.random.RandomState(seed)
    dims = [dims] * len(sizes) if isinstance(dims, int) else dims
    bases = [draw_bases((m, dim), rng) for dim in dims]
    if orthogonal:
        bases = np.split(draw_bases((m, sum(dims)), rng), np.cumsum(dims)[:-1], axis=1)
    rows = [
        rng.standard_normal((n, basis.shape[1])) @ basis.T / np.sqrt(basis.shape[1])
        + offset * rng.standard_normal(m) / np.sqrt(m)
        + noise * rng.standard_normal((n, m)) / np.sqrt(m)
        for n, basis in zip(sizes, bases, strict=True)
    ]
    return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)


def lines(seed):
    """Three lines in the plane at equal angles."""
    rng = np.random.RandomState(seed)
    angles = np.arange(3) * np.pi / 3 + 0.1 * rng.uniform(size=3)
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, None, :]
    lengths = rng.choice([-1, 1], (3, 40, 1)) * rng.uniform(0.5, 1.5, (3, 40, 1))
    noise = 0.02 * rng.standard_normal((3, 40, 2))
    return (lengths * along + noise).reshape(-1, 2), np.repeat(np.arange(3), 40)


LINEAR = {"center": False}
#: The data, what learns them, and the part of labels that noise alone makes wrong.
PROBLEMS = {
    "two orthogonal planes in R4": (
        lambda seed: union(seed, [60] * 2, 4, 2, orthogonal=True), MiCUSaL(2, 2, **LINEAR), 0.02),
    "five orthogonal planes in R10": (
        lambda seed: union(seed, [40] * 5, 10, 2, orthogonal=True), MiCUSaL(5, 2, **LINEAR), 0.01),
    "three lines in the plane": (lines, MiCUSaL(3, 1, **LINEAR), 0.01),
    "three lines, K-subspaces": (lines, KSubspaces(3, 1, **LINEAR), 0.01),
    "four of dimension 3 in R20, centred": (
        lambda seed: union(seed, [40] * 4, 20, 3), MiCUSaL(4, 3), 0.0),
    "ten planes in R20": (
        lambda seed: union(seed, [25] * 10, 20, 2), MiCUSaL(10, 2, **LINEAR), 0.01),
    "few rows in R200": (
        lambda seed: union(seed, [20] * 5, 200, 5), MiCUSaL(5, 5, **LINEAR), 0.0),
    "of sizes 150, 40, 25, 20": (
        lambda seed: union(seed, [150, 40, 25, 20], 20, 3), MiCUSaL(4, 3, **LINEAR), 0.0),
    "dimensions 1, 2 and 4": (
        lambda seed: union(seed, [40] * 3, 15, [1, 2, 4]), MiCUSaL(3, (1, 2, 4), **LINEAR), 0.02),
    "a fifth missing": (
        lambda seed: union(seed, [40] * 4, 20, 3), RobustMiCUSaL(4, 3), 0.01),
    "planes with offsets": (
        lambda seed: union(seed, [60] * 3, 6, 2, offset=2.0), MiCUSaL(3, 2, affine=True), 0.01),
    "ten planes, a mixture": (
        lambda seed: union(seed, [25] * 10, 20, 2), SubspaceMixture(10, 2), 0.01),
    "of sizes 150, 40, 25, 20, a mixture": (
        lambda seed: union(seed, [150, 40, 25, 20], 20, 3), SubspaceMixture(4, 3), 0.0),
    "seven blobs, a mixture": (
        lambda seed: make_blobs(210, 5, centers=7, cluster_std=0.5, random_state=seed),
        SubspaceMixture(7, 0), 0.02),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_defaults_find_the_truth(name, seed):
    make, model, tolerance = PROBLEMS[name]
    X, labels = make(seed)
    if isinstance(model, RobustMiCUSaL):
        X = mask_entries(X, 0.2, random_state=seed)
    found = model.set_params(random_state=seed).fit(X)
    assert clustering_error(labels, found.labels_) <= tolerance


IN_MEMORY_OR_NOT = [name for name, (_, model, _) in PROBLEMS.items() if type(model) is MiCUSaL]


@pytest.mark.parametrize("name", [*IN_MEMORY_OR_NOT, "a fifth missing"])
def test_arrays_files_and_dask_arrays_give_the_same_optimum(name, tmp_path):
    make, model, _ = PROBLEMS[name]
    X, _ = make(0)
    if name == "a fifth missing":
        X = mask_entries(X, 0.2, random_state=0)
    model = clone(model).set_params(random_state=0)
    here = model.fit(X)
    objective, found = here.objective_, here.labels_
    np.save(tmp_path / "X.npy", X)
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    for elsewhere in (file, from_array(X, chunks=(len(X) // 3, -1))):
        fitted = clone(model).fit(elsewhere)
        assert fitted.objective_ == pytest.approx(objective, rel=1e-5)
        assert clustering_error(found, np.asarray(fitted.labels_)) == 0


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("model", [MiCUSaL(4, 3), RobustMiCUSaL(4, 3), SubspaceMixture(4, 3)])
def test_labels_do_not_depend_on_the_unit(model, scale):
    X, _ = union(0, [40] * 4, 20, 3, noise=0.3)
    here = model.set_params(random_state=0).fit(X).labels_
    assert np.array_equal(model.fit(scale * X).labels_, here)


@pytest.mark.parametrize("model", [MiCUSaL(4, 3), RobustMiCUSaL(4, 3), SubspaceMixture(4, 3)])
def test_labels_do_not_depend_on_the_order_of_rows(model):
    X, _ = union(1, [40] * 4, 20, 3, noise=0.1)
    order = np.random.RandomState(0).permutation(len(X))
    here = model.set_params(random_state=0).fit(X).labels_
    assert clustering_error(here[order], model.fit(X[order]).labels_) == 0


def test_the_same_bits_from_the_same_seed():
    X, _ = union(2, [40] * 4, 20, 3, noise=0.3)
    for kind in (MiCUSaL, RobustMiCUSaL, SubspaceMixture):
        first, second = (kind(4, 3, random_state=3).fit(X).bases_ for _ in range(2))
        assert np.array_equal(first, second)


def test_lambda_is_four_over_the_mean_squared_norm():
    X, _ = union(3, [40] * 4, 20, 3)
    centred = X - X.mean(axis=0)
    expected = 4.0 / np.mean(np.sum(centred**2, axis=1))
    model = MiCUSaL(4, 3, random_state=0).fit(X)
    assert model.lam_ == pytest.approx(expected, rel=1e-12)
    same = MiCUSaL(4, 3, lam=model.lam_, random_state=0).fit(X)
    assert same.objective_ == pytest.approx(model.objective_, rel=1e-9)
    weights = np.random.RandomState(0).randint(1, 4, len(X)).astype(float)
    weighted = MiCUSaL(4, 3, random_state=0).fit(X, sample_weight=weights)
    repeated = MiCUSaL(4, 3, random_state=0).fit(np.repeat(X, weights.astype(int), axis=0))
    assert weighted.lam_ == pytest.approx(repeated.lam_, rel=1e-9)
    holes = mask_entries(X, 0.2, random_state=0)
    scaled = [np.nansum(row**2) * 20 / np.sum(~np.isnan(row)) for row in holes]
    robust = RobustMiCUSaL(4, 3, random_state=0).fit(holes)
    assert robust.lam_ == pytest.approx(4.0 / np.mean(scaled), rel=1e-9)


def test_starts_of_many_rows_are_found_on_a_sample(monkeypatch):
    X, labels = union(4, [600] * 4, 20, 3)
    whole = MiCUSaL(4, 3, random_state=0).fit(X)
    monkeypatch.setattr("polyspan.linear.auto_starts.MOST_ENTRIES", 1000)
    weights = np.ones(len(X))
    for options in ({}, {"sample_weight": weights}):
        found = MiCUSaL(4, 3, random_state=0).fit(X, **options)
        assert found.objective_ == pytest.approx(whole.objective_, rel=1e-5)
        assert clustering_error(labels, found.labels_) == 0


def test_a_cluster_without_labels_is_seeded_anew():
    X, labels = union(5, [60] * 3, 20, 3)
    start = np.where(labels == 2, 1, labels)
    with pytest.warns(UserWarning, match="no sample that counts"):
        model = SubspaceMixture(3, 3, init=start, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 3
