"""`show_progress` shows a bar for every job, changes no result, and leaves nothing behind."""

import inspect
import io
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

import polyspan
from polyspan import MiCUSaL, SubspaceImputer, baselines, compare
from polyspan.base import progress as bars
from polyspan.base.progress import FitProgress, progress_bar
from polyspan.batch import fit_micusal
from polyspan.callbacks import show_progress
from polyspan.datasets import make_union_of_subspaces
from polyspan.images import denoise_image, inpaint_image
from polyspan.model_selection import choose_by_noise, choose_size

X = make_union_of_subspaces(
    (24, 20), n_features=8, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
).X
ESTIMATORS = [
    getattr(module, name)
    for module in (polyspan, baselines)
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) and issubclass(getattr(module, name), BaseEstimator)
]


class Display:
    """Stands for what is drawn, and keeps what it was told."""

    def __init__(self):
        self.lines, self.done, self.totals, self.stopped = [], {}, {}, 0

    def add_task(self, title, total, delay):
        self.lines.append(title)
        self.done[len(self.lines) - 1] = 0.0
        self.totals[len(self.lines) - 1] = total
        return len(self.lines) - 1

    def update(self, line, advance=0.0, total=None, description=None):
        self.done[line] += advance
        if total is not None:
            self.totals[line] = total

    def remove_task(self, line):
        pass

    def stop(self):
        self.stopped += 1


@pytest.fixture
def display(monkeypatch):
    found = Display()
    monkeypatch.setattr("polyspan.base.bars_drawn.start_display", lambda: found)
    yield found
    assert bars._jobs == []
    assert bars._display is None
    assert not bars.asked()


def fitted(kind):
    seeded = "random_state" in inspect.signature(kind).parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**({"random_state": 0} if seeded else {})).fit(X)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_fit_has_a_bar_that_changes_nothing(kind, display):
    assert hasattr(kind, "set_callbacks") or not hasattr(MiCUSaL, "set_callbacks")
    quiet = fitted(kind)
    assert display.lines == []
    with show_progress():
        model = fitted(kind)
    assert display.lines[0] == kind.__name__
    assert display.totals[0] is not None
    assert display.done[0] == pytest.approx(display.totals[0])
    assert display.stopped == 1
    for name, value in vars(quiet).items():
        if name.endswith("_") and isinstance(value, np.ndarray | float | int):
            assert_array_equal(getattr(model, name), value, err_msg=name)


def test_functions_have_bars_too(display):
    noisy = np.random.default_rng(0).random((24, 24))
    holes = X.copy()
    holes[:5, 0] = np.nan
    imputer = SubspaceImputer(method="subspaces").fit(holes)
    hole = np.zeros((24, 24), dtype=bool)
    hole[8:10, 8:10] = True
    with show_progress(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        denoise_image(noisy, 0.1, preset="fast")
        inpaint_image(noisy, hole, "fast")
        compare(X, {"first": MiCUSaL(2, 2)})
        fit_micusal(X[None], 2, 2, random_state=0)
        choose_by_noise(MiCUSaL(2, random_state=0), X, 0.1, {"subspace_dim": [1, 2]})
        imputer.sample_imputations(holes, 2)
        choose_size(X, 1, 1, n_seeds=1, random_state=0)
    titles = [
        "denoise", "inpaint", "compare", "fit_micusal", "choose_by_noise", "sample_imputations",
        "choose_size",
    ]  # fmt: skip
    assert [line for line in display.lines if line in titles] == titles
    assert display.lines.count("MiCUSaL") > 1  # the fits within
    for line in map(display.lines.index, titles[:-1]):
        assert display.done[line] == pytest.approx(display.totals[line])


def test_a_fit_that_fails_leaves_no_bar(display):
    with show_progress(), pytest.raises(ValueError, match="n_samples=3"):
        MiCUSaL(2, 2).fit(X[:3])
    assert display.stopped == 1
    with pytest.raises(KeyboardInterrupt), progress_bar(True, 2, "work"):
        raise KeyboardInterrupt
    assert display.stopped == 2


def test_on_and_off(display):
    with show_progress():
        with show_progress(False):
            MiCUSaL(2, 2, random_state=0).fit(X)
        assert bars.asked()
    show_progress()
    assert bars.asked()
    show_progress(False)
    assert display.lines == []
    with pytest.raises(ValueError, match="'shown' parameter of show_progress"):
        show_progress("yes")


def test_fits_in_several_threads_share_one_display(display):
    barrier = threading.Barrier(3)

    class Waiting(MiCUSaL):
        def _validate(self, X, **options):
            barrier.wait(20)
            return super()._validate(X, **options)

    models = [Waiting(2, 2, random_state=0) for _ in range(3)]
    with show_progress():
        threads = [threading.Thread(target=model.fit, args=(X,)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert display.lines == ["Waiting"] * 3
    assert display.stopped == 1
    for model in models:
        assert_array_equal(model.labels_, models[0].labels_)


def test_a_start_that_ends_early_fills_its_part(display):
    model = MiCUSaL(2, 2)
    with show_progress(), bars.job_of_fit(model):
        progress = FitProgress(model, X, None, 2, 4)
        report = progress.monitor(1, lambda _: {})
        assert report(0, 0, 1.0, None) is False
        assert display.done[0] == pytest.approx(0.25)
        for _ in range(9):  # more steps than were announced
            report(0, 0, 1.0, None)
        assert display.done[0] == pytest.approx(1.0)
        progress.end_start(1)
        progress.end_start(0)
        progress.end()
    assert display.done[0] == pytest.approx(2.0)


def test_a_terminal_shows_lines_and_a_file_does_not(monkeypatch):
    monkeypatch.setattr(bars, "DELAY", 0.0)
    for terminal in (True, False):
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        if terminal:
            monkeypatch.setenv("FORCE_COLOR", "1")
        else:
            monkeypatch.delenv("FORCE_COLOR")
        with show_progress():
            MiCUSaL(2, 2, random_state=0).fit(X)
        assert ("MiCUSaL" in stream.getvalue()) == terminal
        assert terminal or stream.getvalue() == ""


def test_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    needed = r'needs rich: pip install "polyspan\[progress\]"'
    with pytest.raises(ImportError, match=needed):
        show_progress()
    assert not bars.asked()
    with pytest.raises(ImportError, match=needed), progress_bar(True, 1, "work"):
        pass
    show_progress(False)


def test_nothing_is_drawn_before_somebody_asks():
    code = "import sys, polyspan.callbacks; assert 'polyspan.base.bars_drawn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
