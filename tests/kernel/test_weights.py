"""Weights of samples in kernel models: 2 is the sample twice, 0 is no sample."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from polyspan import MCKUSaL, RobustMCKUSaL
from polyspan.baselines import KernelKMeans, KernelPCADenoiser, RobustKernelPCA
from polyspan.datasets import mask_entries
from polyspan.graphs.edges import neighbour_graph
from polyspan.graphs.spectra import graph_embedding, repeat_nodes
from polyspan.kernel._solve.alternation import KernelRules, _size_of_empty
from polyspan.kernel._solve.leave_one_out import _residuals, leave_one_out_labels
from polyspan.kernel.incomplete import distinct_rows, estimate_kernel, mend, mend_samples
from polyspan.kernel.options import spectral_labels
from polyspan.kernels import Kernel

DIGITS = load_digits(n_class=3)
SCALED = DIGITS.data / np.linalg.norm(DIGITS.data, axis=1, keepdims=True)
X, NEW = SCALED[:60], SCALED[60:80]
HOLES, NEW_HOLES = (mask_entries(A, 0.2, random_state=0) for A in (X, NEW))
RNG = np.random.RandomState(0)
WEIGHTS = RNG.randint(0, 4, len(X))
# True labels, a fifth of them drawn anew: the fit has something to do.
START = np.where(RNG.uniform(size=60) < 0.2, RNG.randint(3, size=60), DIGITS.target[:60])
REPEATED = np.repeat(np.arange(60), WEIGHTS)
KEPT = np.flatnonzero(WEIGHTS)


def product(x, y):
    """A kernel that is no name of ours: exp(x·y)."""
    return np.exp(x @ y)


KERNELS = {
    "rbf": {"gamma": 1.0},
    "poly": {"kernel": "poly", "gamma": 1.0},
    "linear": {"kernel": "linear"},
    "callable": {"kernel": product},
}


def pair(cls=MCKUSaL, data=X, **options):
    """Fit with weights, and without weights to repeated samples, from the same labels."""
    options = {"n_subspaces": 3, "subspace_dim": 5, **options}
    weighted = cls(init=START, **options).fit(data, sample_weight=WEIGHTS)
    return weighted, cls(init=START[REPEATED], **options).fit(data[REPEATED])


def check_same_fit(weighted, repeated):
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-9)
    assert_allclose(weighted.objective_history_, repeated.objective_history_, rtol=1e-9)
    assert weighted.labels_.shape == (60,)
    assert np.array_equal(weighted.labels_[REPEATED], repeated.labels_)
    assert_allclose(weighted.subspace_distances_, repeated.subspace_distances_, atol=1e-7)


@pytest.mark.parametrize("lam", [0.5, float("inf")])
@pytest.mark.parametrize("residual", ["plain", "loo"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_equal_repeats(kernel, residual, lam):
    weighted, repeated = pair(residual=residual, lam=lam, **KERNELS[kernel])
    check_same_fit(weighted, repeated)
    assert np.array_equal(weighted.predict(NEW), repeated.predict(NEW))
    assert_allclose(weighted.transform(NEW), repeated.transform(NEW), atol=1e-8)
    assert_allclose(weighted.score(X, sample_weight=WEIGHTS), repeated.score(X[REPEATED]))
    if kernel != "callable":
        assert_allclose(weighted.reconstruct(NEW), repeated.reconstruct(NEW), atol=1e-8)
    # Samples of weight 0 have the label that they would have as new samples.
    left_out = WEIGHTS == 0
    assert np.array_equal(weighted.labels_[left_out], weighted.predict(X[left_out]))
    assert all((WEIGHTS[members] > 0).all() for members in weighted.members_)


@pytest.mark.parametrize("residual", ["plain", "loo"])
def test_weights_of_a_precomputed_kernel(residual):
    kernel = Kernel("rbf", gamma=1.0)
    G, K = kernel(X), kernel(NEW, X)
    options = {"kernel": "precomputed", "residual": residual}
    weighted = MCKUSaL(3, 5, init=START, **options).fit(G, sample_weight=WEIGHTS)
    repeated = MCKUSaL(3, 5, init=START[REPEATED], **options).fit(G[np.ix_(REPEATED, REPEATED)])
    check_same_fit(weighted, repeated)
    # New samples come with their values with all samples, also those of weight 0.
    assert_allclose(weighted.transform(K), repeated.transform(K[:, REPEATED]), atol=1e-8)
    samples = MCKUSaL(3, 5, gamma=1.0, init=START, residual=residual)
    distances = samples.fit_transform(X, sample_weight=WEIGHTS)
    assert_allclose(weighted.fit_transform(G, sample_weight=WEIGHTS), distances, atol=1e-7)


@pytest.mark.parametrize("residual", ["plain", "loo"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize(("data", "new"), [(X, NEW), (HOLES, NEW_HOLES)], ids=["complete", "holes"])
def test_weights_equal_repeats_of_incomplete_samples(data, new, kernel, residual):
    weighted, repeated = pair(RobustMCKUSaL, data, residual=residual, lam=0.5, **KERNELS[kernel])
    check_same_fit(weighted, repeated)
    assert_allclose(weighted.transform(new), repeated.transform(new), atol=1e-8)
    assert_allclose(weighted.reconstruct(new), repeated.reconstruct(new), atol=1e-8)
    assert_allclose(weighted.impute(new), repeated.impute(new), atol=1e-8)
    distances = weighted.fit_transform(data, sample_weight=WEIGHTS)
    assert_allclose(distances[REPEATED], repeated.fit_transform(data[REPEATED]), atol=1e-8)


def test_weights_equal_repeats_where_eigenvectors_are_found_by_iteration():
    """With few directions for the samples; subspaces then agree to the eigensolver's tolerance."""
    for residual in ("plain", "loo"):
        weighted, repeated = pair(residual=residual, subspace_dim=2, gamma=1.0, update_tol=1e-12)
        check_same_fit(weighted, repeated)
        assert weighted.n_iter_ > 1
        assert_allclose(weighted.transform(NEW), repeated.transform(NEW), atol=1e-6)


