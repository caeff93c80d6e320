"""`outliers` writes for every row how unusual it is, and in which columns."""

import os

import numpy as np
import pandas as pd
import pytest

from polyspan import SubspaceOutlierDetector, load_model

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 2)) @ RNG.standard_normal((2, 6)) + 0.05 * RNG.standard_normal((80, 6))
X[7, 3] += 9.0
X[11, 2] = np.nan
NAMES = [f"f{k}" for k in range(6)]


def table():
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "name", [f"0{k}" for k in range(80)])
    frame["name"] = frame["name"].astype(object)
    frame.insert(1, "word", "w")
    return frame


def ran(run, *words):
    done = run("outliers", *words)
    assert done.exit_code == 0, done.output
    return done.output


def test_scores_ranks_and_columns_are_those_of_the_class(run, tmp_path):
    table().to_csv("t.csv", index=False)
    said = ran(run, "t.csv", "-o", "o.csv", "--drop", "name", "--seed", 3)
    found = pd.read_csv("o.csv", dtype={"name": str})
    assert list(found) == ["name", "word", "score", "rank", "outlier", "columns"]
    assert found["name"].iloc[3] == "03"
    model = SubspaceOutlierDetector(random_state=3).fit(X)
    np.testing.assert_allclose(found["score"], model.score_samples(X))
    assert (found["outlier"] == (model.predict(X) == -1)).all()
    assert sorted(found["rank"]) == list(range(1, 81))
    assert found["rank"].iloc[7] == 1
    assert found["columns"].iloc[7].split("; ")[0] == "f3"
    assert len(found["columns"].iloc[7].split("; ")) == 3
    assert "passed over, since they hold text: word" in said
    assert "80 rows written to o.csv" in said
    assert "most surprising first: 7" in said


def test_contamination_says_how_many(run, tmp_path):
    table().to_csv("t.csv", index=False)
    ran(run, "t.csv", "-o", "o.csv", "--contamination", 0.1)
    assert pd.read_csv("o.csv")["outlier"].sum() == 8
    done = run("outliers", "t.csv", "-o", "p.csv", "--contamination", 2)
    assert done.exit_code == 2
    assert "'--contamination'" in done.output
    assert not (tmp_path / "p.csv").exists()


def test_what_was_learned_judges_other_rows(run, tmp_path):
    table().to_csv("t.csv", index=False)
    ran(run, "t.csv", "-o", "o.csv", "--drop", "name", "--save-model", "m.skops")
    new = table().head(5)
    new.loc[2, "f0"] = -50.0
    new = new.assign(more="x")[["more", *new.columns[::-1]]]
    new.to_parquet("new.parquet")
    assert ran(run, "new.parquet", "-o", "n.npy", "--model", "m.skops", "-q") == (
        "note: not in n.npy, which can hold numbers only: columns\n"
    )
    expected = load_model("m.skops").score_samples(new[NAMES])
    scores = np.load("n.npy")
    np.testing.assert_allclose(scores[:, 0], expected)
    assert scores[2, 1] == 1
    done = run("outliers", "t.csv", "-o", "p.csv", "--model", "m.skops", "--contamination", 0.1)
    assert done.exit_code == 1
    assert "leave --contamination out" in done.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("none.csv", "-o", "o.csv"), 3, "none.csv does not exist"),
        (("t.csv", "-o", "t.csv", "--force"), 1, "the table itself"),
        (("t.csv", "-o", "o.csv", "--save-model", "o.csv"), 1, "the table to write itself"),
        (("t.csv", "-o", "o.csv", "--columns", "word"), 1, "no column of numbers"),
        (("t.csv", "-o", "o.txt"), 1, "must end in"),
    ],
)
def test_what_is_refused(run, tmp_path, words, code, message):
    table().to_csv("t.csv", index=False)
    done = run("outliers", *words)
    assert done.exit_code == code, done.output
    assert message in done.output
    assert os.listdir(tmp_path) == ["t.csv"]
