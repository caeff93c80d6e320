"""The constraints of `make test-floor` are the floors of pyproject.toml."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
floors = runpy.run_path(str(ROOT / "tools" / "floor_constraints.py"))["floors"]

PROJECT = """
[project]
dependencies = ["numpy>=2.2", {dependency}]
[project.optional-dependencies]
data = ["pillow>=11", "dask[array]>=2024.12"]
cli = ["pillow>={pillow}"]
dev = ["polyspan[cli]", "pytest>=9", "polars>=1.14"]
"""


def written(tmp_path, dependency='"scipy>=1.15"', pillow="11"):
    path = tmp_path / "pyproject.toml"
    path.write_text(PROJECT.format(dependency=dependency, pillow=pillow), encoding="utf-8")
    return path


def test_every_run_time_dependency_has_a_floor(tmp_path):
    assert floors(written(tmp_path)) == {
        "numpy": "2.2", "scipy": "1.15", "pillow": "11", "dask": "2024.12", "polars": "1.14",
    }  # fmt: skip
    assert {"numpy", "scikit-learn", "numba", "pandas", "zarr"} <= set(
        floors(ROOT / "pyproject.toml")
    )


def test_what_has_no_floor_or_two(tmp_path):
    with pytest.raises(ValueError, match=r"'scipy' has no floor: write it as name>=version"):
        floors(written(tmp_path, dependency='"scipy"'))
    with pytest.raises(ValueError, match="pillow has the floors 11 and 12"):
        floors(written(tmp_path, pillow="12"))
