"""Callbacks of scikit-learn: what they see of a fit, and what they can stop.

Collected only where scikit-learn has callbacks (see conftest.py).
"""

import io
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from polyspan import (
    MCKUSaL,
    MiCUSaL,
    SubspaceClustering,
    SubspaceImputer,
    SubspaceMixture,
    SubspaceOutlierDetector,
    load_model,
    save_model,
)
from polyspan.baselines import (
    GROUSE,
    BlockSparseDictionary,
    KernelKMeans,
    ThresholdingSubspaceClustering,
)
from polyspan.callbacks import PrintProgress
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
        monkeypatch.setattr("polyspan.linear.starts.GROUP_BYTES", 1)
    recorder = Recorder()
    model = MiCUSaL(3, 2, init="anneal", n_init=3, anneal_steps=4, random_state=0, n_jobs=n_jobs)
    model.set_callbacks(recorder).fit(DATA.X)
    assert recorder.events[:2] == ["setup", ("begin", "fit", 0)]
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]
    for start in range(3):
        assert ("begin", "start", start) in recorder.events
        assert ("end", "start", start) in recorder.events
    # Every start is annealed in 4 steps, then evaluated once and once after each iteration.
    assert len(recorder.scores) >= 3 * (4 + 1) + model.n_iter_
    assert_allclose(max(recorder.scores), model.score(DATA.X), rtol=0.1)
    quiet = MiCUSaL(3, 2, init="anneal", n_init=3, anneal_steps=4, random_state=0).fit(DATA.X)
    assert np.array_equal(quiet.bases_, model.bases_)


def far_outliers():
    return np.concatenate([DATA.X, 3.0 + np.random.RandomState(0).standard_normal((10, 12))])


def test_callbacks_see_the_run_about_the_final_mean():
    recorder, X = Recorder(), far_outliers()
    model = MiCUSaL(3, 2, trim=0.1, anneal_steps=4, random_state=0)
    model.set_callbacks(recorder).fit(X)
    begin, end = (recorder.events.index((what, "start", 1)) for what in ("begin", "end"))
    own = recorder.events[recorder.events.index(("end", "start", 0)) : end]
    # The last run is the one whose history is kept; each is evaluated once before it begins.
    assert sum(event[:2] == ("end", "iteration") for event in own) >= model.n_iter_ + 1
    assert begin < end
    quiet = MiCUSaL(3, 2, trim=0.1, anneal_steps=4, random_state=0).fit(X)
    assert np.array_equal(quiet.bases_, model.bases_)
    # All outliers are far: nothing is left to trim, and the run ends at once.
    recorder = Recorder()
    model.set_callbacks(recorder).fit(np.where(np.arange(100)[:, None] < 90, X, 1e12 * X))
    assert ("end", "start", 1) in recorder.events
    assert model.trimmed_.sum() == 10


class Dimensions(Recorder):
    """Record the dimensions of the subspaces of every iteration."""

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.bases_.shape[2])
            return self.stop_after is not None and len(self.scores) > self.stop_after
        return False


def test_callbacks_see_the_annealing_of_unequal_dimensions():
    seen = Dimensions()
    model = MiCUSaL(3, (1, 2, 4), init="anneal", n_init=1, anneal_steps=5, random_state=0)
    model.set_callbacks(seen).fit(DATA.X)
    assert seen.scores[:15] == [1] * 5 + [2] * 5 + [4] * 5
    assert len(seen.scores) == 15 + 1 + model.n_iter_
    for n in (2, 7):  # within the first level, and within the second
        seen = Dimensions(stop_after=n)
        model.set_callbacks(seen).fit(DATA.X)
        assert seen.scores == [1] * min(n + 1, 5) + [2] * max(n - 4, 0) + [4]
        assert len(model.anneal_history_) == min(n + 1, 5)
        assert not model.converged_


def test_callback_can_stop_a_fit():
    recorder = Recorder(stop_after=2)
    model = MiCUSaL(3, 2, init="random", n_init=1, tol=0.0, random_state=0)
    model.set_callbacks(recorder).fit(DATA.X)
    assert model.n_iter_ == 2
    assert not model.converged_
    annealed = (
        MiCUSaL(3, 2, init="anneal", random_state=0)
        .set_callbacks(Recorder(stop_after=2))
        .fit(DATA.X)
    )
    assert len(annealed.anneal_history_) == 3
    assert annealed.n_iter_ == 0


