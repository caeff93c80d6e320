"""Input files for the commands, and a function that runs a command."""

import numpy as np
import pandas as pd
import pytest

from polyspan.datasets import make_union_of_subspaces, mask_entries

DATA = make_union_of_subspaces(
    (30, 30), n_features=6, subspace_dim=2, spread=0.9, noise=0.01, random_state=0
)
NAMES = [f"f{k}" for k in range(6)]


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """A folder of inputs that no test changes: complete rows x and rows with holes."""
    folder = tmp_path_factory.mktemp("shelf")
    for name, X in (("x", DATA.X), ("holes", mask_entries(DATA.X, 0.2, random_state=0))):
        frame = pd.DataFrame(X, columns=NAMES)
        np.save(folder / f"{name}.npy", X)
        np.savez(folder / f"{name}.npz", X=X)
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in this process, in an empty folder."""
    from typer.testing import CliRunner

    from polyspan.cli.app import app, register_commands

    register_commands()
    monkeypatch.chdir(tmp_path)
    return lambda *words, **more: CliRunner().invoke(app, [str(word) for word in words], **more)
