"""The README's Python snippets run as they stand."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_the_readme_has_snippets():
    assert len(SNIPPETS) >= 3


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippet_runs(snippet):
    scope = {}
    exec(compile(snippet, str(README), "exec"), scope)
    assert len(scope) > 1


def test_the_first_snippet_keeps_its_promise():
    scope = {}
    exec(compile(SNIPPETS[0], str(README), "exec"), scope)
    assert scope["clustering_error"](scope["data"].labels, scope["model"].labels_) < 0.05
    assert scope["denoised"].shape == scope["data"].X_test.shape


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    local = [link for link in links if "://" not in link]
    assert local
    assert [link for link in local if not (README.parent / link).exists()] == []
