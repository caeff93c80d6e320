"""Input files for the commands, and a function that runs a command."""

import numpy as np
import pandas as pd
import pytest

from polyspan import MiCUSaL, RobustMiCUSaL, save_model
from polyspan.datasets import make_union_of_subspaces, mask_entries
from support import read_csv

DATA = make_union_of_subspaces(
    (30, 30), n_features=6, subspace_dim=2, spread=0.9, noise=0.01, random_state=0
)
NAMES = [f"f{k}" for k in range(6)]


def write(X, path, names=NAMES):
    """Write an array in any of the four formats."""
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X=X)
    elif path.suffix == ".csv":
        pd.DataFrame(X, columns=names).to_csv(path, index=False)
    else:
        pd.DataFrame(X, columns=names).to_parquet(path, index=False)
    return path


def read_any(path):
    """Read the numbers of a file, and the names of its columns where it has any."""
    if path.suffix == ".npy":
        return np.load(path), None
    if path.suffix == ".npz":
        (values,) = np.load(path).values()
        return values, None
    frame = read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame.to_numpy(), list(frame.columns)


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """A folder of inputs that no test changes."""
    folder = tmp_path_factory.mktemp("shelf")
    holes = mask_entries(DATA.X, 0.2, random_state=0)
    for ending in (".npy", ".npz", ".csv", ".parquet"):
        write(DATA.X, folder / f"x{ending}")
        write(holes, folder / f"holes{ending}")
    frame = pd.DataFrame(DATA.X, columns=NAMES)
    save_model(MiCUSaL(2, 2, random_state=0).fit(frame), folder / "complete.skops")
    holey = pd.DataFrame(holes, columns=NAMES)
    save_model(RobustMiCUSaL(2, 2, random_state=0).fit(holey), folder / "robust.skops")
    return folder


@pytest.fixture(scope="session")
def read():
    """Reader of all four formats: (numbers, names or None)."""
    return read_any


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in this process, in an empty folder."""
    from typer.testing import CliRunner

    from polyspan.cli.app import app, register_commands

    register_commands()
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])
