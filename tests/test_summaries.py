"""What models and results say of themselves: sentences, small tables, and their HTML."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import NotFittedError

from polyspan import Comparison, MiCUSaL, SubspaceImputer, SubspaceOutlierDetector, compare
from polyspan.baselines import KernelKMeans
from polyspan.datasets import make_union_of_subspaces
from polyspan.summaries import MOST_ROWS, Summary, listed, table_html

X = make_union_of_subspaces(
    (40, 30), n_features=8, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
).X
OURS = '<div class="polyspan-summary">'


def mixed():
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    frame = pd.DataFrame(
        {
            "a": a,
            "b": 2 * a + 0.1 * rng.normal(size=80),
            "kind": np.where(a > 0, "<b>", "&"),
            "same": 1.0,
            "none": np.full(80, np.nan),
        }
    )
    frame.loc[:4, "b"] = np.nan
    return frame


def test_the_imputer_says_what_columns_are_and_how_well_they_are_filled():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SubspaceImputer(feature_types={"kind": "category"}).fit(mixed())
    summary = model.summary()
    assert summary.sentences[0] == (
        "SubspaceImputer: 5 columns, 2 numbers, 1 category, 1 constant, 1 without an entry."
    )
    assert summary.table["column"].tolist() == ["a", "b", "kind", "same", "none"]
    errors = model.column_errors_
    assert summary.table["error"][:3].tolist() == [errors["a"], errors["b"], errors["kind"]]
    assert np.isnan(summary.table["error"][3:]).all()
    facts = dict(summary.facts)
    assert f"the error is {model.held_out_error_:.2f} of that of the mean" in facts["How sure"]
    worst = max(errors, key=errors.get)
    assert facts["Filled worst"] == f"{worst} (error {errors[worst]:.2f})"
    assert facts["Not predicted"] == "same, none"
    assert facts["Filled by"].endswith("trees, weighted for every column")
    assert str(summary).splitlines()[-1].split() == ["none", "empty", "–"]
    html = model._repr_html_()
    assert html.count(OURS) == 1
    assert "<b>" not in html.split(OURS)[1]


def test_an_imputer_of_subspaces_and_one_that_learned_nothing():
    model = SubspaceImputer(2, 1, n_fits=1).fit(X)
    assert dict(model.summary().facts)["Filled by"] == "2 subspaces of dimension 1"
    constant = SubspaceImputer().fit(np.ones((20, 2)))
    assert dict(constant.summary().facts)["Filled by"] == "nothing, since no column varies"
    with pytest.raises(NotFittedError):
        SubspaceImputer().summary()


def test_the_detector_says_which_rows_and_why():
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame.loc[11, "c"] = 30.0
    model = SubspaceOutlierDetector(contamination=0.02).fit(frame)
    short, summary = model.summary(), model.summary(frame)
    assert short.table == {}
    assert short.sentences[-1].startswith("summary(X) says which rows")
    scores = model.score_samples(frame)
    marked = int((model.predict(frame) == -1).sum())
    assert summary.sentences[-1].startswith(f"Outliers are {marked} of 70 rows, counted from 0")
    assert "most surprising first: 11" in summary.sentences[-1]
    table = summary.table
    assert table["row"].tolist() == np.argsort(scores, kind="stable")[:10].tolist()
    assert table["score"].tolist() == np.sort(scores)[:10].tolist()
    assert (table["outlier"] == "yes").sum() == marked
    assert table["column"][0] == "c"
    assert OURS in model._repr_html_()
    same = SubspaceOutlierDetector().fit(np.ones((20, 2)))
    assert "2 columns, 0 of which vary." in str(same.summary(np.ones((2, 2))))
    assert same.summary(np.ones((2, 2))).table["column"].tolist() == ["", ""]
    with pytest.raises(NotFittedError):
        SubspaceOutlierDetector().summary()


def test_kernel_k_means():
    model = KernelKMeans(2, random_state=0).fit(X)
    sizes = ", ".join(map(str, np.bincount(model.labels_)))
    assert f"Sizes: {sizes}." in model.summary().sentences


def test_text_instead_of_html_and_models_that_are_not_fitted():
    model = MiCUSaL(2, 2, random_state=0)
    assert OURS not in model._repr_html_()
    with pytest.raises(ValueError, match="n_samples=3"):
        model.fit(X[:3])
    assert OURS not in model._repr_html_()
    model.fit(X)
    assert OURS in model._repr_html_()
    assert OURS in model._repr_mimebundle_()["text/html"]
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_lazy_labels_are_not_computed_to_show_a_model():
    class Lazy:
        __dask_graph__ = None

        def __array__(self, *args, **kwargs):
            raise AssertionError("computed")

    model = MiCUSaL(2, 2, random_state=0).fit(X)
    for labels in (Lazy(), None):
        model.labels_ = labels
        facts = dict(model._short_summary().facts)
        assert facts["Subspaces"] == "2 (of 8 features)"
        assert facts["Dimensions"] == "2, 2"
        assert "Samples" not in facts
        assert OURS in model._repr_html_()


def test_comparisons():
    found = compare(X, {"<i>": MiCUSaL(2, 2, random_state=0), "no": MiCUSaL(2, 80)}, X_clean=X)
    html = found._repr_html_()
    assert "<td>&lt;i&gt;" in html.replace(' class="polyspan-text"', "")
    assert "failed" not in html
    assert "ValueError: subspace_dim=80" in html
    assert html.count("polyspan-best") == 1 + 2  # the style, the seconds and the error of one
    assert "<th" in Comparison([])._repr_html_()


def test_long_tables_are_cut():
    html = table_html(["n", "word"], [[str(k), "w"] for k in range(MOST_ROWS + 7)])
    assert html.count("<tr>") == 1 + MOST_ROWS
    assert "… and 7 more rows." in html


def test_summaries_without_a_table():
    assert str(Summary(("One.", "Two."))) == "One.\nTwo."
    assert listed(np.array([3, 3])) == "3, 3"
    assert listed(np.array([3, 3, 3])) == "3 each"
    assert listed(np.arange(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …"