@pytest.mark.parametrize("cls", [MCKUSaL, RobustMCKUSaL])
@pytest.mark.parametrize(
    "start",
    [{"init": START}, {"init": "gkiop", "gkiop_seeds": KEPT[[0, 7, 20]]}, {"init": "spectral"}],
    ids=["labels", "seeds", "spectral"],
)
def test_zero_weights_are_removal_to_the_bit(cls, start):
    data = X if cls is MCKUSaL else HOLES
    options = {"subspace_dim": 4, "gamma": 1.0, "random_state": 0}
    weighted = cls(**start, **options).fit(data, sample_weight=WEIGHTS > 0)
    removed = dict(start)
    if "gkiop_seeds" in start:
        removed["gkiop_seeds"] = [0, 7, 20]
    elif start["init"] is START:
        removed["init"] = START[KEPT]
    other = cls(**removed, **options).fit(data[KEPT])
    assert weighted.objective_ == other.objective_
    assert np.array_equal(weighted.labels_[KEPT], other.labels_)
    assert np.array_equal(weighted.transform(data), other.transform(data))
    for c, d in zip(weighted.members_, other.members_, strict=True):
        assert np.array_equal(c, KEPT[d])


def test_seeds_with_weights():
    """A subspace of dimension 1 starts from its seed alone, whatever else is repeated."""
    seeds = KEPT[[0, 7, 20]]
    copies = np.searchsorted(REPEATED, seeds)
    weighted = MCKUSaL(3, 1, gamma=1.0, init="gkiop", gkiop_seeds=seeds)
    weighted.fit(X, sample_weight=WEIGHTS)
    repeated = MCKUSaL(3, 1, gamma=1.0, init="gkiop", gkiop_seeds=copies).fit(X[REPEATED])
    check_same_fit(weighted, repeated)


@pytest.mark.parametrize("cls", [MCKUSaL, RobustMCKUSaL])
@pytest.mark.parametrize("init", ["labels", "gkiop", "spectral"])
def test_only_weights_times_lam_counts(cls, init):
    """F3 has λΣwr: c times the weights are c times λ."""
    data = X if cls is MCKUSaL else HOLES
    options = {
        "init": START if init == "labels" else init,
        "subspace_dim": 4, "gamma": 1.0, "random_state": 0,
    }  # fmt: skip
    w = WEIGHTS + 0.5
    few = cls(lam=4.0, **options).fit(data, sample_weight=w)
    many = cls(lam=1.0, **options).fit(data, sample_weight=4.0 * w)
    assert_allclose(few.objective_, many.objective_, rtol=1e-9)
    assert np.array_equal(few.labels_, many.labels_)
    equal = cls(lam=8.0, **options).fit(data, sample_weight=np.full(60, 0.5))
    plain = cls(lam=4.0, **options).fit(data)
    assert_allclose(equal.objective_, plain.objective_, rtol=1e-9)
    assert np.array_equal(equal.labels_, plain.labels_)


