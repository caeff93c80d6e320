"""The command in a process of its own: output, exit code and files."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polyspan import load_model

COMMAND = [sys.executable, "-m", "polyspan.cli"]
needs_posix = pytest.mark.skipif(
    os.name == "nt", reason="Windows sends no signals, and runs nothing between fork and exec"
)


def polyspan(*words, folder, **options):
    return subprocess.run(
        [*COMMAND, *map(str, words)], cwd=folder, capture_output=True, text=True, **options
    )


@pytest.mark.parametrize(("first", "second"), [(".csv", ".parquet")])
def test_learn_here_apply_there(shelf, tmp_path, first, second):
    words = ("-o", "l.csv", "-L", 2, "--save-model", "m.skops")
    done = polyspan("cluster", shelf / f"x{first}", *words, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "60 samples are in 2 clusters" in done.stdout
    words = ("--model", "m.skops", "-o", "n.csv")
    done = polyspan("cluster", shelf / f"x{second}", *words, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "60 rows written to n.csv\n", "")
    # What a third process, this one, makes of the same file.
    X = np.load(shelf / "x.npy")
    names = load_model(tmp_path / "m.skops").feature_names_in_
    labels = load_model(tmp_path / "m.skops").predict(pd.DataFrame(X, columns=names))
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "n.csv")["label"], labels)
    assert sorted(os.listdir(tmp_path)) == ["l.csv", "m.skops", "n.csv"]


def test_the_installed_script_reads_and_writes_pipes(shelf, tmp_path):
    script = shutil.which("polyspan", path=str(Path(sys.executable).parent))
    assert script is not None
    done = subprocess.run(
        [script, "impute", "-", "-o", "-", "--method", "subspaces"],
        input=(shelf / "holes.csv").read_bytes(), cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    filled = np.genfromtxt(done.stdout.decode().splitlines(), delimiter=",", skip_header=1)
    holes = np.load(shelf / "holes.npy")
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[seen], holes[seen])
    assert np.isfinite(filled).all()
    assert b"60 rows written to -" in done.stderr
    assert os.listdir(tmp_path) == []


@needs_posix
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        ("--version",),
        ("cluster", "--help"),
        ("cluster", "x.npy", "-o", "l.csv"),
        ("outliers", "x.npy", "-o", "-"),
    ],
)
def test_a_closed_pipe_and_a_full_device_have_codes_of_their_own(shelf, tmp_path, words):
    words = [str(shelf / word) if word == "x.npy" else word for word in words]
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run([*COMMAND, *words], cwd=tmp_path, stdout=writes, stderr=subprocess.PIPE)
    os.close(writes)
    assert done.returncode == 141
    assert b"rror" not in done.stderr
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [*COMMAND, *words, *["--force"] * (len(words) > 2)],
                cwd=tmp_path, stdout=full, stderr=subprocess.PIPE,
            )  # fmt: skip
        assert done.returncode == 5
        assert b"error: cannot write to the standard output: No space left" in done.stderr
        assert b"Traceback" not in done.stderr


def test_what_needs_no_learning_is_fast(tmp_path):
    """The version, help and errors about files come before the imports that take seconds."""
    program = (
        "import sys, polyspan.cli\n"
        "sys.argv = ['polyspan', *sys.argv[1:]]\n"
        "try:\n    polyspan.cli.main()\n"
        "finally:\n    print({'sklearn', 'scipy', 'pandas'} & set(sys.modules))"
    )
    for words in (["--version"], ["impute", "none.csv", "-o", "o.csv"], ["denoise", "none.png"]):
        command = [sys.executable, "-c", program, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.endswith("set()\n"), words


def test_bad_input_from_a_shell(shelf, tmp_path):
    (tmp_path / "m.skops").write_text("not a model", encoding="utf-8")
    data = shelf / "holes.csv"
    for words, code, message in (
        (("impute", data, "--model", "m.skops", "-o", "out.csv"), 3, "m.skops is not a polyspan"),
        (("cluster", data, "-o", "out.csv"), 1, "clusters need complete rows"),
    ):
        done = polyspan(*words, folder=tmp_path)
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert os.listdir(tmp_path) == ["m.skops"]


@needs_posix
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
@pytest.mark.parametrize("quiet", [False, True])
def test_a_bar_on_a_terminal(shelf, tmp_path, quiet):
    X = np.random.default_rng(0).standard_normal((1500, 40))
    np.save(tmp_path / "t.npy", X)
    ours, theirs = os.openpty()
    words = ["cluster", "t.npy", "-o", "l.csv", *["-q"] * quiet]
    parts = []

    def read_all():
        # While the command runs: a terminal holds a few kilobytes, and then lets a writer wait.
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 2**16):
                parts.append(part)

    reader = threading.Thread(target=read_all)
    reader.start()
    done = subprocess.run([*COMMAND, *words], cwd=tmp_path, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    reader.join()
    os.close(ours)
    assert done.returncode == 0
    assert (b"SubspaceClustering" in b"".join(parts)) is not quiet
    assert b"SubspaceClustering" not in done.stdout


@needs_posix
def test_a_full_disk_leaves_nothing(shelf, tmp_path):
    import resource

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    (tmp_path / "old.csv").write_text("old", encoding="utf-8")
    done = polyspan(
        "outliers", shelf / "x.npy", "-o", "old.csv", "--force",
        folder=tmp_path, preexec_fn=little_room,
    )  # fmt: skip
    assert done.returncode == 5
    assert "error: cannot write old.csv: File too large" in done.stderr
    assert os.listdir(tmp_path) == ["old.csv"]
    assert (tmp_path / "old.csv").read_text(encoding="utf-8") == "old"


@needs_posix
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing(shelf, tmp_path, sent, code):
    # A long fit that says when it has begun.
    program = (
        # A shell that starts the tests in the background lets everything in them ignore Ctrl-C.
        "import signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import polyspan.cli\n"
        "def fit(*_):\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(60)\n"
        "polyspan.SubspaceClustering.fit = fit\n"
        "polyspan.cli.main()\n"
    )
    words = ["cluster", str(shelf / "x.npy"), "-o", "l.csv"]
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert child.stdout.readline() == "begun\n"
        time.sleep(0.5)
        child.send_signal(sent)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == code
    assert "Traceback" not in errors
    assert ("interrupted; no output was written" in errors) == (sent == signal.SIGINT)
    assert os.listdir(tmp_path) == []


STUB = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"


def take_interrupts():
    """Undo what a background shell has done, whose programs start with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# The first is imported by the library, the other by the command.
