"""tools/forge.py forges models of every class in every way, and what it forges does no harm."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from polyspan.storage import saved_types
from polyspan.storage.models import model_bytes

TOOLS = str(Path(__file__).parents[2] / "tools")
sys.path.insert(0, TOOLS)
from forging import models
from forging.calls import outcome_of
from forging.kinds import KINDS
from forging.opened import Opened

sys.path.remove(TOOLS)

#: Models that have between them whatever is forged: tuples, dicts, indices, sparse arrays, trees.
TRIED = ("affine stream", "given start", "trees", "ThresholdingSubspaceClustering", "low rank")


@pytest.fixture(scope="module")
def examples():
    return models.examples()


@pytest.fixture(scope="module")
def contents(examples):
    return {name: model_bytes(one.model) for name, one in examples.items()}


def test_every_type_of_the_format_is_forged(contents):
    named = {
        saved_types.type_name(node)
        for content in contents.values()
        for node in Opened.of(content).nodes()
    }
    known = {name for kinds in saved_types._ALLOWED.values() for name in kinds}
    assert known <= named, "add a model that holds it to tools/forging/models.py"


def test_a_file_that_is_not_forged_loads(contents, examples, tmp_path):
    path = tmp_path / "m.skops"
    for name in TRIED:
        path.write_bytes(Opened.of(contents[name]).content())
        assert outcome_of(str(path), examples[name].X) == "results"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_forgery_ends_well(kind, contents, examples, tmp_path):
    path, tried = tmp_path / "m.skops", 0
    first = list(KINDS).index(kind)
    for k in range(first, first + len(TRIED)):
        name = TRIED[k % len(TRIED)]
        file = Opened.of(contents[name])
        if tried < 3 and KINDS[kind](np.random.RandomState(k), file):
            path.write_bytes(file.content())
            outcome = outcome_of(str(path), examples[name].X)
            assert outcome.split(":")[0] in ("refused", "errors", "results"), outcome
            tried += 1
    assert tried


@pytest.mark.skipif(sys.platform != "linux", reason="the worker is measured by /proc")
def test_a_worker_that_ends_is_noticed(contents, examples, tmp_path):
    sys.path.insert(0, TOOLS)
    import forge

    name = "low rank"
    forge.write(tmp_path, {name: examples[name]})
    with forge.Worker(tmp_path) as worker:
        assert worker.answer(name, contents[name]) == forge.Answer("results", "results")
        os.kill(worker._process.pid, signal.SIGSEGV)
        assert worker.answer(name, contents[name]).verdict == "crash"
