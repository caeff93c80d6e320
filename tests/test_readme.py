"""The Python snippets of the README and of the docs run as they stand, and links lead somewhere."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import require_torch

README = Path(__file__).parents[1] / "README.md"
PAGES = [README, *sorted((README.parent / "docs").glob("*.md"))]


def snippets(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


SNIPPETS = snippets(README)
ALL = [
    (page, snippet)
    for page in PAGES
    for snippet in snippets(page)
    if find_spec("sklearn.callback") or "sklearn.callback" not in snippet  # new in 1.9
]


def test_the_readme_has_snippets():
    assert len(SNIPPETS) >= 3


@pytest.mark.parametrize(
    ("page", "snippet"), ALL, ids=[f"{p.name}-{k}" for k, (p, _) in enumerate(ALL)]
)
def test_snippet_runs(page, snippet, needs_data):
    if "load_usps" in snippet:
        needs_data("usps")
    if "import torch" in snippet:
        require_torch()
    scope = {}
    exec(compile(snippet, str(page), "exec"), scope)
    assert len(scope) > 1


def test_the_first_snippet_keeps_its_promise(capsys):
    scope = {}
    exec(compile(SNIPPETS[0], str(README), "exec"), scope)
    promised = re.findall(r"^print\(.*\)  # (.*)$", SNIPPETS[0], flags=re.MULTILINE)
    printed = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    assert printed == promised
    assert scope["clustering_error"](scope["data"].labels, scope["model"].labels_) < 0.05
    assert scope["denoised"].shape == scope["data"].X_test.shape


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if "://" not in link]
    assert local or page != README
    assert [link for link in local if not (page.parent / link).exists()] == []