def test_weights_of_one_are_no_weights():
    for weights in (1, np.ones(60), [1] * 60):
        model = MCKUSaL(3, 4, random_state=0).fit(X, sample_weight=weights)
        plain = MCKUSaL(3, 4, random_state=0).fit(X)
        assert model.objective_ == plain.objective_
        assert np.array_equal(model.transform(NEW), plain.transform(NEW))


def test_one_subspace_of_a_linear_kernel_is_weighted_pca():
    w = RNG.uniform(0.2, 3.0, size=60)
    model = MCKUSaL(1, 4, kernel="linear", lam=float("inf")).fit(X, sample_weight=w)
    centred = X - np.average(X, axis=0, weights=w)
    values, vectors = np.linalg.eigh((centred * w[:, None]).T @ centred)
    assert_allclose(model.objective_, values[:-4].sum(), rtol=1e-9)
    basis = vectors[:, -4:]
    expected = (NEW - np.average(X, axis=0, weights=w)) @ basis @ basis.T
    assert_allclose(model.reconstruct(NEW), expected + np.average(X, axis=0, weights=w), atol=1e-9)


@pytest.mark.parametrize(
    ("model", "data", "new"),
    [(KernelPCADenoiser(5, gamma=1.0), X, NEW), (RobustKernelPCA(5, gamma=1.0), HOLES, NEW_HOLES)],
    ids=["complete", "holes"],
)
def test_kernel_pca_with_weights(model, data, new):
    weighted = clone(model).fit(data, sample_weight=WEIGHTS)
    repeated = clone(model).fit(data[REPEATED])
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-9)
    assert_allclose(weighted.reconstruct(new), repeated.reconstruct(new), atol=1e-8)
    assert_allclose(
        weighted.score(data, sample_weight=WEIGHTS), repeated.score(data[REPEATED]), rtol=1e-9
    )
    assert weighted.labels_.shape == (60,)
    if data is X:
        kernel = Kernel("rbf", gamma=1.0)
        given = KernelPCADenoiser(5, kernel="precomputed")
        given.fit(kernel(X), sample_weight=WEIGHTS)
        expected = weighted.transform(new)
        assert_allclose(given.transform(kernel(new, X)), expected, atol=1e-8)
        with pytest.raises(ValueError, match="takes no sample_weight"):
            KernelPCADenoiser("noise", noise=0.1).fit(X, sample_weight=WEIGHTS)


@pytest.mark.parametrize(
    "model", [KernelPCADenoiser(5), RobustKernelPCA(5), KernelKMeans(3, random_state=0)]
)
def test_summaries_do_not_count_samples_without_weight(model):
    def counted():
        facts = dict(model.summary().facts)
        return sum(map(int, facts.get("Sizes", facts.get("Samples")).split(", ")))

    model = clone(model).fit(X, sample_weight=WEIGHTS)
    assert counted() == len(KEPT) < len(X)
    model.fit(X)
    assert counted() == len(X)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_kernel_kmeans_with_weights(kernel, monkeypatch):
    plain = KernelKMeans(3, kernel=kernel, random_state=0).fit(X, sample_weight=WEIGHTS)
    monkeypatch.setattr(KernelKMeans, "_plus_plus", lambda self, G, weights, rng: start)
    start = START
    weighted = KernelKMeans(3, kernel=kernel, n_init=1).fit(X, sample_weight=WEIGHTS)
    start = START[REPEATED]
    repeated = KernelKMeans(3, kernel=kernel, n_init=1).fit(X[REPEATED])
    assert_allclose(weighted.inertia_, repeated.inertia_, rtol=1e-9)
    assert np.array_equal(weighted.labels_[REPEATED], repeated.labels_)
    assert np.array_equal(weighted.predict(NEW), repeated.predict(NEW))
    start = START[KEPT]
    ones = KernelKMeans(3, kernel=kernel, n_init=1).fit(X[KEPT])
    start = START
    removed = KernelKMeans(3, kernel=kernel, n_init=1).fit(X, sample_weight=WEIGHTS > 0)
    assert_allclose(removed.inertia_, ones.inertia_, rtol=1e-9)
    assert np.array_equal(removed.labels_[KEPT], ones.labels_)
    assert np.array_equal(removed.labels_, removed.predict(X))
    if kernel == "linear":
        peer = KMeans(3, n_init=10, random_state=0).fit(X, sample_weight=WEIGHTS)
        assert_allclose(plain.inertia_, peer.inertia_, rtol=1e-2)
    with pytest.raises(ValueError, match="larger than n_samples=2"):
        KernelKMeans(3).fit(X, sample_weight=np.arange(60) < 2)


