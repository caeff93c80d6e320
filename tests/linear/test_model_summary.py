"""Summaries of fitted models: their words and their tables."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from polyspan import MCKUSaL, MiCUSaL, RobustMCKUSaL, RobustMiCUSaL, SubspaceMixture
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.metrics import principal_angles

DATA = make_union_of_subspaces(
    (40, 30, 20), n_features=16, subspace_dim=3, spread=0.2, noise=0.1, random_state=0
)
X = DATA.X
MODEL = MiCUSaL(3, 3, random_state=0).fit(X)


def words(summary):
    """Return what a summary says, in one line."""
    return " ".join(summary.sentences)


def test_the_table_holds_what_was_learned():
    table = MODEL.summary(X).table
    sizes = np.bincount(MODEL.labels_)
    assert table["samples"].tolist() == sizes.tolist()
    assert table["dimension"].tolist() == [3, 3, 3]
    for p in range(3):
        others = [q for q in range(3) if q != p]
        nearest = min(others, key=lambda q: MODEL.subspace_distances_[p, q])
        assert table["nearest"][p] == nearest
        angles = np.degrees(principal_angles(MODEL.bases_[p], MODEL.bases_[nearest]))
        assert_allclose(table["smallest_angle"][p], angles.min())
        assert_allclose(table["largest_angle"][p], angles.max())
        own = X[MODEL.labels_ == p]
        residual = -MODEL.score_samples(own)
        assert_allclose(table["residual"][p], residual.mean())
        total = ((own - MODEL.mean_) ** 2).sum()
        assert_allclose(table["explained"][p], 1 - residual.sum() / total)
        unsure = MODEL.memberships(own).max(axis=1) < 0.9
        assert_allclose(table["unsure"][p], unsure.mean())
    assert 0 < table["unsure"].max() < 1
    assert pd.DataFrame(table).shape == (3, 10)


def test_the_words():
    summary = MODEL.summary(X)
    text = words(summary)
    assert text.startswith("MiCUSaL: 3 subspaces of 16 features, of dimension 3 each. Subspaces")
    unsure = np.flatnonzero(MODEL.memberships(X).max(axis=1) < 0.9)
    assert f"Unsure are {len(unsure)} of 90 samples ({len(unsure) / 90:.1%})" in text
    assert f"counted from 0: {unsure[0]}, {unsure[1]}, " in text
    deviation = np.sqrt(MODEL.noise_variance_)
    facts = dict(summary.facts)
    assert f"The noise has a standard deviation of {deviation:.3g} in every" in facts["Noise"]
    assert facts["The fit"].startswith(f"The fit converged after {MODEL.n_iter_} iteration")
    above, table = repr(summary).split("\n\n")
    assert above.replace("\n", " ") == text
    assert max(map(len, above.split("\n"))) <= 80
    lines = table.split("\n")
    assert lines[0].split()[:3] == ["subspace", "samples", "dimension"]
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    html = summary._repr_html_()
    assert html.count("<tr>") == 4
    assert ">smallest angle</th>" in html


def test_without_samples_it_uses_what_the_fit_has_stored():
    short = MODEL.summary()
    assert set(short.table) == {
        "subspace", "samples", "dimension", "nearest", "distance", "smallest_angle",
        "largest_angle",
    }  # fmt: skip
    assert short.table["samples"].sum() == 90
    assert short.sentences[-1].startswith("With summary(X) it also says")


def test_what_is_wrong_with_a_fit_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MiCUSaL(3, 3, init="random", n_init=1, max_iter=1, random_state=0).fit(X)
    assert "did not converge in 1 iteration: raise max_iter or tol" in words(model.summary())
    model.labels_ = np.zeros(90, dtype=int)
    model.converged_ = True
    text = words(model.summary())
    assert "Subspaces without samples: 1, 2; n_subspaces may be too large." in text
    model.bases_ = np.stack([model.bases_[0]] * 2 + [model.bases_[2]])
    assert "Subspaces 0 and 1 are equal." in words(model.summary())


def test_unequal_dimensions_and_points():
    model = MiCUSaL(3, 3, random_state=0).fit(X)
    model.bases_ = model.bases_.copy()
    model.bases_[1, :, 1:] = 0.0
    assert "of dimensions 3, 1, 3." in words(model.summary(X))
    points = MiCUSaL(3, 0, affine=True, lam=float("inf"), n_init=2, random_state=0).fit(X)
    text = words(points.summary(X))
    assert text.startswith("MiCUSaL: 3 affine subspaces of 16 features, of dimension 0 each.")
    assert np.isnan(points.summary().table["smallest_angle"]).all()


def test_one_subspace_has_no_neighbour():
    table = MiCUSaL(1, 3, random_state=0).fit(X).summary(X).table
    assert table["nearest"].tolist() == [-1]
    assert "unsure" not in table


def test_samples_that_cannot_be_judged_are_counted():
    holes = mask_entries(X, 0.2, random_state=0)
    model = RobustMiCUSaL(3, 3, random_state=0).fit(holes)
    holes[0, 2:] = np.nan
    summary = model.summary(holes)
    assert summary.table["samples"].sum() == 89
    left_out = "1 sample with too few observed entries cannot be judged."
    assert left_out in summary.sentences
    assert (summary.table["explained"] > 0.5).all()


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (SubspaceMixture(3, 3, random_state=0), {"weight", "noise", "smallest_angle"}),
        (MCKUSaL(3, 3, kernel="linear", random_state=0), set()),
        (MCKUSaL(3, 3, low_rank=40, random_state=0), set()),
    ],
    ids=["mixture", "kernel", "low rank"],
)
def test_other_models(model, columns):
    summary = model.fit(X).summary(X)
    assert columns | {"samples", "residual", "explained", "unsure"} <= set(summary.table)
    assert ("smallest_angle" in summary.table) == hasattr(model, "bases_")
    assert ((summary.table["explained"] > 0) & (summary.table["explained"] < 1)).all()
    assert summary.table["samples"].sum() == 90


def flat_samples(shift, n=30, noise=0.02, seed=0):
    """Return samples near two parallel lines of R^6."""
    rng = np.random.RandomState(seed)
    found = rng.standard_normal((2 * n, 1)) * np.eye(6)[0]
    found[n:, 1] += shift
    return found + noise * rng.standard_normal(found.shape)


def affine_model(shift, directions=(0, 0)):
    """Return a model of two lines through points that are `shift` apart."""
    model = MiCUSaL(2, 1, affine=True, random_state=0).fit(flat_samples(5.0))
    model.bases_ = np.eye(6)[list(directions)][:, :, None]
    model.anchors_ = np.array([[0.0] * 6, [7.0, shift, *[0.0] * 4]])
    model.noise_variance_ = 0.01
    return model


def test_points_are_as_far_apart_as_they_are():
    rng = np.random.RandomState(0)
    corners = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 3.0]])
    points = np.repeat(corners, 20, axis=0) + 0.1 * rng.standard_normal((60, 2))
    model = MiCUSaL(3, 0, affine=True, random_state=0, lam=float("inf")).fit(points)
    summary = model.summary(points)
    assert "equal" not in words(summary)
    far = np.linalg.norm(model.anchors_[:, None] - model.anchors_, axis=2)
    far[np.diag_indices(3)] = np.inf
    assert summary.table["nearest"].tolist() == far.argmin(axis=1).tolist()
    assert_allclose(summary.table["apart"], far.min(axis=1))
    a, b = sorted(np.unravel_index(far.argmin(), far.shape))
    nearest = f"Subspaces {a} and {b} are nearest: they are {far.min():.3g} apart."
    assert nearest in summary.sentences


def test_parallel_lines_are_not_equal():
    summary = affine_model(5.0).summary()
    assert_allclose(summary.table["apart"], 5.0)  # not along the lines
    assert "Subspaces 0 and 1 are parallel: their directions are equal, their" in words(summary)
    assert "are equal up" not in words(summary)
    assert "Subspaces 0 and 1 are equal up to the noise." in affine_model(0.05).summary().sentences
    crossed = affine_model(0.0, (0, 1)).summary()
    assert "their angles are 90°" in str(crossed)
    assert_allclose(crossed.table["apart"], 7.0)


def test_the_position_decides_which_is_nearest_and_then_the_direction():
    model = MiCUSaL(3, 1, affine=True, random_state=0).fit(X)
    model.noise_variance_ = 1e-4
    model.bases_ = np.eye(16)[[0, 0, 1]][:, :, None]
    model.anchors_ = np.eye(16)[[2, 3, 2]] * np.array([[0.0], [9.0], [0.005]])
    # The first and the last cross in one point, up to the noise; the first two are far apart.
    assert model.summary().table["nearest"].tolist() == [2, 0, 0]
    model.anchors_ = np.zeros((3, 16))
    assert model.summary().table["nearest"].tolist() == [1, 0, 0]


def test_mixtures_with_other_means_are_not_equal():
    model = SubspaceMixture(2, 1, random_state=0).fit(flat_samples(5.0))
    model.bases_ = np.stack([model.bases_[0]] * 2)
    model.means_ = np.stack([model.means_[0], model.means_[0] + 4.0 * model.bases_[0, :, 0]])
    assert_allclose(model.summary().table["apart"], 4.0)
    assert "equal up" not in words(model.summary())
    model.means_ = np.stack([model.means_[0]] * 2)
    assert "Subspaces 0 and 1 are equal up to the noise." in model.summary().sentences


def test_a_model_without_labels_needs_samples():
    model = MiCUSaL(3, 3, random_state=0).fit(X)
    del model.labels_  # as in a saved model of a dask array
    with pytest.raises(ValueError, match=r"has no labels_: .* give samples, summary\(X\)"):
        model.summary()
    assert words(model.summary(X)) == words(MODEL.summary(X))


def test_all_equal_pairs_are_named():
    model = MiCUSaL(4, 3, random_state=0).fit(X)
    model.bases_ = model.bases_[[0, 1, 0, 1]]
    assert "Subspaces 0 and 2, 1 and 3 are equal." in model.summary().sentences


def test_trimmed_samples_are_named_and_not_counted():
    model = MiCUSaL(3, 3, trim=0.1, random_state=0).fit(X)
    summary = model.summary()
    assert dict(summary.facts)["Trimmed"] == "9 of 90 samples of the fit"
    kept = np.bincount(model.labels_[~model.trimmed_], minlength=3)
    assert summary.table["samples"].tolist() == kept.tolist()
    assert "Trimmed" not in dict(MODEL.summary().facts)


@pytest.mark.parametrize(
    "model",
    [
        MiCUSaL(3, 3, random_state=0),
        MiCUSaL(3, 3, random_state=0, trim=0.1),
        RobustMiCUSaL(3, 3, random_state=0),
        SubspaceMixture(3, 3, random_state=0),
        MCKUSaL(3, 3, random_state=0),
        RobustMCKUSaL(3, 3, random_state=0),
    ],
    ids=["complete", "trimmed", "masked", "mixture", "kernel", "masked kernel"],
)
def test_samples_of_weight_zero_are_not_counted(model):
    weights = np.ones(90)
    weights[::9] = 0.0
    model.fit(X, sample_weight=weights)
    kept = weights > 0
    if model.get_params().get("trim"):
        kept &= ~model.trimmed_
    sizes = np.bincount(model.labels_[kept], minlength=3)
    assert model.summary().table["samples"].tolist() == sizes.tolist()
    assert dict(model._short_summary().facts)["Samples"].startswith(f"{kept.sum()} (")
    assert model.fit(X, sample_weight=np.full(90, 2.0)).summary().table["samples"].sum() >= 81
    again = pickle.loads(pickle.dumps(model.fit(X, sample_weight=weights)))
    assert again.summary().table["samples"].tolist() == sizes.tolist()


def test_samples_of_weight_zero_in_the_last_batch_are_not_counted():
    model = MiCUSaL(3, 3, random_state=0).partial_fit(X)
    model.partial_fit(X[:20], sample_weight=np.r_[np.zeros(5), np.ones(15)])
    assert model.summary().table["samples"].sum() == 15
    assert model.partial_fit(X[:20]).summary().table["samples"].sum() == 20


def test_a_few_new_samples_do_not_say_that_a_subspace_is_too_many():
    text = words(MODEL.summary(X[:1]))
    assert "too large" not in text
    stream = MiCUSaL(3, 3, random_state=0).partial_fit(X).partial_fit(X[:2])
    summary = stream.summary()
    assert "too large" not in words(summary)
    assert dict(summary.facts)["The fit"].startswith("The update with the last batch ")
    assert "The noise of the last batch has" in words(summary)


def test_numbers_that_read_the_same_are_not_repeated():
    model = affine_model(0.0, (0, 1))
    assert "90° to 90°" not in words(model.summary())
    wide = MiCUSaL(2, 2, random_state=0).fit(X)
    wide.bases_ = np.eye(16)[[[0, 1], [2, 3]]].swapaxes(1, 2)
    assert "are nearest: their angles are 90°." in words(wide.summary())


def test_a_mean_that_may_be_chance_is_named():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    lines = [rng.standard_normal((80, 2)) @ basis[:, k : k + 2].T for k in (0, 2)]
    X = np.concatenate(lines) + 0.01 * rng.standard_normal((160, 6))
    model = MiCUSaL(2, 2, random_state=0)
    for shift, hint in ((0.0, True), (1.0, False)):
        model.fit(X + shift)
        for summary in (model.summary(), model.summary(X + shift)):
            assert ("center=False" in summary.sentences[-1]) == hint
    unscaled = model.set_params(lam=4.0).fit(X)  # says nothing about the norm of samples
    assert "center=False" not in " ".join(unscaled.summary().sentences)
