"""The library runs where parts of Linux are missing: each is taken away here, one by one."""

import builtins
import io
import multiprocessing
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from polyspan import MiCUSaL, SubspaceClustering, SubspaceImputer, SubspaceMixture
from polyspan.base import arrays
from polyspan.baselines import ElasticNetSubspaceClustering, KernelKMeans
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.images import denoise_image, inpaint_image
from support import noisy_picture

DATA = make_union_of_subspaces(
    (40, 40), n_features=12, subspace_dim=2, spread=0.9, noise=0.02, random_state=0
)
HOLES = mask_entries(DATA.X, 0.2, random_state=0)
MODELS = {
    "MiCUSaL": (MiCUSaL(2, 2, random_state=0), DATA.X),
    "SubspaceMixture": (SubspaceMixture(2, 2, random_state=0), HOLES),
    "SubspaceImputer": (SubspaceImputer(2, 2, random_state=0), HOLES),
    "SubspaceClustering": (SubspaceClustering(random_state=0), DATA.X),
    "KernelKMeans": (KernelKMeans(2, random_state=0), DATA.X),
    "exemplars": (ElasticNetSubspaceClustering(2, n_exemplars=30, random_state=0), DATA.X),
}


def test_there_is_no_proc(monkeypatch):
    """Nor a list of the libraries that have threads: they keep what they have."""
    plain, asked = builtins.open, []

    def without(file, *rest, **options):
        if str(file).startswith("/proc"):
            asked.append(file)
            raise FileNotFoundError(2, "No such file or directory", str(file))
        return plain(file, *rest, **options)

    expected = MiCUSaL(2, 2, random_state=0).fit(DATA.X).transform(DATA.X)
    monkeypatch.setattr(builtins, "open", without)
    monkeypatch.setattr(io, "open", without)
    arrays._pools.cache_clear()
    try:
        assert_allclose(
            MiCUSaL(2, 2, random_state=0).fit(DATA.X).transform(DATA.X), expected, atol=1e-8
        )
        with arrays.one_openmp_thread(), arrays.limit_threads(0.0):
            pass
        noisy = noisy_picture(shape=(24, 24))[1]
        assert np.isfinite(denoise_image(noisy, 0.1, "fast", n_jobs=2)).all()
    finally:
        arrays._pools.cache_clear()
    assert sys.platform != "linux" or asked


class ShortIntegers(np.random.RandomState):
    """Random numbers as on Windows: those of C, without a type, have 32 bits."""

    def randint(self, low, high=None, size=None, dtype=int):
        short = np.int32 if dtype is int and size is not None else dtype
        return super().randint(low, high, size, short)

    def permutation(self, x):
        found = super().permutation(x)
        return found.astype(np.int32) if np.ndim(x) == 0 else found

    def choice(self, a, size=None, replace=True, p=None):
        found = super().choice(a, size, replace, p)
        short = np.ndim(a) == 0 and size is not None and (p is None or not replace)
        return np.asarray(found).astype(np.int32) if short else found


def arrays_of(model):
    return {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("name", MODELS)
def test_random_integers_of_32_bits_change_nothing(name, monkeypatch):
    model, X = MODELS[name]
    expected = arrays_of(clone(model).fit(X))
    monkeypatch.setattr(np.random, "RandomState", ShortIntegers)
    assert np.random.RandomState(0).permutation(3).dtype == np.int32
    found = arrays_of(clone(model).fit(X))
    assert expected.keys() == found.keys()
    for attribute, value in expected.items():
        assert_array_equal(found[attribute], value)
        assert found[attribute].dtype == value.dtype, attribute


def test_random_integers_of_32_bits_and_pictures(monkeypatch):
    clean, noisy = noisy_picture(shape=(32, 32))
    missing = np.random.default_rng(0).random(clean.shape) < 0.3

    def results():
        yield denoise_image(noisy, 0.1, "best", random_state=0)
        yield inpaint_image(clean, missing, "fast", random_state=0)
        yield mask_entries(DATA.X, 0.2, random_state=0)

    expected = list(results())
    monkeypatch.setattr(np.random, "RandomState", ShortIntegers)
    for found, value in zip(results(), expected, strict=True):
        assert_array_equal(found, value)


ENCODINGS = """
import sys, warnings
from pathlib import Path
warnings.filterwarnings("error", category=EncodingWarning, module="polyspan")
import numpy as np
from polyspan import MiCUSaL, load_model, save_model
from polyspan.base import arrays
from polyspan.cli.app import app, register_commands
register_commands()
X = np.random.RandomState(0).standard_normal((40, 4))
model = MiCUSaL(2, 1, random_state=0).fit(X)
save_model(model, "m.skops")
load_model("m.skops")
lines = ["a,b,c,d", *(",".join(map(str, row)) for row in X.tolist())]
lines[3] = ",1,2,3"
Path("t.csv").write_text("\\n".join(lines), encoding="utf-8")
for line in ("impute t.csv -o f.csv.gz -q", "outliers f.csv.gz -o o.csv"):
    try:
        app(line.split())
    except SystemExit as end:
        assert end.code == 0, line
Path("t.csv").read_text(encoding=None)  # this one warns, of the program itself
"""


def test_no_encoding_is_left_to_the_system(tmp_path):
    command = [sys.executable, "-X", "warn_default_encoding", "-c", ENCODINGS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "EncodingWarning" in done.stderr


@pytest.mark.parametrize("alive", [True, False])
def test_a_worker_of_the_reproduction_sees_the_end_of_its_parent(monkeypatch, alive):
    """On Windows the number of the parent stays the same when it has ended."""
    from reproduction.run import runner

    monkeypatch.setattr(runner, "WINDOWS", False)
    assert runner._is_running(os.getppid())
    assert not runner._is_running(-1)
    monkeypatch.setattr(runner, "WINDOWS", True)
    monkeypatch.setattr(os, "getppid", lambda: 1234)
    parent = SimpleNamespace(is_alive=lambda: alive)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: parent)
    assert runner._is_running(1234) is alive
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    assert runner._is_running(1234)
