"""Which experiments there are: every table and figure of the paper, in the paper's order."""

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

#: How much is run, from seconds to what the paper ran.
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
    """One table or figure: which trials it takes, how one runs, what they say together."""

    id: str
    """Such as "table1"."""
    title: str
    where: str
    """As the paper calls it: "Table I"."""
    trials: Callable[[str], list[Params]]
    """Scale to the parameters of every trial, each with a draw number or seed of its own. The
    scale is not among them: a trial gives the same numbers at every scale, and runs once for all.
    """
    run: Callable[[Params, Any], dict[str, Any]]
    """Parameters and data source to results. A function of a module, since workers import it; it
    takes all its random numbers from the parameters (see `runner.trial_seed`)."""
    summarise: Callable[[Sequence[Record], Any], Section]
    """Records and data source to what the page says."""
    needs: str | None = None
    """The data it reads: "usps", "faces", "scene", "street", or None for synthetic ones."""
    revision: int = 1
    """Raised when `run` changes what it computes, so that old trials are not taken for new."""


_registered: dict[str, Experiment] = {}


def register(experiment: Experiment) -> Experiment:
    """Make an experiment known, and return it."""
    if _registered.get(experiment.id, experiment) != experiment:
        raise ValueError(
            f"there is an experiment {experiment.id!r} already "
            f"({_registered[experiment.id].title!r}): give this one another id"
        )
    _registered[experiment.id] = experiment
    return experiment


def all_experiments() -> list[Experiment]:
    """Return every experiment: the paper's in its order, then those registered besides."""
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
    """Return one experiment, importing its module where that has not happened."""
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
