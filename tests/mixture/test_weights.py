"""Weights of samples: as repeats and removal, in every form of the mixture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.utils.metadata_routing import get_routing_for_object

from polyspan import SubspaceMixture
from polyspan.base.arrays import to_numpy
from polyspan.data.missing import find_patterns
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.mixture import starts
from polyspan.mixture._solve.complete import RowWeights
from polyspan.mixture._solve.em import expect_sparse
from polyspan.mixture._solve.masked import MaskedSamples
from polyspan.mixture._solve.noise import NoiseRule
from polyspan.mixture.problem import Problem

DATA = make_union_of_subspaces(
    (40, 40, 30), n_features=9, subspace_dim=2, spread=0.7, noise=0.1, random_state=0
)
HOLES = mask_entries(DATA.X, 0.2, random_state=0)
COUNTS = np.random.default_rng(0).integers(0, 4, len(DATA.X))
REPEATS = np.repeat(np.arange(len(DATA.X)), COUNTS)
START = DATA.labels.copy()
START[::7] = (START[::7] + 1) % 3
GROUPS = np.where(np.arange(len(DATA.X)) % 2, "a", "b")

OPTIONS = [
    {},
    {"closeness": 0.0, "noise": "shared"},
    {"affine": False},
    {"affine": False, "center": False, "noise": 0.1},
    {"outliers": True},
    {"outliers": 0.1},
    {"subspace_dim": (1, 2, 3)},
]


def fit(X, init, **options):
    model = SubspaceMixture(3, **{"subspace_dim": 2, "tol": 1e-7, "max_iter": 300} | options)
    return model.set_params(init=init)


@pytest.mark.parametrize("X", [DATA.X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_weights_are_repeats(X, options):
    weighted = fit(X, START, **options).fit(X, sample_weight=COUNTS)
    repeated = fit(X, START[REPEATS], **options).fit(X[REPEATS])
    assert_allclose(weighted.log_likelihood_, repeated.log_likelihood_, rtol=1e-9)
    assert weighted.n_iter_ == repeated.n_iter_
    assert np.array_equal(weighted.labels_[REPEATS], repeated.labels_)
    assert len(weighted.labels_) == len(X)
    assert_allclose(weighted.means_, repeated.means_, atol=1e-6)
    score = weighted.score(X, sample_weight=COUNTS)
    assert_allclose(score, repeated.score(X[REPEATS]), rtol=1e-8)


@pytest.mark.parametrize("X", [DATA.X, HOLES], ids=["complete", "holes"])
def test_weights_are_repeats_in_groups_of_noise(X):
    weighted = fit(X, START).fit(X, sample_weight=COUNTS, noise_groups=GROUPS)
    repeated = fit(X, START[REPEATS]).fit(X[REPEATS], noise_groups=GROUPS[REPEATS])
    assert_allclose(weighted.log_likelihood_, repeated.log_likelihood_, rtol=1e-9)
    assert_allclose(weighted.noise_factors_, repeated.noise_factors_, rtol=1e-6)
    assert np.array_equal(weighted.labels_[REPEATS], repeated.labels_)


@pytest.mark.parametrize("X", [DATA.X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("options", [{}, {"outliers": True}, {"n_init": 2}], ids=str)
def test_a_weight_of_zero_is_removal(X, options):
    kept = COUNTS > 0
    X = X.copy()
    X[np.flatnonzero(~kept)[0]] = 1e6  # no sum may see it
    weighted = SubspaceMixture(3, 2, random_state=0, **options).fit(
        X, sample_weight=kept.astype(float) * 2
    )
    removed = SubspaceMixture(3, 2, random_state=0, **options).fit(
        X[kept], sample_weight=np.full(kept.sum(), 2)
    )
    assert weighted.log_likelihood_ == removed.log_likelihood_
    assert np.array_equal(weighted.labels_[kept], removed.labels_)


@pytest.mark.parametrize("X", [DATA.X, HOLES], ids=["complete", "holes"])
def test_weighted_pca(X):
    weighted = SubspaceMixture(1, 2, closeness=0.0).fit(X, sample_weight=COUNTS)
    repeated = SubspaceMixture(1, 2, closeness=0.0).fit(X[REPEATS])
    assert_allclose(weighted.log_likelihood_, repeated.log_likelihood_, rtol=1e-9)
    overlap = np.linalg.svd(weighted.bases_[0].T @ repeated.bases_[0])[1]
    assert_allclose(overlap, 1, rtol=1e-9)


def test_many_features_take_factors():
    data = make_union_of_subspaces((20, 20), n_features=520, subspace_dim=2, random_state=0)
    counts = np.tile([1, 2], 20)
    rows = np.repeat(np.arange(40), counts)
    options = {"tol": 1e-9, "closeness": 0.0}
    weighted = SubspaceMixture(2, 2, init=data.labels, **options).fit(data.X, sample_weight=counts)
    repeated = SubspaceMixture(2, 2, init=data.labels[rows], **options).fit(data.X[rows])
    assert np.array_equal(weighted.labels_, data.labels)
    assert np.array_equal(weighted.labels_[rows], repeated.labels_)
    assert_allclose(weighted.log_likelihood_, repeated.log_likelihood_, rtol=1e-9)


def test_sparse_sums_are_weighted():
    seen = ~np.isnan(HOLES)
    values = np.where(seen, HOLES, 0.0)
    rows = REPEATS
    problem = Problem.of(HOLES, "shared", affine=True)
    rng = np.random.RandomState(0)
    single = starts.fit_pooled(problem, 2, rng)[1]
    shrinkage = starts.Shrinkage(single, 1.0)
    gaussians = starts.annealed_start(problem, single, 3, shrinkage, rng, steps=5, hottest=0.1)
    rule = NoiseRule("shared", 1e-6)
    weighted = MaskedSamples(
        find_patterns(values, seen), True, rule, None, RowWeights(COUNTS.astype(float))
    )
    repeated = MaskedSamples(find_patterns(values[rows], seen[rows]), True, rule)
    likely = likely_rows = None
    for _ in range(2):
        ours, likely = expect_sparse(weighted, gaussians, likely)
        theirs, likely_rows = expect_sparse(repeated, gaussians, likely_rows)
        assert np.array_equal(likely[rows], likely_rows)
        for a, b in zip(vars(ours).values(), vars(theirs).values(), strict=True):
            assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_drawn_starts_take_weights_as_chances(monkeypatch):
    monkeypatch.setattr(starts, "START_SAMPLES", 12)
    seen = []
    plain = starts.components_around_seeds

    def spy(samples, *arguments):
        seen.append(samples.values)
        return plain(samples, *arguments)

    monkeypatch.setattr(starts, "components_around_seeds", spy)
    weights = np.where(DATA.labels == 0, 1e-12, 1.0)
    SubspaceMixture(3, 2, init="anneal", random_state=0).fit(DATA.X, sample_weight=weights)
    drawn = seen[0]
    mean = (DATA.X * weights[:, None]).sum(axis=0) / weights.sum()
    near = [np.abs(DATA.X - mean - row).sum(axis=1).argmin() for row in drawn]
    assert len(drawn) == 36
    assert (DATA.labels[near] > 0).all()


@pytest.mark.parametrize("X", [DATA.X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["one noise", "groups"])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_other_namespaces(X, groups):
    import array_api_strict as strict

    options = {"outliers": True, "subspace_dim": (1, 2, 3), "max_iter": 8, "tol": 0.0}
    given = {"sample_weight": COUNTS, "noise_groups": groups}
    ours = fit(X, START, **options).fit(X, **given)
    with config_context(array_api_dispatch=True):
        theirs = fit(X, START, **options).fit(strict.asarray(X), **given)
        probability = to_numpy(theirs.outlier_probability(strict.asarray(X)))
    assert_allclose(theirs.log_likelihood_, ours.log_likelihood_, rtol=1e-9)
    assert np.array_equal(to_numpy(theirs.labels_), ours.labels_)
    assert_allclose(probability, ours.outlier_probability(X), atol=1e-7)


def test_it_is_routed():
    with config_context(enable_metadata_routing=True):
        model = SubspaceMixture().set_fit_request(sample_weight=True, noise_groups=True)
        request = get_routing_for_object(model.set_score_request(sample_weight=True))
    assert request.fit.requests["sample_weight"] is True
    assert request.fit.requests["noise_groups"] is True
    assert request.score.requests["sample_weight"] is True


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-COUNTS, "Negative"),
        (COUNTS[:5], "shape"),
        (0 * COUNTS, "non-zero"),
        (COUNTS + np.nan, "NaN"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        SubspaceMixture(3, 2).fit(DATA.X, sample_weight=weights)


def test_start_labels():
    easy = make_union_of_subspaces(
        (60, 60, 60), n_features=15, subspace_dim=2, spread=0.9, noise=0.01, random_state=1
    )
    model = SubspaceMixture(3, 2, init=easy.labels).fit(easy.X)
    assert np.mean(model.labels_ == easy.labels) > 0.97  # label l stays subspace l
    assert np.diff(model.log_likelihood_history_).min() > -1e-8
    for labels, message in (
        (DATA.labels[:5], "shape"),
        (DATA.labels + 1, "outside 0"),
        (DATA.labels + 0.5, "whole numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            SubspaceMixture(3, 2, init=labels).fit(DATA.X)
    with pytest.warns(UserWarning, match="no sample that counts to the subspaces 0"):
        SubspaceMixture(3, 2, init=DATA.labels).fit(DATA.X, sample_weight=DATA.labels)
    with pytest.warns(RuntimeWarning, match="n_init=3 is not used"):
        SubspaceMixture(3, 2, init=DATA.labels, n_init=3).fit(DATA.X)
