"""The command in terminals and shells of other systems."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from polyspan.base import interrupts
from polyspan.cli import console
from polyspan.cli.errors import Code, CommandError
from support import noisy_picture

COMMAND = [sys.executable, "-m", "polyspan.cli"]
LOCALES = {
    "code page": {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"},
    "no locale": {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "LC_ALL": "C"},
}


def run_in(locale, folder, *words, program=COMMAND):
    """Run a command in a process with another encoding; return its code, output and errors."""
    environment = {**os.environ, **LOCALES[locale], "COLUMNS": "200"}
    done = subprocess.run(
        [*program, *map(str, words)], cwd=folder, env=environment, capture_output=True, check=False
    )
    # Any bytes, one letter each.
    shown = (
        stream.replace(b"\r\n", b"\n").decode("latin-1") for stream in (done.stdout, done.stderr)
    )
    return done.returncode, *shown


@pytest.mark.parametrize("locale", LOCALES)
def test_signs_become_words(shelf, tmp_path, locale):
    code, shown, errors = run_in(locale, tmp_path, "denoise", "--help")
    assert (code, errors) == (0, "")
    assert "polyspan denoise photo.png" in shown
    code, shown, errors = run_in(locale, tmp_path, "outliers", shelf / "x.csv", "-o", "λ-文.csv")
    assert (code, errors) == (0, "")
    assert os.listdir(tmp_path) == ["λ-文.csv"]
    as_bytes = "λ-文.csv".encode().decode("latin-1")  # of a name that Linux could not decode
    name = "lambda-\\u6587.csv" if locale == "code page" or sys.platform != "linux" else as_bytes
    assert shown.endswith(f"60 rows written to {name}\n")


@pytest.mark.parametrize("locale", LOCALES)
def test_errors_are_said_in_words_too(tmp_path, locale):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    code, shown, errors = run_in(locale, tmp_path, "cluster", "t.csv", "-o", "l.csv", "--drop", "ж")
    assert (code, shown) == (1, "")
    assert "error: t.csv has no column" in errors
    assert "Traceback" not in errors


def test_a_stream_keeps_what_it_did_with_other_letters():
    text = "λ\udcff…文"
    for before, written in (
        ("strict", r"lambda\udcff...\u6587"),
        ("replace", "lambda?...?"),
        ("surrogateescape", "lambda\xff...\\u6587"),
    ):
        place, found = 0, b""
        while place < len(text):
            error = UnicodeEncodeError("ascii", text, place, place + 1, "not in range")
            part, place = console._word_for(error, before=before)
            found += part if isinstance(part, bytes) else part.encode("ascii")
        assert found.decode("latin-1") == written


def as_on_windows(*words, also=""):
    """Return a program that runs the command as on Windows."""
    code = (
        "import sys, polyspan.cli.app\n"
        "from polyspan.cli import console, main\n"
        f"console.WINDOWS = True\n{also}\n"
        f"sys.argv = ['polyspan', *{[str(word) for word in words]!r}]\n"
        "main()"
    )
    return [sys.executable, "-c", code]


def test_the_command_expands_patterns_itself(tmp_path):
    for name in ("b.png", "a.png", "c[1].png", "c1.png"):
        Image.fromarray((255 * noisy_picture(shape=(16, 16))[1].clip(0, 1)).astype("u1")).save(
            tmp_path / name
        )
    (tmp_path / "out").mkdir()
    # Brackets are letters to Windows: the second word does not mean c1.png.
    words = ("denoise", "?.png", "c[1].png", "-o", "out", "--sigma", 20, "--preset", "fast")
    done = subprocess.run(as_on_windows(*words), cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.rpartition(os.sep)[2] for line in done.stdout.splitlines()]
    assert names == ["a-denoised.png", "b-denoised.png", "c[1]-denoised.png"]
    assert sorted(os.listdir(tmp_path / "out")) == names


def test_which_words_are_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "-b.png", "x=1.png", "c[1].tif", "c1.tif"):
        (tmp_path / name).touch()
    words = ["*.png", "-*", "none.*", "~/a", "~x", "a.png", "c[1]*", "c[1].tif"]
    monkeypatch.setattr(sys, "argv", ["polyspan", *words])
    monkeypatch.setattr(console, "WINDOWS", False)
    assert console.given_words() is None
    monkeypatch.setattr(console, "WINDOWS", True)
    home = os.path.expanduser("~/a")
    assert console.given_words() == [
        "-b.png", "a.png", "x=1.png", "-*", "none.*", home, "~x", "a.png", "c[1].tif", "c[1].tif"
    ]  # fmt: skip


CLOSED = """
import builtins
def write(*_, **__):
    raise OSError(22, "Invalid argument")
builtins.print = write
"""


def test_a_pipe_that_nobody_reads_on_windows(tmp_path):
    """There it is an invalid argument; elsewhere that error is one of the disk."""
    words = ("--version",)
    done = subprocess.run(as_on_windows(*words, also=CLOSED), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (141, "")


def test_an_invalid_argument_elsewhere_is_not_a_pipe(monkeypatch):
    monkeypatch.setattr(console, "WINDOWS", False)
    with pytest.raises(CommandError, match="Invalid") as found, console.standard_output():
        raise OSError(22, "Invalid argument")
    assert found.value.code == Code.UNWRITABLE


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there is no other signal to take")
def test_ctrl_break_ends_the_command_like_a_termination(tmp_path):
    program = (
        "import os, signal, polyspan.cli.app as app\n"
        "signal.SIGBREAK = signal.SIGUSR1\n"
        "app.app = lambda **_: os.kill(os.getpid(), signal.SIGBREAK)\n"
        "app.run()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("polyspan", True), ("polyspan.exe", True), ("Polyspan.EXE", True),
        ("polyspan-script.py", True), ("polyspan-tool", False), ("pytest.exe", False),
    ],
)  # fmt: skip
def test_names_of_the_command(monkeypatch, name, ours):
    monkeypatch.setattr(sys, "argv", [os.path.join("folder", name)])
    assert interrupts.is_command() is ours


def test_lines_of_windows_are_read_and_kept(run, shelf, tmp_path):
    text = (shelf / "holes.csv").read_text(encoding="utf-8")
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    words = ("--method", "subspaces")
    assert run("impute", "t.csv", "-o", "f.csv", *words).exit_code == 0
    assert run("impute", shelf / "holes.csv", "-o", "g.csv", *words).exit_code == 0
    found = (tmp_path / "f.csv").read_bytes()
    assert found.replace(b"\r\n", b"\n") == (tmp_path / "g.csv").read_bytes()
    assert found.count(b"\r\n") == 61
    assert np.isfinite(np.genfromtxt(tmp_path / "f.csv", delimiter=",", skip_header=1)).all()


def test_a_picture_is_not_replaced_by_itself_in_other_letters(run, tmp_path, monkeypatch):
    Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save(tmp_path / "photo.png")
    monkeypatch.setattr("polyspan.base.files._ignores_case", lambda folder: True)
    done = run("denoise", "photo.png", "-o", "Photo.PNG", "--force")
    assert done.exit_code == 1
    assert "the output is the picture itself" in done.output
