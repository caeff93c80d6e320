"""The command in a process of its own: output, exit code and files."""

import os
import shutil
import signal
import subprocess
import sys
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


@pytest.mark.parametrize(("first", "second"), [(".csv", ".parquet"), (".npz", ".npy")])
def test_fit_here_predict_there(shelf, read, tmp_path, first, second):
    labels, distances = f"l{first}", f"d{second}"
    words = ("-L", 2, "-s", 2, "--labels-out", labels)
    done = polyspan("fit", shelf / f"x{first}", "-o", "m.skops", *words, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("micusal", "samples", "60", "objective", "converged", "30 30"):
        assert word in done.stdout
    data = shelf / f"x{second}"
    done = polyspan("predict", "m.skops", data, "-o", distances, "--distances", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    # Bit-equal to what a third process, this one, makes of the same files.
    model = load_model(tmp_path / "m.skops")
    X, names = read(data)
    X = X if names is None else pd.DataFrame(X, columns=names)
    np.testing.assert_array_equal(read(tmp_path / distances)[0], model.transform(X))
    np.testing.assert_array_equal(read(tmp_path / labels)[0].ravel(), model.predict(X))
    assert names is None or list(model.feature_names_in_) == names
    assert sorted(os.listdir(tmp_path)) == sorted(["m.skops", labels, distances])


def test_the_installed_script_and_the_other_commands(shelf, read, tmp_path):
    script = shutil.which("polyspan", path=str(Path(sys.executable).parent))
    assert script is not None
    done = subprocess.run(
        [script, "reconstruct", shelf / "complete.skops", shelf / "x.csv", "-o", "r.parquet"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "60 rows written to r.parquet\n")
    X, names = read(shelf / "x.csv")
    frame = pd.DataFrame(X, columns=names)
    model = load_model(shelf / "complete.skops")
    values, columns = read(tmp_path / "r.parquet")
    assert columns == names
    np.testing.assert_array_equal(values, model.reconstruct(frame))

    done = polyspan("impute", shelf / "holes.npy", "-o", "f.npy", "-L", 2, "-s", 2, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    holes, filled = np.load(shelf / "holes.npy"), np.load(tmp_path / "f.npy")
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[seen], holes[seen])
    error = np.abs(filled - np.load(shelf / "x.npy"))[~seen]
    assert np.median(error) < 0.1 < np.median(np.abs(np.load(shelf / "x.npy")))


def test_bad_input_from_a_shell(shelf, tmp_path):
    (tmp_path / "m.skops").write_text("not a model", encoding="utf-8")
    data = shelf / "holes.csv"
    for words, code, message in (
        (("predict", "m.skops", data, "-o", "out.csv"), 3, "error: m.skops is not a polyspan"),
        (("fit", data, "-o", "out.skops", "-L", 2, "-s", 2), 1, "--method robust"),
    ):
        done = polyspan(*words, folder=tmp_path)
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert os.listdir(tmp_path) == ["m.skops"]


@needs_posix
def test_a_full_disk_leaves_nothing(shelf, tmp_path):
    import resource

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    (tmp_path / "old.csv").write_text("old", encoding="utf-8")
    done = polyspan(
        "reconstruct", shelf / "complete.skops", shelf / "x.npy", "-o", "old.csv", "--force",
        folder=tmp_path, preexec_fn=little_room,
    )  # fmt: skip
    assert done.returncode == 5
    assert "error: cannot write old.csv: File too large" in done.stderr
    assert os.listdir(tmp_path) == ["old.csv"]
    assert (tmp_path / "old.csv").read_text(encoding="utf-8") == "old"


@needs_posix
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing(tmp_path, sent, code):
    np.save(tmp_path / "big.npy", np.random.RandomState(0).standard_normal((3000, 200)))
    # A long fit that says when it has begun.
    program = (
        # A shell that starts the tests in the background lets everything in them ignore Ctrl-C.
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import polyspan.cli, polyspan.linear.micusal as micusal\n"
        "plain = micusal.run_starts\n"
        "def run_starts(*a, **k):\n"
        "    print('begun', flush=True)\n"
        "    return plain(*a, **k)\n"
        "micusal.run_starts = run_starts\n"
        "polyspan.cli.main()\n"
    )
    words = ["fit", "big.npy", "-o", "m.skops", "-L", "20", "-s", "10"]
    endless = ["--set", "n_init=200", "--set", "tol=0.0", "--set", "max_iter=100000"]
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words, *endless],
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
    assert os.listdir(tmp_path) == ["big.npy"]


STUB = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"


def take_interrupts():
    """Undo what a background shell has done, whose programs start with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# The first is imported by the library, the others by the command.
@needs_posix
@pytest.mark.parametrize("module", ["array_api_compat", "typer", "rich"])
@pytest.mark.parametrize("start", ["module", "script"])
def test_an_interrupt_during_imports_is_one_line(tmp_path, module, start):
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / f"{module}.py").write_text(STUB, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "stubs"), os.environ.get("PYTHONPATH", "")])
    script = Path(sys.executable).parent / "polyspan"
    words = COMMAND if start == "module" else [sys.executable, str(script)]
    done = subprocess.run(
        [*words, "--help"], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, preexec_fn=take_interrupts,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "error: interrupted; no output was written\n"


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
    assert "pip install typer rich skops" in done.stderr
    assert "Traceback" not in done.stderr