class StopsOnce(Recorder):
    """Stop each start once, in the annealing step of its own number."""

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name != "iteration":
            return False
        start = context.parent.task_id
        self.events.append((start, context.task_id))
        self.scores.append((start, np.asarray(fitted_estimator.bases_)))
        return context.task_id == start


@pytest.mark.parametrize("lam", [4.0, 1e-9])
def test_a_start_that_was_stopped_once_while_it_anneals_is_over(lam):
    recorder = StopsOnce()
    model = MiCUSaL(3, 2, init="anneal", lam=lam, n_init=3, anneal_steps=6, random_state=0)
    model.set_callbacks(recorder).fit(DATA.X)
    for start in range(3):
        # Its annealing up to the stop, and the evaluation of where it is.
        assert sum(event[0] == start for event in recorder.events) == start + 2
        *_, last, evaluated = (bases for own, bases in recorder.scores if own == start)
        assert_allclose(evaluated, last)
    assert model.n_iter_ == 0
    assert not model.converged_
    assert len(model.anneal_history_) in (1, 2, 3)
    assert np.isfinite(model.anneal_history_).all()


def test_callbacks_in_the_reduced_span():
    X = DATA.X[:10]
    recorder = Recorder()
    model = MiCUSaL(3, 2, init="anneal", random_state=0, anneal_steps=3).set_callbacks(recorder)
    model.fit(X)
    assert_allclose(recorder.scores[-1], model.score(X), rtol=1e-6)


def test_progress_bar_shows_starts_and_iterations(capsys):
    model = (
        MiCUSaL(3, 2, init="anneal", n_init=2, random_state=0)
        .set_callbacks(ProgressBar())
        .fit(DATA.X)
    )
    shown = capsys.readouterr().out
    assert "MiCUSaL - fit" in shown
    assert "MiCUSaL - start #1" in shown
    assert "100%" in shown
    assert model.converged_


