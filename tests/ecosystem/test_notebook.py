"""A notebook shows every estimator, and other results, with what they found; and bars.

One notebook is executed for all tests. Its cells are the sources below.
"""

import inspect
import re
from html.parser import HTMLParser

import nbformat
import pytest
from nbclient import NotebookClient
from sklearn.base import BaseEstimator

import polyspan
from polyspan import baselines

ESTIMATORS = [
    name
    for module in (polyspan, baselines)
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) and issubclass(getattr(module, name), BaseEstimator)
]
SETUP = """
import warnings
warnings.simplefilter("ignore")
import inspect
import numpy as np, pandas as pd, sklearn, polyspan, polyspan.base.bars_drawn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from polyspan import *
from polyspan import baselines
from polyspan.baselines import *
from polyspan.callbacks import show_progress
from polyspan.datasets import make_union_of_subspaces
from polyspan.model_selection import choose_size

X = make_union_of_subspaces(
    (40, 30, 35), n_features=12, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
).X

def fitted(kind):
    seeded = "random_state" in inspect.signature(kind).parameters
    return kind(**({"random_state": 0} if seeded else {})).fit(X)
"""
CELLS = {
    **{name: f"fitted({name})" for name in ESTIMATORS},
    "unfitted": "MiCUSaL(2, 1)",
    "pipeline": "make_pipeline(StandardScaler(), SubspaceClustering(3, random_state=0)).fit(X)",
    "comparison": """
methods = {"<i>one</i>": MiCUSaL(3, 2), "two": MiCUSaL(3, 1), "no": MiCUSaL(3, 2000)}
compare(X, methods, X_clean=X)""",
    "size choice": "choose_size(X, 2, 2, n_seeds=1, random_state=0)",
    "summary": "fitted(MiCUSaL).summary(X)",
    "names": """
frame = pd.DataFrame(X[:, :3], columns=["<script>alert(1)</script>", "b&b", "c"])
frame.iloc[0, 0] = None
SubspaceImputer(method="subspaces").fit(frame)""",
    "bar": """
polyspan.base.progress.DELAY = 0.0
polyspan.base.bars_drawn.PAUSE = 0.02
with show_progress():
    SubspaceOutlierDetector().fit(X)""",
    "text": "sklearn.set_config(display='text')\nfitted(MiCUSaL)",
}


class Client(NotebookClient):
    """Executes a notebook and keeps what cells replace in their outputs."""

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "update_display_data":
            self.replaced = [*getattr(self, "replaced", []), msg["content"]["data"]]
        return super().process_message(msg, cell, cell_index)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    home = tmp_path_factory.mktemp("jupyter")
    sources = [SETUP, *CELLS.values()]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in sources])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(home))
        patch.delenv("FORCE_COLOR", raising=False)
        client = Client(book, timeout=120, kernel_name="python3")
        client.execute()
    return client


@pytest.fixture(scope="module")
def outputs(client):
    cells = client.nb.cells[1:]
    return {name: cell.outputs for name, cell in zip(CELLS, cells, strict=True)}


def shown(outputs):
    (output,) = outputs
    return output["data"]


def ours(html):
    """Return the last part of the HTML, below that of scikit-learn."""
    _, found, rest = html.rpartition('<div class="polyspan-summary">')
    assert found
    return rest


class Facts(HTMLParser):
    """Read the names and values of the first table, and check that every tag is closed."""

    def __init__(self, html):
        super().__init__()
        self.found, self.open, self.words = {}, [], []
        self.feed('<div class="polyspan-summary">' + html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag != "br":
            self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr" and len(self.words) == 2:
            self.found.setdefault(*self.words)
        if tag in ("tr", "table"):
            self.words = []

    def handle_data(self, data):
        if self.open[-1:] in (["th"], ["td"]):
            self.words.append(data)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_shows_what_it_found(outputs, name):
    data = shown(outputs[name])
    assert data["text/plain"].startswith(f"{name}(")
    above, below = data["text/html"].split("<style>\n.polyspan-summary")
    assert 'class="sk-top-container' in above
    assert f">{name}<" in above
    assert "<script" not in below
    facts = Facts(ours(data["text/html"])).found
    first = next(name for name in ("Clusters", "Subspaces", "Columns") if name in facts)
    assert re.match(r"\d", facts[first])
    if first == "Subspaces":
        assert {"Samples", "Dimensions"} <= set(facts)
        assert facts["Samples"].startswith("105")
    if name == "SubspaceClustering":
        assert facts["Clusters"] == "3 (found)"
        assert facts["Dimensions"] == "2 each"
        assert facts["Certainty"].startswith("high: 0.9")
        assert "neighbours" not in ours(data["text/html"])  # names of graphs
    if name in ("SubspaceImputer", "SubspaceOutlierDetector"):
        assert "How sure" in facts


def test_what_is_not_fitted_is_shown_as_by_scikit_learn(outputs):
    html = shown(outputs["unfitted"])["text/html"]
    assert "sk-top-container" in html
    assert "polyspan-summary" not in html


def test_a_pipeline_is_shown_as_by_scikit_learn(outputs):
    html = shown(outputs["pipeline"])["text/html"]
    assert "SubspaceClustering" in html
    assert "StandardScaler" in html
    assert "polyspan-summary" not in html


def test_plain_text_can_be_asked_for(outputs):
    assert set(shown(outputs["text"])) == {"text/plain"}


def test_names_of_columns_are_text(outputs):
    html = ours(shown(outputs["names"])["text/html"])
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "b&amp;b" in html
    assert "<script" not in html


def test_other_results(outputs):
    for name, words in (
        ("comparison", ("&lt;i&gt;one&lt;/i&gt;", "seconds", "ValueError: subspace_dim=2000")),
        ("size choice", ("n_subspaces", "subspace_dim", "models tried", "Every model")),
        ("summary", ("3 subspaces of 12 features", "nearest", "explained")),
    ):
        data = shown(outputs[name])
        assert "<script" not in data["text/html"]
        for word in words:
            assert word in data["text/html"], (name, word)
        Facts(ours(data["text/html"]))


def test_a_bar_moves_and_goes(client, outputs):
    (output,) = outputs["bar"]
    *moves, last = client.replaced
    assert moves
    assert "SubspaceOutlierDetector" in moves[-1]["text/html"]
    assert re.search(r"[1-9]\d*%", "".join(move["text/html"] for move in moves))
    assert last["text/html"] == ""
    assert output["data"]["text/html"] == ""
