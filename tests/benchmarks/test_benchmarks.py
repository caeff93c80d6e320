"""The benchmark's literal algorithm is Algorithm 1, and ours follows it iteration by iteration."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import draw_bases
from support import require_torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def literal():
    sys.path.insert(0, str(BENCHMARKS))
    import literal

    yield literal
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("lam", [1.0, 4.0, 100.0, float("inf")])
@pytest.mark.parametrize(
    ("sizes", "m", "s"),
    [((150, 100, 150, 100, 150), 180, 13), ((30, 30, 36), 300, 9), ((40, 30), 10, 2)],
    ids=["paper", "faces", "tall"],
)
def test_every_objective_equals_the_literal_one(literal, lam, sizes, m, s):
    X = make_union_of_subspaces(sizes, n_features=m, subspace_dim=s, random_state=0).X
    start = draw_bases((len(sizes), m, s), np.random.RandomState(1))
    n_steps = 12 if len(X) > 500 else 300  # the literal one is slow
    expected = literal.micusal(X, start, lam, max_iter=n_steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MiCUSaL(len(sizes), s, lam=lam, init=start, solver="exact", max_iter=n_steps).fit(X)
    n = min(len(expected.history), len(model.objective_history_))
    assert n > 2
    assert_allclose(model.objective_history_[:n], expected.history[:n], rtol=1e-9)
    if len(expected.history) == len(model.objective_history_):
        assert np.array_equal(model.labels_, expected.labels)


def test_the_digits_of_the_benchmark(literal, needs_data):
    needs_data("usps")
    from scipy.io import loadmat

    import usps
    from polyspan.datasets.files import find_file
    from polyspan.datasets.usps import USPS

    data = loadmat(find_file(USPS, download=False))["data"].astype(float)
    X, labels = usps.load((0, 4), slice(10, 30))
    expected = np.concatenate([data[:, 10:30, 9].T, data[:, 10:30, 3].T])
    assert_allclose(X, expected / np.linalg.norm(expected, axis=1, keepdims=True))
    assert labels.tolist() == [0] * 20 + [4] * 20
    chosen, k, left = usps.select((0, 4), 0, slice(0, 50), 30)
    assert k.tolist() == [0] * 30 + [1] * 30
    together = np.concatenate([chosen, left])
    everything = usps.load((0, 4), slice(0, 50))[0]
    assert sorted(map(tuple, together)) == sorted(map(tuple, everything))


def test_literal_objective_by_hand(literal):
    bases = np.stack([np.eye(3)[:, :1], np.eye(3)[:, 1:2]])
    X = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]])
    result = literal.micusal(X, bases, 0.5, max_iter=0, center=False)
    assert result.labels.tolist() == [0, 1]
    assert result.history == [2.0 + 0.5 * 1.0]


def test_a_row_runs_and_is_written(tmp_path):
    output = tmp_path / "rows.json"
    command = [sys.executable, str(BENCHMARKS / "run.py"), "smoke", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ratio" in done.stdout
    saved = json.loads(output.read_text(encoding="utf-8"))
    assert {"commit", "numpy", "processor"} <= set(saved["machine"])
    assert all(
        row["largest difference of F1"] < 1e-9 for row in saved["rows"] if "exact" in row["row"]
    )


def test_the_gpu_script_checks_tiny_sizes_where_there_is_none():
    require_torch()
    command = [sys.executable, str(BENCHMARKS / "gpu.py")]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "There is no CUDA device here" in done.stdout
    assert "| target |" in done.stdout
    saved = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert saved["machine"]["device"] == "none"
    assert [row["correct"] for row in saved["rows"]] == [True] * 5
