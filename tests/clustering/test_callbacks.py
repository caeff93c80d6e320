"""Callbacks of scikit-learn see one step for every graph, and can stop before all are built.

Collected only where scikit-learn has callbacks (see conftest.py).
"""

import numpy as np

from polyspan import SubspaceClustering
from polyspan.datasets import make_union_of_subspaces

X = make_union_of_subspaces(
    (30, 30, 30), n_features=20, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
).X


class Recorder:
    """A callback that records its calls and may stop."""

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
        if context.task_name != "iteration":
            return False
        self.scores.append(fitted_estimator.score(X))
        return self.stop_after is not None and len(self.scores) >= self.stop_after


def fitted(recorder=None):
    model = SubspaceClustering(3, random_state=0)
    if recorder is not None:
        model.set_callbacks(recorder)
    return model.fit(X)


def test_callbacks_see_every_graph():
    recorder = Recorder()
    model = fitted(recorder)
    assert recorder.events[:2] == ["setup", ("begin", "fit", 0)]
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]
    assert len(recorder.scores) == len(model.members_["graph"])
    assert all(score <= 0 for score in recorder.scores)
    assert np.array_equal(fitted().labels_, model.labels_)


def test_callbacks_can_stop_before_all_graphs_are_built():
    assert len(fitted(Recorder(stop_after=2)).members_["graph"]) == 2


def test_one_cluster_ends_too():
    recorder = Recorder()
    SubspaceClustering(1).set_callbacks(recorder).fit(X)
    assert recorder.events[-1] == "teardown"
