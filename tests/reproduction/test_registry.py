"""Experiments are found by id, in the paper's order; errors for a wrong id suggest another."""

import sys
from dataclasses import replace

import pytest
from toy_experiments import toy

from reproduction import registry
from reproduction.registry import all_experiments, find, register


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No experiment but those of the test."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "MODULES", {})


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Two modules that register an experiment each, and one that registers none."""
    for name, last_line in [
        ("paper_fig9", "register(toy('fig9'))"),
        ("paper_table1", "register(toy('table1'))"),
        ("paper_empty", ""),
    ]:
        text = "from reproduction.registry import register\nfrom toy_experiments import toy\n"
        (tmp_path / f"{name}.py").write_text(text + last_line, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    registry.MODULES.update({"table1": "paper_table1", "fig9": "paper_fig9"})


def test_the_order_is_the_papers_whatever_is_registered_first(modules):
    extra = register(toy("extra"))
    assert [e.id for e in find(["fig9"])] == ["fig9"]
    assert "paper_table1" not in sys.modules, "find imported more than was asked for"
    assert [e.id for e in all_experiments()] == ["table1", "fig9", "extra"]
    assert all_experiments()[-1] is extra


def test_find_keeps_the_order_asked_for_and_drops_repeats(modules):
    assert [e.id for e in find(["fig9", "table1", "fig9"])] == ["fig9", "table1"]
    assert find([]) == []


@pytest.mark.parametrize(
    ("wrong", "hint"), [("tabel1", "did you mean 'table1'"), ("Fig9", "did you mean 'fig9'")]
)
def test_an_unknown_id_is_answered_with_the_known(modules, wrong, hint):
    with pytest.raises(ValueError, match=rf"unknown experiment '{wrong}': {hint}.*table1, fig9"):
        find(["table1", wrong])


def test_nothing_is_suggested_where_nothing_is_close():
    with pytest.raises(ValueError, match="unknown experiment 'x': There are: none"):
        find(["x"])


def test_one_string_is_not_a_list_of_ids():
    with pytest.raises(TypeError, match=r"give a list of ids, such as \['table1'\]"):
        find("table1")


def test_a_module_that_registers_nothing_is_named(modules):
    registry.MODULES["fig1"] = "paper_empty"
    with pytest.raises(RuntimeError, match="paper_empty registers no experiment 'fig1'"):
        all_experiments()


def test_an_id_belongs_to_one_experiment():
    first = register(toy("table1"))
    assert register(first) is first
    with pytest.raises(ValueError, match="there is an experiment 'table1' already"):
        register(replace(first, title="Another"))
