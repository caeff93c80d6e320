"""Pages keep their promises: code runs as it stands, links lead somewhere, sentences are short."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import require_torch

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
# What the build writes lies beside the sources: it is checked where it is made.
BUILT = {"api/generated", "gallery", "tutorials", "reproduction"}
PAGES = [
    README,
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not any(page.is_relative_to(ROOT / "docs" / folder) for folder in BUILT)
    ),
]
#: What users read, as against evidence and what is about the project.
FOR_USERS = [
    *(
        page
        for page in PAGES
        if page.parent.name in {"guide", "how"} or page.name in {"index.md", "install.md", "faq.md"}
    ),
    README,
    *sorted((ROOT / "examples" / "tutorials").glob("plot_*.py")),
]


def name_of(page):
    return str(page.relative_to(ROOT))


def snippets(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


SNIPPETS = snippets(README)
ALL = [
    (page, snippet)
    for page in PAGES
    for snippet in snippets(page)
    if find_spec("sklearn.callback") or "sklearn.callback" not in snippet  # new in 1.9
]


def test_the_readme_has_snippets():
    assert len(SNIPPETS) >= 2


@pytest.mark.parametrize(
    ("page", "snippet"), ALL, ids=[f"{name_of(p)}-{k}" for k, (p, _) in enumerate(ALL)]
)
def test_snippet_runs(page, snippet, needs_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what a snippet writes is gone afterwards
    if "load_usps" in snippet:
        needs_data("usps")
    if "import torch" in snippet:
        require_torch()
    scope = {"__name__": "snippet"}
    exec(compile(snippet, str(page), "exec"), scope)
    assert len(scope) > 2


def test_the_first_snippet_keeps_its_promise(capsys):
    scope = {}
    exec(compile(SNIPPETS[0], str(README), "exec"), scope)
    promised = re.findall(r"^print\(.*\)  # (.*)$", SNIPPETS[0], flags=re.MULTILINE)
    printed = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    assert printed == promised
    assert len(promised) == 2
    assert scope["new_labels"].shape == (len(scope["data"].X_test),)


def lost_links(page):
    """Return the local links of a page that lead nowhere."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert local or page != README
    # Drawings and the pages of examples are made by the build.
    made = ("images/drawn/", "tutorials/", "gallery/")
    missing = [link for link in local if not (page.parent / link).exists()]
    return [link for link in missing if not any(folder in link for folder in made)]


def test_links_lead_somewhere():
    found = {name_of(page): lost_links(page) for page in PAGES}
    assert {name: links for name, links in found.items() if links} == {}


def counted(paths):
    """Run the count of words and sentences over pages."""
    command = [sys.executable, ROOT / "tools" / "prose.py", *paths]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def test_pages_for_users_are_short():
    assert len(FOR_USERS) > 20
    done = counted(FOR_USERS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_count_notices_long_pages_and_long_sentences(tmp_path):
    texts = [
        "# Title\n\nOne short sentence. Another one.\n",
        "word " * 1201 + ".\n",
        " ".join(["word"] * 18) + ".\n\n| a | b |\n\n```python\nx\n```\n",
        " ".join(["word"] * 18) + ".\n\n- two words\n",
    ]
    pages = [tmp_path / f"page{k}.md" for k in range(4)]
    for page, text in zip(pages, texts, strict=True):
        page.write_text(text, encoding="utf-8")
    lines = [line for line in counted(pages).stdout.splitlines() if line[0] != " "]
    assert [line.startswith("OVER") for line in lines] == [False, True, True, False]
    assert counted(pages[:1]).returncode == 0
    assert counted(pages[1:2]).returncode == 1


def test_printed_output_is_not_cut():
    """Lines that programs print break on narrow screens; those of code scroll."""
    style = (ROOT / "docs" / "_static" / "site.css").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^([^@/{}\n][^{}\n]*?) *\{([^{}]*)\}", style, re.MULTILINE))
    wrapped = [names for names, rule in rules.items() if "white-space: pre-wrap" in rule]
    for kind in (".sphx-glr-script-out", ".highlight-text"):
        assert any(kind in names and "pre" in names for names in wrapped), kind
