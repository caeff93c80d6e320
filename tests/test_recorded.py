"""What was recorded of small fits is what they give: a part of `python tools/record.py`."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = str(Path(__file__).parents[1] / "tools")
sys.path.insert(0, TOOLS)
import record
from recording.outcomes import lines
from recording.stored import ELSEWHERE, VERSIONS, Record, fingerprint, keep, kept_of

sys.path.remove(TOOLS)

RECORD = Record.read(record.RECORD)
#: One or two cases of every family, with missing entries, weights, files and streams.
CASES = (
    "MiCUSaL(3, 2) | rows | new: new_rows",
    "MiCUSaL(3, 2, affine=True) | chunked_rows",
    "MiCUSaL(3, (1, 2, 3)) | batches | sample_weight=weight_batches",
    "RobustMiCUSaL(3, 2) | holes | new: new_holes",
    "RobustMiCUSaL(3, 2) | holes | sample_weight=weights",
    "AdaptiveMiCUSaL(5, 3) | rows | new: new_rows",
    "MCKUSaL(3, 2) | rows | new: new_rows",
    "MCKUSaL(3, 2, low_rank=20) | dask_rows",
    "RobustMCKUSaL(3, 2) | holes | new: new_holes",
    "SubspaceMixture(3, 2) | rows | sample_weight=weights",
    "SubspaceMixture(3, 2) | holes | new: new_holes",
    "SubspaceOutlierDetector() | outlying | new: new_rows",
    "SubspaceClustering(3) | rows | new: new_rows",
    'SubspaceImputer(method="subspaces") | table | new: new_table',
    "SparseSubspaceClustering(3, 2) | rows | new: new_rows",
    'denoise_image(noisy, 0.1, "fast") | clean',
    "fit_micusal(many, 2, 1)",
)


@pytest.fixture
def small_files(monkeypatch):
    """Read files in small slices during a test alone."""
    for name, module in list(sys.modules.items()):
        if name.startswith("polyspan") and hasattr(module, "SLICE_BYTES"):
            monkeypatch.setattr(module, "SLICE_BYTES", record.SLICE_BYTES)


@pytest.mark.parametrize("line", CASES)
def test_results_are_as_recorded(line, small_files):
    here = fingerprint()
    other = [key for key in ("BLAS", *VERSIONS) if here[key] != RECORD.machine[key]]
    if other:
        pytest.skip(f"recorded with another {', '.join(other)}: rounding differs")
    ((_, values),) = record.computed({line: lines()[line]})
    assert RECORD.differences(line, values, ELSEWHERE, stable=True) == []


def test_every_case_is_recorded():
    assert list(RECORD.cases) == list(lines())


def kept(**values):
    return Record({"case": kept_of(values)}, {}, {})


LONG = np.random.default_rng(0).standard_normal((20, 30))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"a": LONG}, {"a": LONG * (1 + 1e-7)}, "a differs by"),
        ({"a": LONG}, {"a": LONG[:, ::-1]}, "a differs by"),
        ({"a": LONG}, {"a": LONG[:10]}, "a was '20x30 float64', is '10x30 float64'"),
        ({"a": LONG}, {"a": np.where(LONG > 2, np.nan, LONG)}, "a is not equal|a was"),
        ({"a": 1.0}, {"a": 1.0 + 1e-8}, "a differs by"),
        ({"labels_": np.arange(300)}, {"labels_": np.arange(300)[::-1]}, "labels_ is not equal"),
        ({"labels_": np.array([0, 1])}, {"labels_": np.array([0, 2])}, "was '2 0 1', is '2 0 2'"),
        ({"a": "text"}, {"b": "text"}, "a is gone"),
        ({"PSNR": 30.0}, {"PSNR": 30.002}, "PSNR differs"),
    ],
)
def test_differences_are_found(old, new, said):
    found = kept(**old).differences("case", new, 1e-9)
    assert found
    assert any(re.search(said, one) for one in found)


@pytest.mark.parametrize("name", ["a", "PSNR"])
def test_what_may_differ_is_no_difference(name):
    value = 30.0 if name == "PSNR" else LONG
    near = 30.0009 if name == "PSNR" else LONG * (1 + 1e-11)
    assert kept(**{name: value}).differences("case", {name: near}, 1e-9) == []


def test_a_record_is_read_as_it_was_written(tmp_path):
    values = {"a": LONG, "b": np.float32([1, 2]), "c": "text", "d": np.arange(4)}
    one = Record({"case": kept_of(values)}, {"case": ["a"]}, {"BLAS": "one"})
    one.write(tmp_path / "r.npz")
    again = Record.read(tmp_path / "r.npz")
    assert again.differences("case", values, 0.0) == []
    assert (again.unstable, again.machine) == (one.unstable, one.machine)


@pytest.fixture
def one_case(monkeypatch, tmp_path):
    """Let the script have one case, whose recorded value is another than the computed one."""
    line = "metrics.clustering_error([0, 1], [1, 0])"
    monkeypatch.setattr(record, "lines", lambda: {line: "call"})
    monkeypatch.setattr(record, "RECORD", tmp_path / "r.npz")
    monkeypatch.setattr(record, "computed", lambda *_: iter([(line, {"": 1.0})]))
    return lambda machine: Record({line: {"": keep(2.0)}}, {}, machine).write(record.RECORD)


def test_a_difference_fails_where_it_was_recorded(one_case, monkeypatch, capsys):
    one_case(fingerprint())
    monkeypatch.setattr(sys, "argv", ["record.py"])
    with pytest.raises(SystemExit):
        record.main()
    assert "metrics.clustering_error" in capsys.readouterr().out


def test_a_difference_fails_on_another_processor_with_the_same_kernels(one_case, monkeypatch):
    one_case({**fingerprint(), "processor": "another"})
    monkeypatch.setattr(sys, "argv", ["record.py"])
    with pytest.raises(SystemExit):
        record.main()


def test_a_difference_never_fails_with_another_blas(one_case, monkeypatch, capsys):
    one_case({**fingerprint(), "BLAS": "another"})
    monkeypatch.setattr(sys, "argv", ["record.py"])
    record.main()
    assert "recorded elsewhere, with BLAS another" in capsys.readouterr().out


def test_writing_says_what_has_changed(one_case, monkeypatch, capsys):
    one_case(fingerprint())
    monkeypatch.setattr(sys, "argv", ["record.py", "--write"])
    record.main()
    assert "differs by" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["record.py"])
    record.main()
    assert "0 differ" in capsys.readouterr().out
