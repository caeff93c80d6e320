"""The parts of `make release-check` that need no network: each notices what it is there for."""

import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from release import archives, readme, sbom, versions

sys.path.remove(str(ROOT / "tools"))

CHANGELOG = """# Changelog

## 0.2.0 (2026-11-30)

- One thing.
- Another,
  on two lines.

## 0.1.0 (unreleased)

- The first.
"""


def tree(tmp_path, changelog=CHANGELOG, project="0.2.0", citation="0.2.0", recipe="0.2.0"):
    (tmp_path / "packaging" / "conda").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nversion = "{project}"\n', encoding="utf-8"
    )
    (tmp_path / "CITATION.cff").write_text(
        f"cff-version: 1.2.0\nversion: {citation}\n", encoding="utf-8"
    )
    (tmp_path / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    text = f'context:\n  version: "{recipe}"\n'
    (tmp_path / "packaging" / "conda" / "recipe.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_versions_that_agree(tmp_path):
    assert versions.disagreements(tree(tmp_path), []) == []
    assert versions.disagreements(tmp_path, ["v0.2.0", "nightly"]) == []


@pytest.mark.parametrize("place", ["citation", "recipe"])
def test_a_file_with_another_version(tmp_path, place):
    (found,) = versions.disagreements(tree(tmp_path, **{place: "0.1.0"}), [])
    assert place in found.lower()
    assert found.endswith("says 0.1.0, not 0.2.0")


def test_a_changelog_that_lags_or_is_empty(tmp_path):
    found = versions.disagreements(tree(tmp_path, project="0.3.0"), [])
    assert "CHANGELOG.md says 0.2.0, not 0.3.0" in found
    (tmp_path / "CHANGELOG.md").write_text(
        "## 0.2.0 (2026-11-30)\n\n## 0.1.0\n\n- Old.\n", encoding="utf-8"
    )
    assert "the top entry of CHANGELOG.md is empty" in versions.disagreements(tmp_path, [])


def test_a_tag_asks_for_its_version_and_a_date(tmp_path):
    tree(tmp_path)
    assert versions.disagreements(tmp_path, ["v0.2.1"]) == ["the tag is v0.2.1, not v0.2.0"]
    (tmp_path / "CHANGELOG.md").write_text(
        CHANGELOG.replace("2026-11-30", "unreleased"), encoding="utf-8"
    )
    assert versions.disagreements(tmp_path, []) == []
    (found,) = versions.disagreements(tmp_path, ["v0.2.0"])
    assert "(unreleased) in place of the date" in found


def test_this_tree_names_one_version():
    assert versions.disagreements(ROOT, []) == []


INFO = "polyspan-0.2.0.dist-info"
WHEEL = {
    "polyspan/__init__.py": b"x",
    "polyspan/py.typed": b"",
    "polyspan/images/learned.npz": b"x",
    f"{INFO}/METADATA": b"x",
    f"{INFO}/licenses/LICENSE": b"x",
    f"{INFO}/licenses/docs/licences-of-pictures.md": b"x",
}


def test_the_look_into_a_wheel(tmp_path):
    path = tmp_path / "polyspan.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in WHEEL.items():
            wheel.writestr(name, content)
    assert archives.wheel_files(path) == WHEEL
    assert archives.wheel_problems(WHEEL, "0.2.0") == []
    assert archives.size_problems(path, 10_000) == []
    assert archives.size_problems(path, 100) != []


@pytest.mark.parametrize("name", WHEEL)
def test_a_file_that_a_wheel_lacks(name):
    rest = {other: content for other, content in WHEEL.items() if other != name}
    assert archives.wheel_problems(rest, "0.2.0") == [f"{name} is missing"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tools/soak.py", "no part of polyspan"),
        ("polyspan-0.1.0.dist-info/RECORD", "no part of polyspan"),
        ("polyspan/tests/test_all.py", "a test"),
        ("polyspan/__pycache__/a.pyc", "build output"),
    ],
)
def test_a_file_that_no_wheel_has(name, reason):
    (found,) = archives.wheel_problems({**WHEEL, name: b"x"}, "0.2.0")
    assert found == f"{name} is {reason}"


def test_a_learned_file_without_content():
    files = {**WHEEL, "polyspan/images/learned.npz": b""}
    found = archives.wheel_problems(files, "0.2.0")
    assert found == ["polyspan/images/learned.npz is empty"]


TRACKED = [
    "LICENSE", "README.md", "docs/licences-of-pictures.md", "pyproject.toml",
    "src/polyspan/py.typed", "tests/test_all.py",
]  # fmt: skip
SDIST = {f"polyspan-0.2.0/{name}": b"x" for name in [*TRACKED, "PKG-INFO"]}


def test_the_look_into_a_source_archive(tmp_path):
    path = tmp_path / "polyspan.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in SDIST.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert archives.sdist_files(path) == SDIST
    assert archives.sdist_problems(SDIST, "0.2.0", TRACKED) == []


def test_a_source_archive_with_too_little_or_too_much():
    rest = {name: content for name, content in SDIST.items() if "/tests/" not in name}
    assert archives.sdist_problems(rest, "0.2.0", TRACKED) == ["the tests are missing"]
    rest = {name: content for name, content in SDIST.items() if not name.endswith("/LICENSE")}
    assert archives.sdist_problems(rest, "0.2.0", TRACKED) == ["LICENSE is missing"]
    more = {**SDIST, "polyspan-0.2.0/usps.h5": b"x"}
    assert archives.sdist_problems(more, "0.2.0", TRACKED) == ["usps.h5 is not in git"]
    found = archives.sdist_problems({**SDIST, "elsewhere/a": b"x"}, "0.2.0", TRACKED)
    assert found == ["elsewhere/a is not in polyspan-0.2.0/"]
    tracked = [*TRACKED, "build/site/index.html"]
    more = {**SDIST, "polyspan-0.2.0/build/site/index.html": b"x"}
    (found,) = archives.sdist_problems(more, "0.2.0", tracked)
    assert found == "build/site/index.html is build output, or data"


def test_a_file_that_names_a_folder_of_the_machine(tmp_path):
    files = {"a": f"see {tmp_path}/notes.txt".encode(), "b": b"see /notes.txt"}
    (found,) = archives.path_problems(files, [tmp_path, Path("/")])
    assert found.startswith("a names a folder of this machine")


SNIPPET = 'print(f"clusters: {3}")  # 3\nprint(f"wrong: {0:.1%}")  # 0.0%\n'
README = f"# polyspan\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## Use\n\n```python\n{SNIPPET}```\n"


def test_what_the_first_lines_promise():
    assert readme.first_snippet(README) == SNIPPET
    assert readme.first_snippet("# polyspan\n") == ""
    assert readme.promise_problems(SNIPPET, "clusters: 3\nwrong: 0.0%\n") == []
    (found,) = readme.promise_problems(SNIPPET, "clusters: 13\nwrong: 0.0%\n")
    assert found == "'3' is promised, 'clusters: 13' was printed"
    assert readme.promise_problems(SNIPPET, "clusters: 3\n") != []
    assert readme.promise_problems("x = 1\n", "") != []


def test_the_readme_as_a_page(tmp_path):
    from markdown_it import MarkdownIt

    def problems(text):
        html = MarkdownIt("commonmark").enable("table").render(text)
        return readme.page_problems(text, html, tmp_path)

    assert problems(README) == []
    assert problems(README.replace("| 1 | 2 |\n\n", "").replace("|---|---|", "|---|")) == [
        "a table is lost"
    ]
    assert problems(README.replace("## Use", "<!--\n## Use\n-->")) == ["heading 'Use' is lost"]
    assert problems(README + "[guide](docs/guide.md)\n") == ["the link docs/guide.md leads nowhere"]


BILL = {
    "metadata": {"component": {"name": "polyspan", "version": "0.2.0"}},
    "components": [{"name": "numpy"}, {"name": "scikit-learn"}],
}


def test_the_look_into_a_bill_of_materials():
    text = json.dumps(BILL)
    assert sbom.sbom_problems(text, "0.2.0", ["numpy", "polyspan", "scikit_learn"]) == []
    assert sbom.sbom_problems(text, "0.3.0", ["numpy", "scikit-learn"]) != []
    found = sbom.sbom_problems(text, "0.2.0", ["numpy", "scipy"])
    assert found == ["scipy is not listed", "scikit-learn is listed, but not installed"]
