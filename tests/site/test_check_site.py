"""The check of the built site notices what is broken."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "tools" / "check_site.py"


def checked(folder):
    command = [sys.executable, CHECK, folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ('<a href="other.html#here">x</a>', None),
        ('<a href="#top">x</a>', None),
        ('<a href="https://example.org/x">x</a>', None),
        ('<a href="folder/">x</a>', None),
        ('<a href="other.html#nowhere">x</a>', "no such anchor"),
        ('<a href="gone.html">x</a>', "no such file"),
        ('<img src="gone.png">', "no such file"),
        ('<script src="https://example.org/x.js"></script>', "loaded from elsewhere"),
        ('<svg><a href="gone.html"><text>x</text></a></svg>', "no such file"),
    ],
)
def test_links_of_a_page(tmp_path, link, problem):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "index.html").write_text("<p>", encoding="utf-8")
    (tmp_path / "other.html").write_text('<h1 id="here">Title</h1>', encoding="utf-8")
    (tmp_path / "index.html").write_text(f"<p>{link}</p>", encoding="utf-8")
    done = checked(tmp_path)
    assert done.returncode == (0 if problem is None else 1)
    assert (problem or "all links lead somewhere") in done.stdout


def test_a_folder_without_pages_is_no_site(tmp_path):
    assert checked(tmp_path).returncode == 1