def test_one_copy_is_left_out():
    """Two copies of a point on a line: without one of them the other still fixes the mean."""
    Z = np.array([[0.0, 1.0], [2.0, -1.0], [4.0, 0.5]])
    w = np.array([2.0, 1.0, 3.0])
    copies = np.repeat(np.arange(3), [2, 1, 3])
    weighted, _ = _residuals(Z, np.ones((3, 1)), [None], 1, w)
    repeated, _ = _residuals(Z[copies], np.ones((6, 1)), [None], 1)
    assert_allclose(weighted[copies], repeated, rtol=1e-9)
    # What counts less than once is left out whole: as if weights were those of the cluster.
    half, _ = _residuals(Z, np.ones((3, 1)), [None], 1, np.array([0.5, 1.0, 1.0]))
    soft, _ = _residuals(Z, np.array([[0.5], [1.0], [1.0]]), [None], 1)
    assert_allclose(half, soft, rtol=1e-9)
    found = leave_one_out_labels(X, START, 3, 2, sample_weights=WEIGHTS + 1.0)
    all_copies = np.repeat(np.arange(60), WEIGHTS + 1)
    expected = leave_one_out_labels(X[all_copies], START[all_copies], 3, 2)
    assert_allclose(found.criterion, expected.criterion, rtol=1e-9)


def test_copies_of_incomplete_samples_are_mended_as_one():
    kernel = Kernel("rbf", gamma=1.0)
    G = estimate_kernel(kernel, HOLES).values
    whole = mend(G, 1e-6, relative=True)
    same = mend_samples(G, HOLES, 1e-6)
    assert np.array_equal(same.G, whole.G)
    assert np.array_equal(same.signs, whole.signs)
    copies = np.repeat(np.arange(60), WEIGHTS + 1)
    repeated = mend_samples(G[np.ix_(copies, copies)], HOLES[copies], 1e-6)
    weighted = mend_samples(G, HOLES, 1e-6, WEIGHTS + 1.0)
    assert_allclose(repeated.G, weighted.G[np.ix_(copies, copies)], atol=1e-10)
    K = estimate_kernel(kernel, NEW_HOLES, HOLES).values
    values = K[:, copies] @ repeated.signs
    assert_allclose(values, (K @ weighted.signs)[:, copies], atol=1e-10)
    # Weights and copies at once: two copies of weight 1.5 are one of weight 3.
    twice = np.r_[np.arange(60), 0]
    w = WEIGHTS + 1.0
    w[0] = 3.0
    split = mend_samples(G[np.ix_(twice, twice)], HOLES[twice], 1e-6, np.r_[1.5, w[1:], 1.5])
    joint = mend_samples(G, HOLES, 1e-6, w)
    assert_allclose(split.G, joint.G[np.ix_(twice, twice)], atol=1e-10)
    assert_allclose(K[:, twice] @ split.signs, (K @ joint.signs)[:, twice], atol=1e-10)


def test_distinct_rows():
    nan = np.nan
    rows = np.array([[1.0, nan], [nan, 1.0], [1.0, 0.0], [1.0, nan], [1.0, -0.0]])
    first, which = distinct_rows(rows)
    assert sorted(first) == [0, 1, 2]
    assert np.array_equal(first[which], [0, 1, 2, 0, 2])


def test_the_mean_of_pairs_counts_copies():
    """Samples 0 and 1 have no common entry: they get the mean over all other pairs."""
    A = np.array([[1.0, np.nan, 2.0], [np.nan, 3.0, np.nan], [2.0, 1.0, 0.0], [0.5, 1.0, 1.0]])
    w = np.array([1.0, 2.0, 3.0, 1.0])
    copies = np.repeat(np.arange(4), w.astype(int))
    for kernel in (Kernel("rbf", gamma=0.1), Kernel("linear")):
        weighted = estimate_kernel(kernel, A, sample_weight=w)
        repeated = estimate_kernel(kernel, A[copies])
        assert_allclose(weighted.fill, repeated.fill, rtol=1e-12)
        assert_allclose(weighted.values[np.ix_(copies, copies)], repeated.values, rtol=1e-12)


