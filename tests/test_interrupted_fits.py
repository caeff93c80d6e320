"""A fit that is interrupted leaves an estimator as it was, whole."""

import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import polyspan
from polyspan import (
    MiCUSaL,
    SubspaceClustering,
    SubspaceImputer,
    SubspaceMixture,
    SubspaceOutlierDetector,
    baselines,
)
from polyspan.datasets import make_union_of_subspaces

ROOT = str(Path(polyspan.__file__).parent)
#: What surrounds a fit: when this returns, the fit is over.
AROUND = polyspan.base.private_sklearn.__file__
FIRST = make_union_of_subspaces((12, 12), n_features=6, subspace_dim=1, random_state=0).X
OTHER = make_union_of_subspaces((11, 13), n_features=5, subspace_dim=1, random_state=1).X
#: Settings that are small and draw no numbers by chance.
SMALL = {
    "n_subspaces": 2, "max_subspaces": 2, "n_clusters": 2, "subspace_dim": 1, "max_subspace_dim": 1,
    "n_components": 1, "n_init": 1, "max_iter": 3, "n_sweeps": 2, "n_fits": 1, "anneal_steps": 1,
    "method": "subspaces", "random_state": 0,
}  # fmt: skip
ESTIMATORS = [
    value
    for module in (polyspan, baselines)
    for name in module.__all__
    if hasattr(value := getattr(module, name), "fit")
]


def made(kind):
    """Return a small estimator of a class."""
    estimator = kind()
    known = estimator.get_params()
    return estimator.set_params(**{name: SMALL[name] for name in SMALL if name in known})


def interrupted(estimator, call, number, error=KeyboardInterrupt):
    """Interrupt a call when the attributes have changed so often; tell whether it came to that."""
    seen, changes = None, -1

    def watch(frame, event, _):
        nonlocal seen, changes
        file = frame.f_code.co_filename
        if event not in ("call", "return") or not file.startswith(ROOT) or file == AROUND:
            return
        now = {name: id(value) for name, value in vars(estimator).items()}
        if now != seen:
            seen, changes = now, changes + 1
            if changes == number:
                sys.setprofile(None)
                raise error

    sys.setprofile(watch)
    try:
        call()
    except error:
        return True
    finally:
        sys.setprofile(None)
    return False


def interruptions(estimator, call):
    """Interrupt a call wherever attributes have changed; return how often, and what it left."""
    before, content = dict(vars(estimator)), joblib.hash(vars(estimator))
    broken = []
    number = 0
    while interrupted(estimator, call, number):
        after = vars(estimator)
        same = list(after) == list(before) and all(after[name] is before[name] for name in before)
        if not same or joblib.hash(after) != content:
            broken.append(number)
            estimator.__dict__ = dict(before)
        number += 1
    return number, broken


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_an_interrupted_fit_changes_nothing(kind):
    estimator = made(kind).fit(FIRST)
    n, broken = interruptions(estimator, lambda: estimator.fit(OTHER))
    assert n > 2
    assert broken == []
    assert estimator.n_features_in_ == OTHER.shape[1]  # the last one was not interrupted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind",
    [kind for kind in ESTIMATORS if hasattr(made(kind), "partial_fit")],
    ids=lambda k: k.__name__,
)
def test_an_interrupted_batch_changes_nothing(kind):
    """It is not half counted either: the same batch may be given again."""
    estimator = made(kind).partial_fit(FIRST)
    n, broken = interruptions(estimator, lambda: estimator.partial_fit(FIRST[::-1]))
    assert n > 2
    assert broken == []
    again = made(kind).partial_fit(FIRST).partial_fit(FIRST[::-1])
    assert np.array_equal(estimator.bases_, again.bases_)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [SubspaceImputer, SubspaceOutlierDetector, MiCUSaL])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, StopIteration])
def test_what_was_learned_is_still_of_use(kind, error):
    """Names of columns too; and the next fit is as good as the first."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(FIRST, columns=list("abcdef"))
    estimator = made(kind).fit(frame)
    use = "transform" if hasattr(estimator, "transform") else "score_samples"
    before = np.asarray(getattr(estimator, use)(frame))
    assert interrupted(estimator, lambda: estimator.fit(OTHER), 3, error)
    assert estimator.feature_names_in_.tolist() == list("abcdef")
    assert np.array_equal(np.asarray(getattr(estimator, use)(frame)), before)


def test_a_first_fit_that_is_interrupted_leaves_nothing():
    detector = SubspaceOutlierDetector()
    assert interrupted(detector, lambda: detector.fit(FIRST), 3)
    assert vars(detector) == vars(SubspaceOutlierDetector())
    with pytest.raises(NotFittedError):
        detector.predict(FIRST)


def test_a_fit_on_wrong_data_leaves_what_was_learned():
    model = MiCUSaL(2, 1, random_state=0).fit(FIRST)
    before = dict(vars(model))
    for wrong in (OTHER[:, :1], np.full_like(OTHER, np.nan), OTHER[:0]):
        with pytest.raises(ValueError, match=r"n_features|NaN|0 sample"):
            model.fit(wrong)
        assert vars(model) == before


class Breaking:
    """A callback that fails in the middle of a fit."""

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **data):
        if context.task_name != "fit":
            raise RuntimeError("the callback failed")

    def on_fit_task_end(self, estimator, context, **data):
        pass

    def teardown(self, estimator, context):
        pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [MiCUSaL, SubspaceClustering, SubspaceImputer, SubspaceMixture])
def test_a_callback_that_fails_changes_nothing(kind):
    pytest.importorskip("sklearn.callback")
    estimator = made(kind).fit(FIRST).set_callbacks(Breaking())
    before = dict(vars(estimator))
    with pytest.raises(RuntimeError, match="the callback failed"):
        estimator.fit(OTHER)
    after = vars(estimator)
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)
