"""Saved models of every class, some by older versions: they load, and answer as they did."""

import gzip
import inspect
import io
import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

from polyspan.storage import saved_types

TOOLS = str(Path(__file__).parents[2] / "tools")
sys.path.insert(0, TOOLS)
import zoo
from recording.outcomes import answers
from recording.stored import Record

sys.path.remove(TOOLS)

RECORD = Record.read(zoo.ZOO / zoo.ANSWERS)
#: Attributes that no file can hold: living objects, and what the class refuses to save.
NOT_IN_FILES = {"noise_choice_"}


def trees():
    for path in sorted(zoo.ZOO.glob("*.skops.gz")):
        archive = zipfile.ZipFile(io.BytesIO(gzip.decompress(path.read_bytes())))
        yield json.loads(archive.read("schema.json"))


@pytest.mark.parametrize("name", RECORD.cases)
def test_a_saved_model_answers_as_recorded(name):
    """To 1e-6, and equal labels: to predict is products alone, which every machine agrees on."""
    assert RECORD.differences(name, answers(zoo.loaded(name), zoo.asked(name)), 1e-6) == []


def test_every_class_that_a_file_may_name_is_there():
    named = {saved_types.type_name(node) for tree in trees() for node in saved_types._nodes(tree)}
    ours = {*saved_types.ESTIMATORS, *saved_types.TRANSFORMERS, *saved_types._PARTS}
    assert ours - named == set()
    tops = {saved_types.type_name(tree) for tree in trees()}
    assert set(saved_types.ESTIMATORS) - tops == set()


def test_every_file_has_its_answers():
    files = {path.name for path in zoo.ZOO.glob("*.skops.gz")}
    assert files == {zoo.path_of(name).name for name in RECORD.cases}
    assert set(zoo.members()) == set(RECORD.cases)


@pytest.fixture(scope="module")
def models():
    return [zoo.loaded(name) for name in RECORD.cases]


@pytest.mark.parametrize("kind", saved_types.ESTIMATORS.values())
def test_every_attribute_that_the_class_describes_is_there(kind, models):
    section = re.search(r"^Attributes\n-+\n(.*?)(\n\n[A-Z]|\Z)", inspect.getdoc(kind), re.S | re.M)
    described = set(re.findall(r"\b[a-z]\w*_\b(?=[^:\n]* : )", section[1] if section else ""))
    there = {name for model in models if type(model) is kind for name in vars(model)}
    properties = {name for name in described if hasattr(kind, name)}
    assert described - there - properties - NOT_IN_FILES == set()