def test_empty_subspaces_get_samples_by_weight():
    rules = KernelRules(2, 2, 4.0)
    assert _size_of_empty(np.ones(12), 1, rules) == 3  # a quarter of all, as without weights
    assert _size_of_empty(np.array([3.0] * 4 + [1.0] * 12), 1, rules) == 2
    assert _size_of_empty(np.array([1.0] * 12 + [3.0] * 4), 1, rules) == 6
    assert _size_of_empty(np.array([9.0, 1.0, 1.0, 1.0]), 1, rules) == 2  # never below s
    weighted = MCKUSaL(3, 4, gamma=1.0, lam=100.0, init=np.minimum(START, 1))
    weighted.fit(X, sample_weight=WEIGHTS + 0.5)
    assert set(weighted.labels_) == {0, 1, 2}
    values = [run.objective for run in weighted.runs_]
    assert weighted.objective_ == min(values)


def test_spectral_start_counts_weights():
    """Node sizes are as if every node were repeated with the edges that it has."""
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    graph = neighbour_graph(distances, 30)  # in one part
    copies = np.repeat(np.arange(60), WEIGHTS + 1)
    found = graph_embedding(repeat_nodes(graph, WEIGHTS + 1.0), 3, 0)[copies]
    expected = graph_embedding(graph[copies][:, copies], 3, 0)
    scale = np.linalg.norm(found) / np.linalg.norm(expected)
    assert_allclose(found, scale * expected, rtol=1e-7, atol=1e-9)
    plain = spectral_labels(distances, 3, 10, 0)
    assert np.array_equal(spectral_labels(distances, 3, 10, 0, np.full(60, 7.0)), plain)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(60), "Negative values"),
        (np.r_[np.nan, np.ones(59)], "NaN or infinite at samples 0"),
        (np.r_[np.inf, np.ones(59)], "NaN or infinite"),
        (np.ones(59), r"shape \(59,\), expected \(60,\)"),
        (np.ones((60, 1)), r"shape \(60, 1\)"),
        (np.zeros(60), "at least one non-zero"),
        (["heavy"] * 60, "must hold numbers"),
    ],
)
@pytest.mark.parametrize("cls", [MCKUSaL, RobustMCKUSaL])
def test_bad_weights(cls, weights, message):
    with pytest.raises(ValueError, match=message):
        cls(2, 2).fit(X, sample_weight=weights)
    model = cls(2, 2, init=START % 2, lam=float("inf")).fit(X)
    with pytest.raises(ValueError, match=message):
        model.score(X, sample_weight=weights)


@pytest.mark.parametrize("cls", [MCKUSaL, RobustMCKUSaL])
def test_size_of_weights(cls):
    """Weights of any size that can be added up give the labels of weights near 1."""
    data = X if cls is MCKUSaL else HOLES
    options = {"subspace_dim": 4, "lam": float("inf"), "random_state": 0}
    w = WEIGHTS + 0.5
    expected = cls(3, gamma=1.0, **options).fit(data, sample_weight=w)
    for size in (2.0**-400, 2.0**400):
        found = cls(3, gamma=1.0, **options).fit(data, sample_weight=size * w)
        assert np.array_equal(found.labels_, expected.labels_)
        assert_allclose(found.objective_ / size, expected.objective_, rtol=1e-9)
    for size in (1e-310, 1e308):
        with pytest.raises(ValueError, match="divide all weights by their mean"):
            cls(3, **options).fit(data, sample_weight=np.full(60, size))


def test_what_does_not_go_with_weights():
    with pytest.raises(ValueError, match=r"gkiop_seeds \[\d+\] are samples of weight 0"):
        MCKUSaL(2, 2, init="gkiop", gkiop_seeds=[KEPT[0], np.argmin(WEIGHTS)]).fit(
            X, sample_weight=WEIGHTS
        )
    with pytest.raises(ValueError, match="n_samples=3 is fewer than"):
        MCKUSaL(2, 2).fit(X, sample_weight=np.arange(60) < 3)
    only_there = HOLES.copy()
    only_there[KEPT, 5] = np.nan
    only_there[WEIGHTS == 0, 5] = 1.0
    with pytest.raises(ValueError, match="column"):
        RobustMCKUSaL(2, 2).fit(only_there, sample_weight=WEIGHTS)


def test_no_warning_of_a_fit_with_weights():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MCKUSaL(3, 4, gamma=1.0, random_state=0).fit(X, sample_weight=WEIGHTS)
