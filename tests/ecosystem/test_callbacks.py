"""Callbacks of scikit-learn: what they see of a fit, and what they can stop.

Collected only where scikit-learn has callbacks (see conftest.py).
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from polyspan import MCKUSaL, MiCUSaL, load_model, save_model
from polyspan.datasets import make_union_of_subspaces
from polyspan.kernels import Kernel

DATA = make_union_of_subspaces(
    (30, 30, 30), n_features=12, subspace_dim=2, spread=0.4, noise=0.05, random_state=0
)
DIGITS = load_digits(n_class=2).data[:120]
X2 = DIGITS / np.linalg.norm(DIGITS, axis=1, keepdims=True)
K2 = Kernel("rbf")(X2)


class Recorder:
    """A callback that records its calls and may stop starts."""

    def __init__(self, stop_after=None):
        self.events, self.scores, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        if context.task_name == "iteration":
            assert fitted_estimator.bases_.shape == (3, 12, 2)
            self.scores.append(fitted_estimator.score(X))
            return self.stop_after is not None and context.task_id >= self.stop_after
        return False


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("grouped", [True, False])
def test_callbacks_see_starts_and_iterations(n_jobs, grouped, monkeypatch):
    if not grouped:
        monkeypatch.setattr("polyspan.union.fitting.GROUP_BYTES", 1)
    recorder = Recorder()
    model = MiCUSaL(3, 2, n_init=3, anneal_steps=4, random_state=0, n_jobs=n_jobs)
    model.set_callbacks(recorder).fit(DATA.X)
    assert recorder.events[:2] == ["setup", ("begin", "fit", 0)]
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]
    for start in range(3):
        assert ("begin", "start", start) in recorder.events
        assert ("end", "start", start) in recorder.events
    # Every start is annealed in 4 steps, then evaluated once and once after each iteration.
    assert len(recorder.scores) >= 3 * (4 + 1) + model.n_iter_
    assert_allclose(max(recorder.scores), model.score(DATA.X), rtol=0.1)
    quiet = MiCUSaL(3, 2, n_init=3, anneal_steps=4, random_state=0).fit(DATA.X)
    assert np.array_equal(quiet.bases_, model.bases_)


def test_callback_can_stop_a_fit():
    recorder = Recorder(stop_after=2)
    model = MiCUSaL(3, 2, init="random", n_init=1, tol=0.0, random_state=0)
    model.set_callbacks(recorder).fit(DATA.X)
    assert model.n_iter_ == 2
    assert not model.converged_
    annealed = MiCUSaL(3, 2, random_state=0).set_callbacks(Recorder(stop_after=2)).fit(DATA.X)
    assert len(annealed.anneal_history_) == 3
    assert annealed.n_iter_ == 0


def test_callbacks_in_the_reduced_span():
    X = DATA.X[:10]
    recorder = Recorder()
    model = MiCUSaL(3, 2, random_state=0, anneal_steps=3).set_callbacks(recorder)
    model.fit(X)
    assert_allclose(recorder.scores[-1], model.score(X), rtol=1e-6)


def test_progress_bar_shows_starts_and_iterations(capsys):
    model = MiCUSaL(3, 2, n_init=2, random_state=0).set_callbacks(ProgressBar()).fit(DATA.X)
    shown = capsys.readouterr().out
    assert "MiCUSaL - fit" in shown
    assert "MiCUSaL - start #1" in shown
    assert "100%" in shown
    assert model.converged_


def test_progress_bar_of_a_search(capsys):
    search = GridSearchCV(MiCUSaL(3, 2, random_state=0), {"lam": [1.0, 4.0]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(DATA.X)
    assert "GridSearchCV" in capsys.readouterr().out


def test_scoring_monitor_follows_the_fit():
    monitor = ScoringMonitor(scoring={"fit": lambda estimator, X, y=None: estimator.score(X)})
    # It scores only where there is a target; the model itself does not look at it.
    MiCUSaL(3, 2, random_state=0).set_callbacks(monitor).fit(DATA.X, DATA.labels)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    scores = [row["fit"] for row in rows]
    assert len(scores) >= 80
    assert scores[-1] > scores[0]


class Watcher:
    """A callback that scores the model after each iteration, and stops the first time."""

    def __init__(self):
        self.shapes, self.scores = set(), []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.shapes.add(X.shape)
        if context.task_name != "iteration":
            return False
        self.scores.append(fitted_estimator.score(X))
        return True


@pytest.mark.parametrize(
    ("params", "X"),
    [
        ({"kernel": "precomputed", "init": "gkiop", "n_init": 1}, K2),
        ({"init": "gkiop", "n_init": 1}, X2),
        ({"low_rank": 60, "gamma": 1.0}, X2),
    ],
)
def test_callbacks_see_the_data_and_can_stop(params, X):
    watcher = Watcher()
    model = MCKUSaL(2, 8, random_state=0, **params).set_callbacks(watcher).fit(X)
    assert watcher.shapes == {X.shape}
    assert model.n_iter_ == 0
    assert watcher.scores == [pytest.approx(model.score(X))]


def test_callbacks_are_not_saved(tmp_path):
    model = MiCUSaL(3, 2, random_state=0).set_callbacks(ProgressBar()).fit(DATA.X)
    save_model(model, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    assert not hasattr(again, "_skl_callbacks")
    assert len(model._skl_callbacks) == 1
