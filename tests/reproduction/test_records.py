"""Records are the same after writing and reading; a damaged file gives a clear error."""

import json
import math
import sqlite3
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction.run import records as records_module
from reproduction.run.records import Record, canonical, commit, plain, versions
from reproduction.run.store import DamagedError, UnwritableError, open_store, read_records


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
    with open_store(path) as store:
        for one in records:
            store.append(one)


def texts(records):
    """Return records as text, in which NaN is equal to itself."""
    return [canonical(asdict(one)) for one in records]


def load(path):
    return texts(read_records(path).values())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trials.sqlite"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_a_record_comes_back_as_it_was(results):
    whole = record(results=results)
    again = Record.from_row(whole.to_row())
    # repr tells what == does not: NaN from NaN, 1 from 1.0 and True, -0.0 from 0.0.
    assert repr(again) == repr(whole)
    assert again.key == whole.key


def test_rows_hold_json_that_any_reader_accepts():
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    row = record(results={"values": [math.nan, math.inf, -math.inf, 1.0]}).to_row()
    assert json.loads(row["results"], parse_constant=refuse)["values"][-1] == 1.0
    assert json.loads(row["params"], parse_constant=refuse)["draw"] == 0


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


def test_the_file_gives_back_what_was_added(tmp_path):
    path = tmp_path / "deep" / "folder" / "trials.sqlite"
    records = [record(i) for i in range(3)] + [record(3, results=None, error="ValueError: no")]
    write(path, records[:2])
    write(path, records[2:])
    assert load(path) == texts(records)
    values = list(read_records(path).values())[1]
    assert values.params["lam"] == math.inf
    assert math.isnan(values.results["gap"])


def test_missing_and_empty_files_have_no_trials(path):
    assert load(path) == []
    assert not path.exists(), "reading made a file"
    path.touch()
    assert load(path) == []
    write(path, [record()])
    assert load(path) == texts([record()])


def test_of_two_trials_with_one_key_the_last_counts(path):
    later = record(0, results={"error": 7.0})
    write(path, [record(0, results=None, error="ValueError: no"), record(1), later])
    assert load(path) == texts([record(1), later])


def test_a_record_has_results_or_an_error(path):
    with open_store(path) as store:
        for wrong in (record(error="both"), record(results=None)):
            with pytest.raises(sqlite3.IntegrityError):
                store.append(wrong)
        assert store.records() == {}


def test_a_trial_is_on_the_disk_when_it_was_added(path):
    with open_store(path) as store:
        assert store._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._database.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        store.append(record(0))
        assert load(path) == texts([record(0)])


def test_a_reader_does_not_stop_a_run_and_sees_one_state(path):
    with open_store(path) as store:
        store.append(record(0))
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        count = "SELECT count(*) FROM trials"
        assert reader.execute(count).fetchone() == (1,)
        store.append(record(1))
        assert reader.execute(count).fetchone() == (1,)
        reader.execute("END")
        assert reader.execute(count).fetchone() == (2,)
        reader.close()


def cut(content):
    return content[: len(content) // 2]


def overwritten(content):
    middle = len(content) // 2
    return content[: middle - 3000] + b"\x5a" * 6000 + content[middle + 3000 :]


def no_text(content):
    return content.replace(b'{"error"', b'{"er\xff\xfer"')


def no_json(content):
    return content.replace(b'{"error"', b'{"error!')


def no_database(content):
    return b'{"experiment": "toy"}\n' * 100


@pytest.mark.parametrize("damage", [cut, overwritten, no_text, no_json, no_database])
def test_a_damaged_file_is_named_and_left_as_it_is(path, damage):
    write(path, [record(i) for i in range(100)])
    content = damage(path.read_bytes())
    path.write_bytes(content)
    advice = r"trials\.sqlite is damaged or no file of trials \(.*\): move it away to run"
    with pytest.raises(DamagedError, match=advice):
        read_records(path)
    with pytest.raises(DamagedError, match=advice), open_store(path) as store:
        store.records()
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_refused(path):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE trials (name TEXT)")
    other.close()
    with pytest.raises(DamagedError, match=r"no such column.*move it away"):
        read_records(path)


def test_a_full_disk_keeps_the_trials_before(path):
    with open_store(path) as store:
        store.append(record(0))
        store._database.execute("PRAGMA max_page_count = 1")  # SQLite then allows no page more
        with pytest.raises(UnwritableError, match=r"disk is full\): make room on the disk"):
            store.append(record(1, results={"long": "x" * 100_000}))
        store.append(record(2))
    assert load(path) == texts([record(0), record(2)])


def test_a_folder_that_cannot_be_made_or_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(UnwritableError, match=r"file.*: give another folder"),
        open_store(tmp_path / "file" / "trials.sqlite"),
    ):
        pass
    (tmp_path / "trials.sqlite").mkdir()
    with (
        pytest.raises(UnwritableError, match=r"cannot be used .* give a folder"),
        open_store(tmp_path / "trials.sqlite"),
    ):
        pass


def test_a_second_writer_is_refused_and_the_first_goes_on(path):
    with open_store(path) as first:
        with pytest.raises(UnwritableError, match=r"another run writes to .*give another folder"):
            write(path, [record(9)])
        first.append(record(0))
    write(path, [record(1)])
    assert load(path) == texts([record(0), record(1)])


def test_the_commit_is_that_of_this_code(tmp_path, monkeypatch):
    found = commit()
    assert found is None or len(found.removesuffix("-dirty")) == 40
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() is None


def test_versions_are_told_even_where_a_package_was_never_installed(monkeypatch):
    assert versions()["numpy"] == np.__version__
    monkeypatch.setattr(records_module, "PACKAGES", ("no-such-package-here",))
    assert versions()["no-such-package-here"] == "unknown"
