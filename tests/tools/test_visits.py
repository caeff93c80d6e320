"""What ARCHITECTURE.md says about the code: its counts are checked, and its files are there."""

import importlib.util
import re
from pathlib import Path

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


def test_the_files_that_the_page_names_are_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml))`", text))
    assert len(named) > 20
    folders = (ROOT, ROOT / "src" / "polyspan")
    assert {n for n in named if not any((folder / n).exists() for folder in folders)} == set()
