"""The list of experiments: every table and figure of the paper, in the paper's order."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reproduction.run.records import Params, Record

if TYPE_CHECKING:  # a worker needs no sections, and SciPy's statistics take a second to import
    from reproduction.sections import Section

__all__ = ["SCALES", "Experiment", "Params", "all_experiments", "find", "register"]

#: How many trials are run: from a few small ones to as many as in the paper.
SCALES = ("smoke", "quick", "standard", "paper")

#: The experiments in the paper's order: id, and the module that registers it when imported.
MODULES: dict[str, str] = {
    name: f"reproduction.experiments.{name}"
    for name in (
        "fig1", "table1", "table2", "table3", "fig3", "fig4", "fig5", "fig6", "fig7", "table4",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """One table or figure: its trials, how to run one, and how to summarise all of them."""

    id: str
    """Such as "table1"."""
    title: str
    where: str
    """As the paper calls it: "Table I"."""
    trials: Callable[[str], list[Params]]
    """Maps a scale to the parameters of every trial, each with its own draw number or seed. The
    scale is not among the parameters: a trial has the same results at every scale, and runs once.
    """
    run: Callable[[Params, Any], dict[str, Any]]
    """Maps parameters and data source to results. It must be a function of a module, because
    workers import it, and take its seeds from the parameters (see `runner.trial_seed`)."""
    summarise: Callable[[Sequence[Record], Any], Section]
    """Maps records and data source to the section of the page."""
    needs: str | None = None
    """The data set it reads: "usps", "faces", "scene", "street", or None for synthetic data."""
    revision: int = 1
    """Increased when `run` computes something else, so that old trials are not used any more."""


_registered: dict[str, Experiment] = {}


def register(experiment: Experiment) -> Experiment:
    """Add an experiment to the list, and return it."""
    if _registered.get(experiment.id, experiment) != experiment:
        raise ValueError(
            f"there is an experiment {experiment.id!r} already "
            f"({_registered[experiment.id].title!r}): give this one another id"
        )
    _registered[experiment.id] = experiment
    return experiment


def all_experiments() -> list[Experiment]:
    """Return every experiment: the paper's in its order, then all others."""
    return find(_known())


def find(ids: Iterable[str]) -> list[Experiment]:
    """Return the experiments with these ids, in that order, each once.

    Only their modules are imported.
    """
    if isinstance(ids, str):
        raise TypeError(f"ids={ids!r} is one string: give a list of ids, such as [{ids!r}]")
    return [_load(id_) for id_ in dict.fromkeys(ids)]


def _known() -> list[str]:
    return list(dict.fromkeys([*MODULES, *_registered]))


def _load(id_: str) -> Experiment:
    """Return one experiment; import its module if needed."""
    if id_ not in _registered and id_ in MODULES:
        import_module(MODULES[id_])
        if id_ not in _registered:
            raise RuntimeError(
                f"{MODULES[id_]} registers no experiment {id_!r}: "
                "correct MODULES in reproduction.registry"
            )
    if id_ not in _registered:
        close = difflib.get_close_matches(id_.lower(), _known(), n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(
            f"unknown experiment {id_!r}: {hint}There are: {', '.join(_known()) or 'none'}"
        )
    return _registered[id_]