def test_progress_bar_of_a_search(capsys):
    search = GridSearchCV(MiCUSaL(3, 2, init="anneal", random_state=0), {"lam": [1.0, 4.0]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(DATA.X)
    assert "GridSearchCV" in capsys.readouterr().out


def test_scoring_monitor_follows_the_fit():
    monitor = ScoringMonitor(scoring={"fit": lambda estimator, X, y=None: estimator.score(X)})
    # It scores only where there is a target; the model itself does not look at it.
    MiCUSaL(3, 2, init="anneal", random_state=0).set_callbacks(monitor).fit(DATA.X, DATA.labels)
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
    model = MiCUSaL(3, 2, init="anneal", random_state=0).set_callbacks(ProgressBar()).fit(DATA.X)
    save_model(model, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    assert not hasattr(again, "_skl_callbacks")
    assert len(model._skl_callbacks) == 1


def test_lines_are_printed_every_few_iterations():
    out = io.StringIO()
    model = MiCUSaL(3, 2, init="anneal", anneal_steps=4, random_state=0)
    model.set_callbacks(PrintProgress(every=2, file=out)).fit(DATA.X)
    *lines, last = out.getvalue().splitlines()
    # Annealed steps and then the alternation, which begins with an evaluation of its start.
    expected = []
    for name, values in (
        ("annealing {}: free energy", model.anneal_history_),
        ("iteration {}: objective", model.objective_history_),
    ):
        for k in range(0, len(values), 2):
            change = "" if k == 0 else f", change {values[k] - values[k - 2]:+.3g}"
            expected.append(f"MiCUSaL, {name.format(k)} {values[k]:.6g}{change}")
    assert lines == expected
    count = f"{model.n_iter_} iteration" + "s" * (model.n_iter_ != 1)
    assert last == f"MiCUSaL: converged after {count}, objective {model.objective_:.6g}"
    assert not model._skl_callbacks[0]._before  # nothing of a fit is kept


def test_the_lines_in_the_documentation_are_printed(capsys):
    page = (Path(__file__).parents[2] / "docs/guide/progress.md").read_text(encoding="utf-8")
    quoted = re.findall(r"`(MiCUSaL, \w+ \d+: [^`]*)`", page)
    assert len(quoted) == 2
    X = make_union_of_subspaces((40, 40), n_features=20, subspace_dim=2, random_state=0).X
    MiCUSaL(2, 2, init="anneal", random_state=0).set_callbacks(PrintProgress(every=40)).fit(X)
    printed = {line.partition(":")[0]: line for line in capsys.readouterr().out.splitlines()}
    for line in quoted:
        other = printed[line.partition(":")[0]]
        number = r"-?\d+\.?\d*"
        assert re.sub(number, "#", other) == re.sub(number, "#", line)
        values = [[float(v) for v in re.findall(number, text)] for text in (other, line)]
        assert_allclose(*values, rtol=1e-2)


def test_several_starts_have_numbers(capsys):
    model = MiCUSaL(3, 2, init="random", n_init=2, random_state=0, n_jobs=2)
    model.set_callbacks(PrintProgress(every=100)).fit(DATA.X)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in sorted(lines[:2])] == [
        "MiCUSaL, start 0, iteration 0", "MiCUSaL, start 1, iteration 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "first", "last"),
    [
        (SubspaceMixture(3, 2, init="anneal", random_state=0), "log-likelihood", "log-likelihood"),
        (MCKUSaL(3, 2, random_state=0), "objective", "objective"),
        (SubspaceClustering(3, random_state=0), "gap", "certainty"),
        (SubspaceImputer(random_state=0), "at most", "fitted"),
        (SubspaceOutlierDetector(), "at most", "fitted"),
        (KernelKMeans(3, n_init=1, random_state=0), "at most", "fitted"),
        (GROUSE(2, random_state=0), "at most", "fitted"),
        (BlockSparseDictionary(3, 2, n_init=1, random_state=0), "at most", "fitted"),
        (ThresholdingSubspaceClustering(3, 2), "at most", "fitted"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_lines_of_other_estimators(model, first, last, capsys):
    model.set_callbacks(PrintProgress()).fit(DATA.X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{type(model).__name__}, iteration 0: {first} ")
    assert lines[-1].startswith(f"{type(model).__name__}: ")
    assert last in lines[-1]


def test_lines_of_a_search(capsys):
    search = GridSearchCV(MiCUSaL(3, 2, init="anneal", random_state=0), {"lam": [1.0, 4.0]}, cv=2)
    search.set_callbacks(PrintProgress(every=1000)).fit(DATA.X)
    lines = capsys.readouterr().out.splitlines()
    # Four fits of the search, and the last one to all samples.
    assert sum(line.startswith("MiCUSaL, iteration 0: objective") for line in lines) == 5
    assert sum(line.startswith("MiCUSaL, annealing 0: free energy") for line in lines) == 5
    assert not any("change" in line for line in lines)


def test_a_file_is_not_sent_to_other_processes(tmp_path):
    search = GridSearchCV(MiCUSaL(3, 2, init="anneal", random_state=0), {"lam": [1.0, 4.0]}, cv=2)
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        search.set_callbacks(PrintProgress(file=file))
        search.fit(DATA.X)  # in this process it is written
        with pytest.raises(TypeError, match=r"file=….*cannot be sent.*set n_jobs=1"):
            pickle.dumps(search)
        search.set_params(n_jobs=2)
        with pytest.raises(ValueError, match=r"file=….*cannot be sent.*set n_jobs=1"):
            search.fit(DATA.X)
        with joblib.parallel_config("threading"):
            search.fit(DATA.X)
    assert "MiCUSaL, iteration 0: objective" in (tmp_path / "log").read_text(encoding="utf-8")
    assert isinstance(pickle.loads(pickle.dumps(PrintProgress(every=3))), PrintProgress)


def test_the_module_is_found_without_an_import():
    code = "import polyspan; print(polyspan.callbacks.PrintProgress.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "PrintProgress\n"


def test_what_the_printing_callback_needs(monkeypatch):
    with pytest.raises(ValueError, match="'every' parameter of PrintProgress must be an int"):
        PrintProgress(every=0)
    monkeypatch.setattr("polyspan.callbacks.ProgressBar", None)
    with pytest.raises(ImportError, match="PrintProgress needs the callbacks of scikit-learn"):
        PrintProgress()
