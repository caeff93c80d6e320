"""Names of the columns of frames: each once, and many of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polyspan import (
    AdaptiveMiCUSaL,
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceClustering,
    SubspaceMixture,
    SubspaceOutlierDetector,
    baselines,
)
from polyspan.base.inputs import plain_numbers
from polyspan.cli.tables import check_unique

X = np.random.RandomState(0).standard_normal((40, 5))
TWICE = pd.DataFrame(X, columns=["a", "b", "b", "c", "a"])
MODELS = [
    MiCUSaL, RobustMiCUSaL, AdaptiveMiCUSaL, MCKUSaL, RobustMCKUSaL, SubspaceMixture,
    SubspaceClustering, SubspaceOutlierDetector,
    *(getattr(baselines, name) for name in baselines.__all__),
]  # fmt: skip
SAYS = r"columns of X have the same name: 'a' \(2 times\), 'b' \(2 times\); rename them"


@pytest.mark.parametrize("model", MODELS)
def test_equal_names_are_named(model):
    with pytest.raises(ValueError, match=SAYS):
        model().fit(TWICE)


@pytest.mark.parametrize("method", ["predict", "transform", "score_samples"])
def test_equal_names_of_new_rows(method):
    model = MiCUSaL(2, 2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=SAYS):
        getattr(model, method)(TWICE)


def test_at_most_five_names_are_shown():
    frame = pd.DataFrame(np.zeros((2, 14)), columns=[*"abcdefg", *"abcdefg"])
    with pytest.raises(ValueError, match=r"'e' \(2 times\), and 2 more; rename"):
        plain_numbers(frame)


def test_columns_of_numbers_are_not_taken_one_by_one(monkeypatch):
    def items(self):
        raise AssertionError("an object for every column takes longer than a fit")

    frame = pd.DataFrame(X)
    monkeypatch.setattr(pd.DataFrame, "items", items)
    assert plain_numbers(frame) is frame


class Name(str):
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_names_of_a_file_are_not_compared_in_pairs():
    names = [Name(f"c{k}") for k in range(1000)]
    check_unique(Path("t.csv"), names)
    assert Name.compared < 10 * len(names)
