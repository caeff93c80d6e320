"""What ARCHITECTURE.md says about the code: its counts are checked, and its files are there."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def visits(monkeypatch, tmp_path):
    """Return the script with a copy of the page; it counts what the page says."""
    spec = importlib.util.spec_from_file_location("visits", ROOT / "tools" / "visits.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.PAGE.read_text(encoding="utf-8")
    counted = re.search(re.escape(script.HEAD) + r"(\|.*\|\n)+", text).group()
    monkeypatch.setattr(script, "table", lambda verbose=False: counted)
    monkeypatch.setattr(script, "PAGE", tmp_path / "page.md")
    script.PAGE.write_text(text, encoding="utf-8")
    return script


def test_the_check_fails_when_one_number_of_the_page_is_changed(visits):
    visits.main(["--check"])
    text = visits.PAGE.read_text(encoding="utf-8")
    row = re.search(r"\| `MiCUSaL.fit` \| (\d+)", text)
    changed = text[: row.start(1)] + str(int(row[1]) - 9) + text[row.end(1) :]
    visits.PAGE.write_text(changed, encoding="utf-8")
    with pytest.raises(SystemExit, match="is not true"):
        visits.main(["--check"])
    visits.main(["--write"])
    assert visits.PAGE.read_text(encoding="utf-8") == text


def test_a_page_without_the_table_is_an_error(visits):
    visits.PAGE.write_text("# Architecture\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="has no table"):
        visits.main(["--write"])


def test_a_call_is_counted_by_files_and_functions(visits):
    from polyspan.metrics import clustering_error

    found, steps = visits.visited(lambda: clustering_error([0, 1], [1, 0]))
    assert "clustering_error" in found["metrics.py"]
    assert steps >= len(found) - 1


def test_a_fit_of_another_estimator_is_one_function(visits):
    from polyspan import MiCUSaL, compare

    X = np.random.default_rng(0).standard_normal((30, 5))
    model = MiCUSaL(2, 1, random_state=0)
    alone, _ = visits.visited(lambda: model.fit(X))
    inside, _ = visits.visited(lambda: compare(X, {"it": model}, labels=[0, 1] * 15))
    functions = {name for names in inside.values() for name in names}
    assert "MiCUSaL.fit" in functions
    assert sum(map(len, alone.values())) > 50
    only_in_fit = {name for names in alone.values() for name in names if name.startswith("anneal")}
    assert only_in_fit
    assert not only_in_fit & functions
    assert "clustering_error" in functions  # what comes after the fit


def test_a_fit_that_a_method_of_the_same_model_calls_is_counted(visits):
    from polyspan import MiCUSaL

    X = np.random.default_rng(0).standard_normal((30, 5))
    model = MiCUSaL(2, 1, random_state=0)
    alone, _ = visits.visited(lambda: model.fit(X))
    inside, _ = visits.visited(lambda: model.fit_predict(X))
    assert set(alone) <= set(inside)


@pytest.mark.parametrize(
    "page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/project/platforms.md"]
)
def test_the_files_that_a_page_names_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w-]+(?:\.(?:py|md|toml)|/))`", text))
    assert len(named) > 3
    folders = (ROOT, ROOT / "src" / "polyspan")
    assert {n for n in named if not any((folder / n).exists() for folder in folders)} == set()
