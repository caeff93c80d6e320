"""How `make bench-compare` runs two commits, with workers whose times are made up."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class MadeUp:
    """A worker that takes a given time, writes down when it was asked, and slows everyone."""

    def __init__(self, seconds, asked, name, found=7.0):
        self.seconds, self.asked, self.name, self.found = seconds, asked, name, found

    def request(self, word):
        if word == "time":
            self.asked.append(self.name)
            return self.seconds * (1 + len(self.asked) // 2)  # the machine becomes slower
        return {"found": self.found, "memory": 1.0}.get(word, 0.0)


def test_the_two_take_turns_and_alternate():
    from compare import take_turns

    asked = []
    ratios, seconds = take_turns(MadeUp(1.0, asked, "old"), MadeUp(1.5, asked, "new"), 4)
    assert asked == ["new", "old", "old", "new", "new", "old", "old", "new"]
    assert len(ratios) == len(seconds) == 4


def test_drift_of_the_machine_cancels():
    from compare import measure

    asked = []
    row = measure(MadeUp(1.0, asked, "old"), MadeUp(1.0, asked, "new"), 40, 0.1)
    assert row["ratio"] == pytest.approx(1.0, abs=0.05)
    assert row["verdict"] == "same"
    slow = measure(MadeUp(1.0, asked, "old"), MadeUp(1.5, asked, "new"), 40, 0.1)
    assert slow["verdict"] == "slower"
    assert slow["ratio"] == pytest.approx(1.5, rel=0.05)


def test_a_comparison_fails_for_four_reasons():
    from compare import judge

    good = {"verdict": "same", "difference": 0.0}
    absent = {"failed": {"base": "ImportError", "new": "ImportError"}}
    added = {"failed": {"base": "ImportError"}}
    assert judge({"a": good, "b": absent, "c": added}, 1e-9) == []
    assert judge({"a": good | {"verdict": "slower"}}, 1e-9) == ["slower: a"]
    assert judge({"a": good | {"difference": 1.0}}, 1e-9) == ["other results: a"]
    assert judge({"a": good, "b": {"failed": {"new": "x"}}}, 1e-9) == ["runs on the base only: b"]
    assert judge({"b": absent}, 1e-9) == ["no row ran on both commits"]


@pytest.fixture
def run_main(monkeypatch, tmp_path):
    """Run `main` with made-up rows; each name has the verdict of the first and second round."""
    import compare

    def run(verdicts, *arguments):
        rounds = {name: list(said) for name, said in verdicts.items()}
        seen = []

        def compare_row(name, trees, pairs, limit):
            seen.append((name, pairs))
            return {"verdict": rounds[name].pop(0), "difference": 0.0, "found": 1.0}

        monkeypatch.setattr(compare, "workload_names", lambda: list(verdicts))
        monkeypatch.setattr(compare, "tree_of", Path)
        monkeypatch.setattr(compare, "compare_row", compare_row)
        output = ["--output", str(tmp_path / "out.json")]
        return compare.main([*output, *arguments, "base"]), seen

    return run


def test_the_second_round_decides(run_main, capsys):
    code, seen = run_main({"a": ["same"], "b": ["slower", "same"], "c": ["unclear", "same"]})
    assert code == 0
    assert seen == [("a", 9), ("b", 9), ("c", 9), ("b", 18), ("c", 18)]
    code, _ = run_main({"a": ["same"], "b": ["slower", "slower"]})
    assert code == 1
    assert "slower: b" in capsys.readouterr().out
    assert run_main({"a": ["unclear", "unclear"]})[0] == 0
    assert run_main({"a": ["faster"]})[0] == 0


def test_a_worker_runs_the_tree_that_it_was_given(tmp_path):
    from worker import Worker, WorkloadError

    with Worker(ROOT, "smoke") as worker:
        worker.wait_until_ready()
        assert worker.request("found") > 0
        assert worker.request("repeats 3") == 3
    with Worker(ROOT, "nonsense") as unknown, pytest.raises(WorkloadError, match="nonsense"):
        unknown.wait_until_ready()
    # In an empty tree the installed package is found, which is another commit.
    with Worker(tmp_path, "smoke") as elsewhere, pytest.raises(RuntimeError, match="instead of"):
        elsewhere.wait_until_ready()


def test_a_worker_has_one_thread(monkeypatch, tmp_path):
    """The variables are set before NumPy is loaded, whatever they were outside."""
    from worker import THREADS, Worker

    (tmp_path / "src" / "polyspan").mkdir(parents=True)
    (tmp_path / "src" / "polyspan" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "src" / "workloads.py").write_text(
        "import os\n"
        f"values = [os.environ[name] for name in {THREADS!r}]\n"
        "WORKLOADS = {'threads': lambda: lambda: max(map(int, values))}\n"
        "figure_of = float\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "8")
    monkeypatch.setattr("worker.HERE", tmp_path)
    copy = tmp_path / "worker.py"
    copy.write_text(Path(sys.modules["worker"].__file__).read_text("utf-8"), encoding="utf-8")
    monkeypatch.setattr("worker.__file__", str(copy))
    with Worker(tmp_path, "threads") as worker:
        worker.wait_until_ready()
        assert worker.request("found") == 1
