import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.cluster import KMeans

from polyspan import MiCUSaL, compare
from polyspan.baselines import KSubspaces, ThresholdingSubspaceClustering
from polyspan.datasets import make_union_of_subspaces

DATA = make_union_of_subspaces(
    (60, 60), n_features=30, subspace_dim=3, spread=0.5, noise=0.05, random_state=0
)
TRUTH = {"labels": DATA.labels, "bases": DATA.bases, "X_clean": DATA.X_clean}


class Failing(MiCUSaL):
    def fit(self, X, y=None):
        raise RuntimeError("out of luck")


def test_all_methods_are_measured_alike_and_failures_are_rows():
    models = [MiCUSaL(2, 3, random_state=0), KMeans(2, random_state=0), Failing(2, 3)]
    result = compare(DATA.X, models, **TRUTH)
    ours, means, failed = result.rows
    assert ours["label_error"] == 0
    assert 0 < ours["d_avg"] < 0.2
    assert 0 < ours["reconstruction_error"] < 0.05
    assert means["label_error"] > 0.2
    assert means["d_avg"] is means["reconstruction_error"] is None
    assert failed["error"] == "RuntimeError: out of luck"
    assert failed["seconds"] is None
    assert not hasattr(models[0], "labels_")
    shown = str(result)
    assert "failed: RuntimeError: out of luck" in shown
    assert "label_error" in shown
    frame = result.to_pandas()
    assert list(frame.index) == ["MiCUSaL", "KMeans", "Failing"]
    assert frame.loc["MiCUSaL", "label_error"] == 0


def test_names():
    models = [KSubspaces(2, 3, random_state=k) for k in (0, 1)]
    assert [row["method"] for row in compare(DATA.X, models).rows] == ["KSubspaces", "KSubspaces 2"]
    named = compare(DATA.X, {"a": models[0]}, labels=DATA.labels)
    assert named.rows[0]["method"] == "a"
    assert named.measures == ["seconds", "label_error"]


def test_bases_of_another_shape_are_not_compared():
    result = compare(DATA.X, [KSubspaces(2, 2, random_state=0)], **TRUTH)
    assert result.rows[0]["d_avg"] is None
    assert result.rows[0]["error"] is None


def test_progress_and_figure(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws bars on terminals alone
    models = [MiCUSaL(2, 3, random_state=0), ThresholdingSubspaceClustering(2, 3), Failing()]
    result = compare(DATA.X, models, progress=True, **TRUTH)
    shown = capsys.readouterr()
    assert "compare: Failing" in shown.err
    assert shown.out == ""
    axes = result.plot()
    assert len(axes) == 4
    assert [text.get_text() for text in axes[0].get_yticklabels()] == [
        "MiCUSaL",
        "ThresholdingSubspaceClustering",
        "Failing",
    ]
    widths = [bar.get_width() for bar in axes[1].patches]
    assert np.allclose(widths, [row["label_error"] or 0.0 for row in result.rows])
    _, given = plt.subplots(1, 4)
    assert result.plot(given) is given
    plt.close("all")


def test_a_class_in_place_of_an_estimator_is_refused():
    for methods in ([MiCUSaL], {"ours": MiCUSaL}):
        with pytest.raises(TypeError, match=r"the class MiCUSaL: give an estimator, MiCUSaL\("):
            compare(DATA.X, methods)
