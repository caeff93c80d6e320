"""Records survive the way to the file and back, and the file survives whatever happens to it."""

import json
import math
import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction.run import records as records_module
from reproduction.run import store as store_module
from reproduction.run.records import Record, canonical, commit, plain, versions
from reproduction.run.store import TrialStore, read_records


def record(draw=0, **changes):
    whole = Record(
        experiment="toy",
        params={"draw": draw, "lam": math.inf},
        results={"error": 0.1 * draw, "gap": math.nan},
        error=None,
        seconds=1.5,
        cpu_seconds=1.25,
        versions=versions(),
        commit="0123abc",
        started="2024-01-01T00:00:00+00:00",
    )
    return replace(whole, **changes)


def write(path, records):
    with TrialStore(path) as store:
        for one in records:
            store.append(one)


def lines(records):
    return [one.to_line() for one in records]


def load(path):
    """Read a file that must have nothing wrong with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return list(read_records(path).values())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_a_record_comes_back_as_it_was(results):
    line = record(results=results).to_line()
    again = Record.from_line(line)
    # repr tells what == does not: NaN from NaN, 1 from 1.0 and True, -0.0 from 0.0.
    assert repr(again.results) == repr(results)
    assert again.to_line() == line
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


def test_lines_are_json_that_any_reader_accepts():
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    values = {"values": [math.nan, math.inf, -math.inf, 1.0]}
    content = json.loads(record(results=values).to_line(), parse_constant=refuse)
    assert content["results"]["values"][-1] == 1.0


def test_numpy_becomes_plain():
    found = plain({"a": np.float32(0.5), "b": np.arange(4).reshape(2, 2), "c": (np.True_, None)})
    assert repr(found) == "{'a': 0.5, 'b': [[0, 1], [2, 3]], 'c': [True, None]}"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"model": [0, object()]}, r"results\['model'\]\[1\] is a object"),
        ({"z": 1j}, r"results\['z'\] is a complex"),
        ({"z": np.array([1j])}, r"results\['z'\]\[0\] is a complex"),
        ({3: "three"}, "results has the key 3"),
        ({"$float": "nan"}, "results has the key '\\$float'"),
    ],
)
def test_what_json_cannot_hold_is_named(value, named):
    with pytest.raises(TypeError, match=named):
        plain(value, "results")


def test_keys_depend_on_content_and_revision_only():
    a = record(params={"draw": 1, "lam": 2.0})
    b = record(params={"lam": np.float64(2.0), "draw": np.int32(1)}, results={"other": 1})
    assert a.key == b.key
    assert replace(a, revision=2).key != a.key
    assert replace(a, experiment="other").key != a.key
    assert canonical({"seed": 1}) != canonical({"seed": "1"})


def test_the_file_gives_back_what_was_appended(tmp_path):
    path = tmp_path / "deep" / "folder" / "trials.jsonl"
    records = [record(i) for i in range(3)] + [record(3, results=None, error="ValueError: no")]
    write(path, records[:2])
    write(path, records[2:])
    assert lines(load(path)) == lines(records)


def test_missing_and_empty_files_have_no_trials(tmp_path):
    path = tmp_path / "trials.jsonl"
    assert load(path) == []
    path.touch()
    assert load(path) == []
    write(path, [record()])
    assert lines(load(path)) == lines([record()])


def test_of_two_lines_with_one_key_the_last_counts(tmp_path):
    path = tmp_path / "trials.jsonl"
    later = record(0, results={"error": 7.0})
    write(path, [record(0, results=None, error="ValueError: no"), record(1), later])
    assert lines(load(path)) == lines([record(1), later])


def test_a_line_cut_anywhere_is_set_aside(tmp_path):
    path = tmp_path / "trials.jsonl"
    first, last = lines([record(0), record(1)])
    for cut in [*range(1, len(last) - 1, 7), len(last) - 2]:
        path.write_bytes(first + last[:cut])
        with pytest.warns(UserWarning, match="line 2 is no whole record"):
            write(path, [record(2)])
        assert lines(load(path)) == lines([record(0), record(2)])
        aside = tmp_path / "trials.jsonl.corrupt"
        assert aside.read_bytes() == last[:cut] + b"\n"
        aside.unlink()


def test_a_whole_line_without_its_end_counts(tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_bytes(record(0).to_line()[:-1])
    write(path, [record(1)])
    assert lines(load(path)) == lines([record(0), record(1)])
    assert not (tmp_path / "trials.jsonl.corrupt").exists()


@pytest.mark.parametrize(
    "bad",
    [
        b"\x00\x00\x00",
        b"\xff\xfe",
        b"[1, 2]",
        b"{}",
        record().to_line().replace(b'"params": {"draw": 0, ', b'"params": 3, "p": {')[:-1],
        record(error="both").to_line()[:-1],
        record().to_line()[:-1].replace(b'"nan"', b"[]"),
    ],
)
def test_bad_lines_in_the_middle_are_set_aside(tmp_path, bad):
    path = tmp_path / "trials.jsonl"
    before, after = lines([record(0), record(1)])
    damaged = before + bad + b"\n\n" + after
    path.write_bytes(damaged)
    with pytest.warns(UserWarning, match="left out line 2 is no whole record"):
        assert lines(read_records(path).values()) == [before, after]
    assert path.read_bytes() == damaged, "reading changed the file"
    with pytest.warns(UserWarning, match=r"moved to trials\.jsonl\.corrupt"), TrialStore(path):
        pass
    assert path.read_bytes() == before + after
    assert (tmp_path / "trials.jsonl.corrupt").read_bytes() == bad + b"\n"


def test_many_bad_lines_are_counted(tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_bytes(b"torn\n" * 7)
    with pytest.warns(UserWarning, match="lines 1, 2, 3, 4, 5 and 2 more are no whole record"):
        read_records(path)


def test_a_kill_during_the_repair_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "trials.jsonl"
    path.write_bytes(record(0).to_line() + b"torn")

    def killed(*paths):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store_module.os, "replace", killed)
        with pytest.warns(UserWarning, match="line 2"), pytest.raises(KeyboardInterrupt):
            write(path, [])
    with pytest.warns(UserWarning, match="line 2"):
        write(path, [record(1)])
    assert lines(load(path)) == lines([record(0), record(1)])


def test_a_full_disk_leaves_no_torn_line(tmp_path, monkeypatch):
    path = tmp_path / "trials.jsonl"
    whole = os.write
    with TrialStore(path) as store:
        store.append(record(0))
        with monkeypatch.context() as patch:
            patch.setattr(store_module.os, "write", lambda fd, line: whole(fd, line[:20]))
            with pytest.raises(OSError, match=r"only 20 of .* make room on the disk"):
                store.append(record(1))
    assert lines(load(path)) == lines([record(0)])


def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path):
    path = tmp_path / "trials.jsonl"
    with TrialStore(path) as first:
        with pytest.raises(RuntimeError, match=f"process {os.getpid()}.*give another folder"):
            write(path, [record(9)])
        first.append(record(0))
    write(path, [record(1)])
    assert lines(load(path)) == lines([record(0), record(1)])


def test_the_commit_is_that_of_this_code(tmp_path, monkeypatch):
    found = commit()
    assert found is None or len(found.removesuffix("-dirty")) == 40
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() is None


def test_versions_are_told_even_where_a_package_was_never_installed(monkeypatch):
    assert versions()["numpy"] == np.__version__
    monkeypatch.setattr(records_module, "PACKAGES", ("no-such-package-here",))
    assert versions()["no-such-package-here"] == "unknown"