@needs_posix
@pytest.mark.parametrize("module", ["array_api_compat", "typer"])
@pytest.mark.parametrize("start", ["module", "script"])
def test_an_interrupt_during_imports_is_one_line(shelf, tmp_path, module, start):
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / f"{module}.py").write_text(STUB, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "stubs"), os.environ.get("PYTHONPATH", "")])
    script = Path(sys.executable).parent / "polyspan"
    words = COMMAND if start == "module" else [sys.executable, str(script)]
    done = subprocess.run(
        [*words, "cluster", shelf / "x.npy", "-o", "l.csv"],
        env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path,
        capture_output=True, text=True, preexec_fn=take_interrupts,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "error: interrupted; no output was written\n"
    assert os.listdir(tmp_path) == ["stubs"]


@needs_posix
def test_an_interrupt_while_a_program_imports_the_library_stays_its_own(tmp_path):
    (tmp_path / "array_api_compat.py").write_text(STUB, encoding="utf-8")
    program = "try:\n    import polyspan.images\nexcept KeyboardInterrupt:\n    print('mine')"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, preexec_fn=take_interrupts,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "mine\n", "")


def test_handlers_of_others_stay():
    from polyspan.base.interrupts import ended_by_interrupt

    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with ended_by_interrupt():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with ended_by_interrupt():
            assert signal.getsignal(signal.SIGINT) != signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_typer_it_says_what_to_install(tmp_path):
    program = "import sys; sys.modules['typer'] = None; import polyspan.cli; polyspan.cli.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'pip install "polyspan[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_without_pandas_it_says_what_to_install(shelf, tmp_path):
    program = (
        "import sys; sys.modules['pandas'] = None; import polyspan.cli;"
        "sys.argv = ['polyspan', *sys.argv[1:]]; polyspan.cli.main()"
    )
    words = ["impute", str(shelf / "holes.csv"), "-o", "f.csv"]
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'pip install "polyspan[cli]"' in done.stderr
    assert "Traceback" not in done.stderr
