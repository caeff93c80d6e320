"""Choosing sizes without labels: hidden entries, BIC, and the two together."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from polyspan import MCKUSaL, MiCUSaL, RobustMiCUSaL, SubspaceMixture
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.model_selection import (
    choose_by_noise,
    choose_size,
    hidden_entry_errors,
    masked_entry_score,
)
from polyspan.model_selection.held_out import PRIOR

DATA = make_union_of_subspaces(
    (60, 60), n_features=20, subspace_dim=3, spread=0.5, noise=0.1, random_state=0
)


def test_hidden_entries_by_hand():
    model = MiCUSaL(2, 3, random_state=0).fit(DATA.X)
    X = mask_entries(DATA.X_test[:9], 0.1, random_state=0)
    errors = hidden_entry_errors(model.bases_, model.mean_, X, 0.3, np.random.RandomState(5))
    hidden = ~np.isnan(X) & (np.random.RandomState(5).uniform(size=X.shape) < 0.3)
    for i, x in enumerate(X):
        seen = ~np.isnan(x) & ~hidden[i]
        y = np.where(seen, x - model.mean_, 0.0)
        weights = np.where(seen, 1.0, PRIOR)
        fits = []
        for D in model.bases_:
            theta = np.linalg.solve((D * weights[:, None]).T @ D, D[seen].T @ y[seen])
            value = np.sum(weights * (y - D @ theta) ** 2)
            fits.append((value, D @ theta + model.mean_))
        fitted = min(fits, key=lambda fit: fit[0])[1]
        expected = np.sum((fitted[hidden[i]] - x[hidden[i]]) ** 2)
        assert_allclose(errors.squares[i], expected)
        assert errors.counts[i] == hidden[i].sum()


def test_score_is_repeatable_and_prefers_the_true_dimension():
    scores = {}
    for s in (1, 3, 9):
        model = MiCUSaL(2, s, random_state=0).fit(DATA.X)
        scores[s] = masked_entry_score(model, DATA.X_test)
        assert scores[s] == masked_entry_score(model, DATA.X_test)
        assert scores[s] < 0
    assert max(scores, key=scores.get) == 3
    with pytest.raises(
        ValueError, match="'fraction' parameter of masked_entry_score must be a float"
    ):
        masked_entry_score(model, DATA.X_test, fraction=1.5)


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_grid_search(fraction):
    X = mask_entries(DATA.X, fraction, random_state=0)
    model = RobustMiCUSaL(2, anneal_steps=40, random_state=0)
    search = GridSearchCV(model, {"subspace_dim": [1, 3, 8]}, scoring=masked_entry_score, cv=3)
    assert search.fit(X).best_params_ == {"subspace_dim": 3}


def test_pipelines():
    pipeline = make_pipeline(Normalizer(), MiCUSaL(2, 3, random_state=0)).fit(DATA.X)
    expected = masked_entry_score(pipeline[-1], pipeline[:-1].transform(DATA.X_test))
    assert masked_entry_score(pipeline, DATA.X_test) == expected


@pytest.mark.parametrize(
    "model", [SubspaceMixture(2, 2, random_state=0), MCKUSaL(2, 2, random_state=0)]
)
def test_models_without_linear_subspaces_are_refused(model):
    X = np.random.default_rng(0).standard_normal((40, 6))
    with pytest.raises(ValueError, match=f"linear subspaces.*{type(model).__name__}.*own `score`"):
        masked_entry_score(model.fit(X), X)


def test_an_unfitted_model_is_told_so():
    with pytest.raises(NotFittedError):
        masked_entry_score(MiCUSaL(2, 2), np.zeros((4, 3)))


def test_choose_size_on_small_data():
    choice = choose_size(DATA.X, 4, 6, random_state=0)
    assert (choice.n_subspaces, choice.subspace_dim) == (2, 3)
    low, high = choice.n_subspaces_range
    assert low <= 2 <= high
    assert choice.subspace_dim_margin > 0
    unit = MiCUSaL(2, 3, random_state=0).fit(DATA.X).lam_
    assert min(abs(choice.lam / unit - 2.0**k) for k in range(-2, 3)) < 1e-9
    steps = [row["step"] for row in choice.table]
    assert set(steps) == {"dimension", "number", "weight"}
    rows = [row for row in choice.table if row["step"] == "number"]
    assert min(rows, key=lambda row: row["value"])["n_subspaces"] == 2
    again = choose_size(DATA.X, 4, 6, n_seeds=1, random_state=0)
    assert [row["value"] for row in again.table] == [row["value"] for row in choice.table]
    kept = choose_size(DATA.X, 3, 4, lam=2.0, choose_lam=False, n_seeds=1, random_state=0)
    assert kept.lam == 2.0


def test_choose_size_bad_input():
    for sizes, message in (
        ((0, 3), "'max_subspaces' parameter of choose_size"),
        ((3, 0), "'max_dim' parameter of choose_size"),
        ((3, 20), "max_dim=20 must lie between 1 and n_features - 1 = "),
    ):
        with pytest.raises(ValueError, match=message):
            choose_size(DATA.X, *sizes)


def test_paper_setting():
    data = make_union_of_subspaces(random_state=0)
    choice = choose_size(data.X, 6, 14, choose_lam=False, n_seeds=1, random_state=0)
    assert (choice.n_subspaces, choice.subspace_dim) == (5, 13)


def test_choose_by_noise_takes_what_denoises():
    data = make_union_of_subspaces(
        (60, 60), n_features=20, subspace_dim=3, spread=0.5, noise=0.0, random_state=1
    )
    grid = {"subspace_dim": [1, 3, 10], "lam": [4.0, 50.0]}
    choice = choose_by_noise(MiCUSaL(2, random_state=0), data.X, [0.2, 0.4], grid, random_state=0)
    assert choice.best_params["subspace_dim"] == 3
    assert choice.error == min(row["error"] for row in choice.table)
    assert len(choice.table) == 6
    again = choose_by_noise(MiCUSaL(2, random_state=0), data.X, [0.2, 0.4], grid, random_state=0)
    assert again == choice
    with pytest.raises(ValueError, match="'noise' parameter of choose_by_noise"):
        choose_by_noise(MiCUSaL(2), data.X, -1.0, grid)


def test_choose_by_noise_passes_over_what_fails():
    class Broken(MiCUSaL):
        def reconstruct(self, X):
            found = super().reconstruct(X)
            return found * np.nan if self.subspace_dim in (1, 2) else found

    X = make_union_of_subspaces((40, 40), n_features=10, subspace_dim=3, random_state=0).X
    grid = {"subspace_dim": [1, 3]}
    choice = choose_by_noise(Broken(2, random_state=0), X, 0.1, grid, random_state=0)
    assert choice.best_params == {"subspace_dim": 3}
    with pytest.raises(ValueError, match="all are NaN"):
        choose_by_noise(Broken(2, random_state=0), X, 0.1, {"subspace_dim": [1, 2]})
