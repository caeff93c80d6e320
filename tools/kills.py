"""Kill runs at random moments, and use models from many threads and processes: `make kills`.

Every kill is `kill -9`. Afterwards no half-written file lies at the output, and the same command,
run again, gives the bytes of a run that was not disturbed.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from PIL import Image
from sklearn.base import clone

from polyspan import (
    MCKUSaL,
    MiCUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
    load_model,
)
from polyspan.datasets import make_union_of_subspaces, mask_entries

ROOT = Path(__file__).resolve().parent.parent
KILLS_EACH = 5
DATA = make_union_of_subspaces((150, 150, 150), n_features=40, subspace_dim=4, random_state=0)
HOLES = mask_entries(DATA.X, 0.2, random_state=0)
MODELS = {
    "MiCUSaL": (MiCUSaL(3, 4, random_state=0), DATA.X),
    "RobustMiCUSaL": (RobustMiCUSaL(3, 4, random_state=0), HOLES),
    "MCKUSaL": (MCKUSaL(3, 4, random_state=0), DATA.X),
    "SubspaceMixture": (SubspaceMixture(3, 4, random_state=0), HOLES),
    "SubspaceImputer": (SubspaceImputer(3, 4, random_state=0), HOLES),
}


def write_inputs(folder: Path) -> None:
    """Write what the commands read."""
    np.save(folder / "rows.npy", np.tile(DATA.X, (8, 1)))
    np.savetxt(folder / "holes.csv", HOLES, delimiter=",", header=",".join(map(str, range(40))))
    rng = np.random.RandomState(0)
    picture = np.add.outer(np.arange(160), np.arange(160)) % 200 + 20 * rng.standard_normal(
        (160,) * 2
    )
    Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(folder / "noisy.png")


COMMANDS = {
    "cluster": ["-m", "polyspan.cli", "cluster", "rows.npy", "-o", "{out}", "-q"],
    "impute": ["-m", "polyspan.cli", "impute", "holes.csv", "-o", "{out}", "-q"],
    "denoise": ["-m", "polyspan.cli", "denoise", "noisy.png", "-o", "{out}", "-q"],
}  # fmt: skip
ENDINGS = {"cluster": ".csv", "impute": ".csv", "denoise": ".png"}


def digest(path: Path) -> str:
    """Return the hash of a file; of a model, whose file holds a time, of what it says."""
    content = path.read_bytes()
    if path.suffix == ".skops":
        content = ask(load_model(path), DATA.X)
    return hashlib.sha256(content).hexdigest()


def start(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in a group of its own."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )  # fmt: skip


def kill_commands(folder: Path, moments: random.Random) -> int:
    """Kill every command of the command line at random moments; return how many kills."""
    write_inputs(folder)
    kills = 0
    for name, words in COMMANDS.items():
        whole = f"{name}{ENDINGS[name]}"
        began = time.monotonic()
        assert start([word.format(out=whole) for word in words], folder).wait() == 0
        seconds, expected = time.monotonic() - began, digest(folder / whole)
        out = f"{name}-again{ENDINGS[name]}"
        again = [word.format(out=out) for word in words]
        for _ in range(KILLS_EACH):
            process = start(again, folder)
            time.sleep(moments.uniform(0.5, 1.0) * seconds)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            if (folder / out).exists():  # it was done before the kill
                assert digest(folder / out) == expected, f"{name}: a half-written file"
                (folder / out).unlink()
        assert start(again, folder).wait() == 0
        assert digest(folder / out) == expected, f"{name}: another result after kills"
        print(f"{name}: {KILLS_EACH} kills, the same bytes afterwards", flush=True)
    return kills


def kill_reproduction(folder: Path, moments: random.Random) -> int:
    """Kill the reproduction with two jobs; return how many kills."""
    sys.path.insert(0, str(ROOT))  # it lies beside the library
    from reproduction.run.runner import TRIALS_FILE
    from reproduction.run.store import read_records

    words = ["-m", "reproduction", "table1", "fig1", "--scale", "smoke", "--jobs", "2", "--quiet"]
    began = time.monotonic()
    assert start([*words, "--out", "whole"], folder).wait() == 0
    seconds = time.monotonic() - began
    for _ in range(KILLS_EACH):
        process = start([*words, "--out", "killed"], folder)
        time.sleep(moments.uniform(0.3, 0.9) * seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert start([*words, "--out", "killed"], folder).wait() == 0
    first, second = (
        {
            key: str(record.results)
            for key, record in read_records(folder / name / TRIALS_FILE).items()
        }
        for name in ("whole", "killed")
    )
    assert first == second, "another result after kills"
    print(f"reproduction: {KILLS_EACH} kills, the same results afterwards", flush=True)
    return KILLS_EACH


def ask(model: Any, X: np.ndarray) -> bytes:
    """Return the bytes of what a fitted model says."""
    return np.asarray(model.transform(X)).tobytes()


def fit_and_ask(name: str) -> bytes:
    """Fit a fresh model and return the bytes of what it says."""
    model, X = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(clone(model).fit(X), X)


def alike(one: bytes, other: bytes) -> bool:
    """Tell whether two models say the same but for rounding."""
    return np.allclose(np.frombuffer(one), np.frombuffer(other), rtol=1e-7, atol=1e-7)


def use_at_once() -> None:
    """Eight threads on one fitted model; fits in threads; forked, spawned and loky processes."""
    names = list(MODELS)
    expected = {name: fit_and_ask(name) for name in names}
    for name, (model, X) in MODELS.items():
        fitted = clone(model).fit(X)
        with ThreadPoolExecutor(8) as pool:
            said = set(pool.map(lambda _, fitted=fitted, X=X: ask(fitted, X), range(24)))
        assert said == {expected[name]}, f"{name}: threads disturb each other"
    # The number of BLAS threads belongs to the process, so fits at once may round otherwise.
    with ThreadPoolExecutor(8) as pool:
        for name, said_now in zip(names * 2, pool.map(fit_and_ask, names * 2), strict=True):
            assert alike(expected[name], said_now), f"{name}: fits in threads"
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as processes:
            found = list(processes.map(fit_and_ask, names))
        wrong = [name for name, one in zip(names, found, strict=True) if one != expected[name]]
        assert not wrong, f"{method}: {wrong}"
    found = Parallel(n_jobs=2)(delayed(fit_and_ask)(name) for name in names)
    for name, one in zip(names, found, strict=True):  # loky lowers the number of BLAS threads
        assert alike(expected[name], one), f"loky: {name}"
    print("threads, fork, spawn and loky: the same results", flush=True)


def main() -> None:
    """Run everything, in a folder that is removed afterwards."""
    if not hasattr(os, "killpg"):
        raise SystemExit("kills ends groups of processes by signals, which Windows does not have")
    moments = random.Random(0)
    use_at_once()
    with tempfile.TemporaryDirectory() as name:
        kills = kill_commands(Path(name), moments) + kill_reproduction(Path(name), moments)
    print(f"{kills} kills, nothing lost")


if __name__ == "__main__":
    main()
