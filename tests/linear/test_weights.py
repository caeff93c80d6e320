"""Weights of samples: 2 is the sample twice, 0 is no sample, from the same start."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from polyspan import AdaptiveMiCUSaL, MCKUSaL, MiCUSaL, RobustMiCUSaL
from polyspan.baselines import KGROUSE, KSubspaces
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases
from polyspan.metrics import average_subspace_distance
from support import require_torch

INF = float("inf")
N, M = 90, 12
DATA = make_union_of_subspaces(
    (30, 30, 30), n_features=M, subspace_dim=2, spread=0.5, noise=0.05, random_state=0
)
X = DATA.X
HOLES = mask_entries(X, 0.2, random_state=0)
WEIGHTS = np.random.RandomState(1).randint(0, 4, N)
REPEATS = np.repeat(np.arange(N), WEIGHTS)
START = draw_bases((3, M, 2), np.random.RandomState(3))
AFFINE_START = np.concatenate([START, X[[5, 40, 70]][:, :, None]], axis=2)


def options_of(affine, **options):
    return {"affine": affine, "init": AFFINE_START if affine else START, **options}


def assert_weights_are_repeats(model, X, weights=WEIGHTS):
    """Fit with weights, with repeated samples, and without samples of weight 0."""
    used = weights > 0
    model.fit(X, sample_weight=weights)
    labels, objective, bases = model.labels_, model.objective_, model.bases_
    predicted, score = model.predict(X), model.score(X, sample_weight=weights)
    repeats = np.repeat(np.arange(len(X)), weights)
    model.fit(X[repeats])
    assert_allclose(objective, model.objective_, rtol=1e-9)
    assert np.array_equal(labels[repeats], model.labels_)
    assert_allclose(score, model.score(X[repeats]), rtol=1e-9)
    model.fit(X[used], sample_weight=weights[used])
    assert_allclose(objective, model.objective_, rtol=1e-12)
    assert_allclose(bases, model.bases_, atol=1e-12)
    assert np.array_equal(labels[used], model.labels_)
    assert np.array_equal(labels[~used], predicted[~used])


@pytest.mark.parametrize("lam", [4.0, INF])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("residual", ["plain", "loo"])
def test_weights_are_repeats(lam, affine, solver, residual):
    options = options_of(affine, lam=lam, residual=residual)
    assert_weights_are_repeats(MiCUSaL(3, 2, solver=solver, **options), X)
    solver = {"power": "mm"}.get(solver, solver)
    assert_weights_are_repeats(RobustMiCUSaL(3, 2, solver=solver, **options), HOLES)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("holes", [False, True])
def test_weights_are_repeats_with_trimming(affine, holes):
    options = options_of(affine, trim=0.15)
    model = RobustMiCUSaL(3, 2, **options) if holes else MiCUSaL(3, 2, **options)
    assert_weights_are_repeats(model, HOLES if holes else X)


@pytest.mark.filterwarnings("ignore:subspaces .* have at most k2")
@pytest.mark.parametrize("X", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("init", ["random", "anneal"])
def test_weights_are_repeats_for_the_adaptive_model(X, init):
    # Starts of at least as many samples as features are drawn in the space of the data.
    assert_weights_are_repeats(AdaptiveMiCUSaL(5, 2, init=init, n_init=2, random_state=0), X)


def test_weights_are_repeats_for_k_subspaces():
    assert_weights_are_repeats(KSubspaces(3, 2, init=START), X)
    assert_weights_are_repeats(KSubspaces(3, 2, solver="exact", init=START), X)


def test_weights_are_repeats_after_annealing():
    assert_weights_are_repeats(MiCUSaL(3, 2, init="anneal", random_state=0), X)
    assert_weights_are_repeats(RobustMiCUSaL(3, 2, init="anneal", random_state=0), HOLES)


def test_weights_are_repeats_with_fewer_samples_than_features():
    wide = np.pad(X, ((0, 0), (0, 100)))
    assert_weights_are_repeats(MiCUSaL(3, 2, init=np.pad(START, ((0, 0), (0, 100), (0, 0)))), wide)


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_empty_subspaces_are_refilled_as_with_repeats(solver):
    far = AFFINE_START.copy()
    far[1:, :, -1] += 9.0  # nobody chooses these at first
    model = MiCUSaL(3, 2, lam=INF, affine=True, solver=solver, init=far)
    assert_weights_are_repeats(model, X)
    model.fit(X, sample_weight=WEIGHTS)
    assert len(np.unique(model.labels_)) == 3  # they were refilled


@pytest.mark.parametrize("kind", [MiCUSaL, MCKUSaL])
def test_a_weight_does_not_make_samples_more_or_fewer(kind):
    """Subspaces need as many different samples as directions, whatever these weigh."""
    first = np.arange(N) < 5
    for weights in (first, 10.0 * first, 0.1 * first):
        with pytest.raises(ValueError, match=r"n_samples=5 is fewer .* with a weight above 0"):
            kind(3, 2).fit(X, sample_weight=weights)
        with pytest.raises(ValueError, match="n_samples=5 is fewer"):
            kind(3, 2).fit(X[:5], sample_weight=weights[:5])
    assert kind(3, 2, random_state=0).fit(X, sample_weight=np.full(N, 0.01)).n_iter_ > 0


def test_weights_of_one_change_no_bit():
    plain = MiCUSaL(3, 2, random_state=0).fit(X)
    for weights in (np.ones(N), 1.0, [1] * N):
        model = MiCUSaL(3, 2, random_state=0).fit(X, sample_weight=weights)
        assert np.array_equal(model.bases_, plain.bases_)
        assert model.objective_ == plain.objective_


def test_a_common_factor_is_one_of_lam():
    model = MiCUSaL(3, 2, lam=4.0, init=START).fit(X, sample_weight=3.0 + WEIGHTS)
    scaled = MiCUSaL(3, 2, lam=1.0, init=START).fit(X, sample_weight=4.0 * (3.0 + WEIGHTS))
    assert_allclose(scaled.objective_, model.objective_, rtol=1e-12)
    assert_allclose(scaled.bases_, model.bases_, atol=1e-10)


@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("affine", [False, True])
def test_the_objective_never_rises(solver, affine):
    weights = np.random.RandomState(2).gamma(0.3, size=N)
    model = MiCUSaL(3, 2, solver=solver, affine=affine, init="random", random_state=1)
    history = model.fit(X, sample_weight=weights).objective_history_
    assert (np.diff(history) <= 1e-10 * history[0]).all()
    history = RobustMiCUSaL(3, 2, init="random", random_state=1, affine=affine).fit(
        HOLES, sample_weight=weights
    ).objective_history_  # fmt: skip
    assert (np.diff(history) <= 1e-10 * history[0]).all()


@pytest.mark.parametrize("affine", [False, True])
def test_one_subspace_is_weighted_pca(affine):
    weights = np.random.RandomState(2).gamma(1.0, size=N)
    model = MiCUSaL(1, 3, affine=affine, solver="exact", random_state=0)
    model.fit(X, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights)
    covariance = np.cov(X.T, aweights=weights, bias=True)
    vectors = np.linalg.eigh(covariance)[1][:, -3:]
    assert_allclose(model.anchors_[0] if affine else model.mean_, mean, atol=1e-12)
    assert average_subspace_distance(model.bases_, vectors[None]) < 1e-7
    power = MiCUSaL(1, 3, affine=affine, tol=0.0, max_iter=3000, random_state=0)
    power.fit(X, sample_weight=weights)
    assert average_subspace_distance(power.bases_, vectors[None]) < 1e-5


def test_one_subspace_with_holes_ignores_samples_of_little_weight():
    rng = np.random.RandomState(0)
    bad = mask_entries(rng.standard_normal((40, M)), 0.2, random_state=1)
    both = np.concatenate([HOLES, bad])
    weights = np.where(np.arange(N + 40) < N, 1.0, 1e-9)
    alone = RobustMiCUSaL(1, 2, center=True, random_state=0).fit(HOLES)
    weighted = RobustMiCUSaL(1, 2, center=True, random_state=0).fit(both, sample_weight=weights)
    plain = RobustMiCUSaL(1, 2, center=True, random_state=0).fit(both)
    assert average_subspace_distance(weighted.bases_, alone.bases_) < 1e-4
    assert average_subspace_distance(plain.bases_, alone.bases_) > 0.1


def test_two_sensors():
    """Samples of a second, ten times as noisy sensor do no harm with weights 1/σ²."""
    ratios, without = [], []
    for seed in range(3):
        data = make_union_of_subspaces(
            (60, 60, 60), n_features=40, subspace_dim=4, spread=0.5, noise=0.0, random_state=seed
        )
        noisy = np.arange(180) % 2 == 1
        sigma = np.where(noisy, 0.5, 0.05)
        noise = np.random.RandomState(seed).standard_normal((180, 40)) / np.sqrt(40)
        both = data.X + sigma[:, None] * noise
        fits = [
            MiCUSaL(3, 4, lam=INF, random_state=0).fit(part, sample_weight=weights)
            for part, weights in ((both[~noisy], None), (both, sigma**-2.0), (both, None))
        ]
        clean, weighted, plain = (average_subspace_distance(f.bases_, data.bases) for f in fits)
        ratios.append(weighted / clean)
        without.append(plain / clean)
    assert max(ratios) <= 1.1
    assert min(without) > 1.5


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.r_[-1.0, np.ones(N - 1)], "Negative values .* at samples 0;"),
        (np.r_[1.0, np.nan, np.ones(N - 2)], "NaN or infinite at samples 1:"),
        (np.r_[np.inf, np.ones(N - 1)], "NaN or infinite at samples 0:"),
        (np.zeros(N), "at least one non-zero"),
        (np.ones(N - 1), r"shape \(89,\), expected \(90,\)"),
        (np.ones((N, 1)), r"shape \(90, 1\), expected \(90,\)"),
        (["a"] * N, "must hold numbers"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "score", "partial_fit"])
def test_bad_weights_are_refused(weights, message, method):
    if method == "partial_fit" and not np.any(np.asarray(weights) != 0):
        return
    model = MiCUSaL(3, 2, random_state=0)
    model = model.fit(X) if method == "score" else model
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, sample_weight=weights)


def test_noise_variance_does_not_look_at_samples_without_weight():
    far, used = X.copy(), np.arange(N) > 0
    far[0] = 1e200
    model = MiCUSaL(3, 2, init=START).fit(far, sample_weight=used)
    assert_allclose(model.noise_variance_, model.fit(X[1:]).noise_variance_, rtol=1e-9)
    assert model.noise_variance_ > 0


def test_a_feature_that_only_samples_without_weight_have_is_named():
    holes = HOLES.copy()
    holes[5:, 3] = np.nan
    with pytest.raises(ValueError, match=r"columns of X are never observed in a row with a sample"):
        RobustMiCUSaL(3, 2).fit(holes, sample_weight=np.arange(N) >= 5)


def test_grouse_takes_no_weights():
    with pytest.raises(ValueError, match="solver='grouse' needs sample_weight=None"):
        RobustMiCUSaL(3, 2, solver="grouse").fit(HOLES, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match="sample_weight"):
        KGROUSE(3, 2).fit(HOLES, sample_weight=WEIGHTS)


def test_samples_without_weight_and_with_few_entries_have_no_label():
    holes = HOLES.copy()
    holes[[0, 1], 2:] = np.nan
    with pytest.warns(UserWarning, match="2 of 90 rows have at most"):
        model = RobustMiCUSaL(3, 2, random_state=0).fit(holes, sample_weight=np.arange(N) != 0)
    assert model.labels_[:2].tolist() == [-1, -1]
    assert (model.labels_[2:] >= 0).all()


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("holes", [False, True])
def test_streams_take_weights(affine, holes):
    """With all first samples in one batch: the fit that begins a stream waits for rows."""
    data, kind = (HOLES, RobustMiCUSaL) if holes else (X, MiCUSaL)
    options = options_of(affine, forget_factor=0.9)
    order = np.random.RandomState(0).permutation(N)
    data, weights = data[order], np.where(np.arange(N) < 80, 1 + WEIGHTS % 2, WEIGHTS)
    options["init"] = options["init"][:2]
    weighted, repeated = kind(2, 2, **options), kind(2, 2, **options)
    for rows in (slice(0, 60), slice(60, 75), slice(75, 90)):
        own = weights[rows]
        weighted.partial_fit(data[rows], sample_weight=own)
        repeated.partial_fit(np.repeat(data[rows], own, axis=0))
        labels = weighted.labels_
        weighted.partial_fit(data[rows], sample_weight=np.zeros(len(own)))  # nothing happens
        assert np.array_equal(weighted.labels_, labels)
        assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-9)
        assert np.array_equal(np.repeat(labels, own), repeated.labels_)
    assert_allclose(weighted.mean_, repeated.mean_, atol=1e-12)
    assert average_subspace_distance(weighted.bases_, repeated.bases_) < 1e-6
    assert weighted.n_samples_seen_ == repeated.n_samples_seen_ == weights.sum()


def test_a_stream_may_begin_without_weight_and_in_small_batches():
    model, other = (MiCUSaL(2, 1, random_state=0) for _ in range(2))
    model.partial_fit(X[:10], sample_weight=np.zeros(10))
    assert not hasattr(model, "bases_")
    for begin in range(0, N, 10):
        rows = slice(begin, begin + 10)
        weights = WEIGHTS[rows] > 0
        model.partial_fit(X[rows], sample_weight=weights)
        other.partial_fit(X[rows][weights])
    assert np.array_equal(model.bases_, other.bases_)
    assert np.array_equal(model.labels_[WEIGHTS[-10:] > 0], other.labels_)


def test_weights_are_routed():
    weights = 1.0 + WEIGHTS
    with sklearn.config_context(enable_metadata_routing=True):
        model = MiCUSaL(3, 2, init=START)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        model.set_partial_fit_request(sample_weight=True)
        pipe = make_pipeline(Normalizer(), model).fit(X, sample_weight=weights)
        direct = MiCUSaL(3, 2, init=START).fit(Normalizer().transform(X), sample_weight=weights)
        assert np.array_equal(pipe[-1].bases_, direct.bases_)
        scored = pipe.score(X, sample_weight=weights)
        assert scored == direct.score(Normalizer().transform(X), sample_weight=weights)
        search = GridSearchCV(model, {"lam": [1.0, 4.0]}, cv=KFold(2))
        search.fit(X, sample_weight=weights)
        half = np.arange(N) >= N // 2
        first = MiCUSaL(3, 2, lam=1.0, init=START).fit(X[half], sample_weight=weights[half])
        expected = first.score(X[~half], sample_weight=weights[~half])
        assert_allclose(search.cv_results_["split0_test_score"][0], expected)
        for kind in (RobustMiCUSaL, AdaptiveMiCUSaL, KSubspaces):
            kind().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    labels = MiCUSaL(3, 2, init=START).fit_predict(X, sample_weight=weights)
    assert np.array_equal(labels, MiCUSaL(3, 2, init=START).fit(X, sample_weight=weights).labels_)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_tensors_take_weights(holes, affine):
    torch = require_torch()
    data, kind = (HOLES, RobustMiCUSaL) if holes else (X, MiCUSaL)
    for trim in (0.0, 0.1):
        options = options_of(affine, trim=trim)
        plain = kind(3, 2, **options).fit(data, sample_weight=WEIGHTS)
        with sklearn.config_context(array_api_dispatch=True):
            tensor = torch.asarray(data)
            model = kind(3, 2, **options).fit(tensor, sample_weight=WEIGHTS)
            score = model.score(tensor, sample_weight=torch.asarray(WEIGHTS))
        assert_allclose(model.objective_, plain.objective_, rtol=1e-9)
        assert np.array_equal(np.asarray(model.labels_), plain.labels_)
        assert_allclose(score, plain.score(data, sample_weight=WEIGHTS), rtol=1e-9)
