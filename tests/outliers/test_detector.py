"""SubspaceOutlierDetector: invariances, thresholds, contributions, odd tables."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from polyspan import SubspaceOutlierDetector, load_model, save_model
from polyspan.datasets import mask_entries
from polyspan.outliers.learning import complete, row_keys, share_range
from polyspan.outliers.members import column_surprises, surprise


def table(n=120, m=5, seed=0):
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).standard_normal((2, m))  # the same for every seed
    return rng.standard_normal((n, 2)) @ loadings + 0.2 * rng.standard_normal((n, m))


X = table()
HOLES = mask_entries(X, 0.15, random_state=0)
NEW = table(30, seed=3)
COMPLETE, HOLED = SubspaceOutlierDetector().fit(X), SubspaceOutlierDetector().fit(HOLES)


@pytest.mark.parametrize(("detector", "rows"), [(COMPLETE, X), (HOLED, HOLES), (COMPLETE, NEW)])
def test_contributions_sum_to_minus_the_score(detector, rows):
    parts = detector.contributions(rows)
    assert parts.shape == rows.shape
    assert parts.min() >= 0
    assert_allclose(parts.sum(axis=1), -detector.score_samples(rows), rtol=1e-9)
    assert (parts[np.isnan(rows)] == 0).all()


@pytest.mark.parametrize("detector", [COMPLETE, HOLED])
def test_a_wrong_cell_contributes_most(detector):
    rows = np.repeat(NEW[:10], 5, axis=0)
    columns = np.tile(np.arange(5), 10)
    rows[np.arange(50), columns] += 6.0 * X.std(axis=0)[columns]
    assert (detector.contributions(rows).argmax(axis=1) == columns).all()
    assert (detector.predict(rows) == -1).all()


def test_contributions_of_one_gaussian_by_hand():
    """With one component the parts follow from the inverse covariance of observed entries."""
    gaussians = SubspaceOutlierDetector().fit(table(8, 3))._ensemble.sets[0][0]
    assert gaussians.means.shape[0] == 1
    covariance = gaussians.factors[0] @ gaussians.factors[0].T + gaussians.noise[0] * np.eye(3)
    rows = np.array([[1.0, -0.5, 0.3], [1.0, np.nan, 0.3]])
    for row in rows:
        seen = ~np.isnan(row)
        inverse = np.linalg.inv(covariance[np.ix_(seen, seen)])
        weighted = inverse @ (row - gaussians.means[0])[seen]
        total = 0.5 * (row - gaussians.means[0])[seen] @ weighted
        squares = weighted**2 / np.diag(inverse)
        assert_allclose(surprise(row[None], gaussians), [total], rtol=1e-8)
        found = column_surprises(row[None], gaussians)[0, seen]
        assert_allclose(found, total * squares / squares.sum(), rtol=1e-6)


def test_scaled_and_shifted_columns_change_nothing():
    factors, shifts = np.array([1e-3, 7.0, 1e4, 0.5, 20.0]), np.array([0.0, 3.0, -1e3, 9.0, 1.0])
    for detector, rows in ((COMPLETE, X), (HOLED, HOLES)):
        other = SubspaceOutlierDetector().fit(rows * factors + shifts)
        assert_allclose(
            other.score_samples(NEW * factors + shifts), detector.score_samples(NEW), rtol=1e-4
        )


def test_rows_are_judged_by_themselves():
    order = np.random.default_rng(0).permutation(len(X))
    rows = np.vstack([X, NEW])
    assert_allclose(COMPLETE.score_samples(X[order]), COMPLETE.score_samples(X)[order], rtol=1e-9)
    assert_allclose(COMPLETE.score_samples(rows)[-30:], COMPLETE.score_samples(NEW), rtol=1e-9)


def test_bits_repeat():
    again = SubspaceOutlierDetector().fit(HOLES)
    np.testing.assert_array_equal(again.score_samples(NEW), HOLED.score_samples(NEW))
    np.testing.assert_array_equal(again.contributions(HOLES), HOLED.contributions(HOLES))


def test_decision_and_labels_agree():
    decision = COMPLETE.decision_function(NEW)
    np.testing.assert_array_equal(COMPLETE.predict(NEW), np.where(decision < 0, -1, 1))
    assert_allclose(decision, COMPLETE.score_samples(NEW) - COMPLETE.offset_)


@pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_contamination_is_the_share_of_training_rows(rows, share):
    labels = SubspaceOutlierDetector(contamination=share).fit_predict(rows)
    assert abs((labels == -1).mean() - share) <= 1 / len(rows)


def test_few_rows_are_outliers_by_default_where_there_are_none():
    assert (SubspaceOutlierDetector().fit_predict(table(400)) == -1).mean() < 0.05


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_broken_dependence_is_found(fraction):
    """Every value is usual, but not with the others of its row."""
    rng = np.random.default_rng(1)
    rows = table(300, 8)
    broken = np.column_stack([rng.permutation(column) for column in rows[:15].T])
    both = mask_entries(np.vstack([rows[15:], broken]), fraction, random_state=0)
    truth = np.arange(300) >= 285
    scores = SubspaceOutlierDetector().fit(both).score_samples(both)
    assert roc_auc_score(truth, -scores) > (0.95 if fraction == 0 else 0.85)


def test_an_outlier_in_training_does_not_look_normal():
    """Rows of `fit` are judged by members that did not learn from them."""
    rows = X.copy()
    rows[0] = 12.0 * np.array([1, -1, 1, -1, 1])
    scores = SubspaceOutlierDetector().fit(rows).score_samples(rows)
    assert scores.argmin() == 0
    weights = COMPLETE._ensemble.weights(np.vstack([X, NEW]))
    assert_allclose(weights.sum(axis=0), 1)
    own, new = weights[:, :120] > 0, weights[:, 120:] > 0
    # New rows: the five folds. Those of `fit`: two of three parts, in two partitions, and all six
    # for the 5 % from which no part has learned.
    assert (new[:5].all(axis=0) & ~new[5:].any(axis=0)).all()
    assert not own[:5].any()
    assert np.bincount(own.sum(axis=0)).tolist() == [0, 0, 0, 0, 114, 0, 6]


def test_alike_outliers_in_training_are_found():
    """Few outliers beside each other do not teach the members that they are usual."""
    rows = table(300, seed=4)
    rows[:9] += 2.5 * rows.std(axis=0) * np.array([1, -1, 1, -1, 1])
    truth = np.arange(300) < 9
    detector = SubspaceOutlierDetector().fit(rows)
    assert roc_auc_score(truth, -detector.score_samples(rows)) > 0.99
    assert not detector._ensemble.weights(rows[:9])[:5].any()


def test_holes_are_filled_from_rows_nearby():
    filled = complete(HOLES, np.random.RandomState(0))
    missing = np.isnan(HOLES)
    np.testing.assert_array_equal(filled[~missing], HOLES[~missing])
    errors = np.abs(filled - X)[missing]
    assert errors.mean() < 0.6 * np.abs(X.mean(axis=0) - X)[missing].mean()
    assert complete(X, np.random.RandomState(0)) is X


def test_keys_know_rows_again():
    rows = np.array([[0.0, np.nan], [-0.0, -np.nan], [np.nan, 0.0], [0.0, 1.0]])
    keys = row_keys(rows)
    assert keys[0] == keys[1]
    assert len(set(keys.tolist())) == 3


def test_equal_rows_in_all_folds_are_judged_by_all():
    rows = np.vstack([X, np.repeat(X[:1], 40, axis=0)])
    detector = SubspaceOutlierDetector().fit(rows)
    assert np.isfinite(detector.score_samples(rows)).all()
    assert np.count_nonzero(detector._ensemble.weights(rows[:1])) == 5


def test_one_range_is_one_unit():
    assert share_range(np.zeros(4), np.array([16.0, 16.0, 16.0, 3.0]))
    assert not share_range(np.zeros(4), np.array([16.0, 16.0, 5.0, 3.0]) + np.arange(4))
    pixels = np.random.default_rng(0).integers(0, 9, (60, 6)).astype(float)
    pixels[0], pixels[1] = 0.0, 8.0
    auto, raw = (SubspaceOutlierDetector(standardize=how).fit(pixels) for how in ("auto", False))
    np.testing.assert_array_equal(auto.score_samples(pixels), raw.score_samples(pixels))
    assert len(set(raw._columns.scale.tolist())) == 1


def test_constant_columns_take_no_part():
    rows = np.column_stack([X, np.full(len(X), 7.0)])
    detector = SubspaceOutlierDetector().fit(rows)
    assert_allclose(detector.score_samples(rows), COMPLETE.score_samples(X), rtol=0.5)
    assert (detector.contributions(rows)[:, 5] == 0).all()


def test_equal_rows_are_all_normal():
    rows = np.ones((20, 3))
    detector = SubspaceOutlierDetector()
    assert (detector.fit_predict(rows) == 1).all()
    assert (detector.score_samples(rows) == -1).all()
    assert (detector.contributions(rows) == 0).all()


def test_a_column_without_entries_is_refused():
    with pytest.raises(ValueError, match="column"):
        SubspaceOutlierDetector().fit(np.column_stack([X, np.full(len(X), np.nan)]))


def test_rows_without_entries_get_the_usual_score():
    rows = HOLES.copy()
    rows[3] = np.nan
    detector = SubspaceOutlierDetector().fit(rows)
    assert detector.score_samples(rows)[3] == -1
    assert (detector.contributions(rows)[3] == 0).all()


def test_more_columns_than_rows_and_wide_tables():
    wide = table(40, 600)
    wide[0] += 3.0 * np.random.default_rng(0).standard_normal(600)
    assert SubspaceOutlierDetector().fit(wide).score_samples(wide).argmin() == 0


def test_frames_and_files(tmp_path):
    frame = pd.DataFrame(HOLES, columns=list("abcde"))
    detector = SubspaceOutlierDetector().fit(frame).set_output(transform="pandas")
    parts = detector.contributions(frame)
    assert parts.columns.tolist() == list("abcde")
    save_model(detector, tmp_path / "detector.skops")
    again = load_model(tmp_path / "detector.skops")
    np.testing.assert_array_equal(again.score_samples(frame), detector.score_samples(frame))
    pd.testing.assert_frame_equal(again.contributions(frame), parts)
    assert again.offset_ == detector.offset_
