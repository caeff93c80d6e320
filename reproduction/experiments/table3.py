"""Table III: time of one iteration of rMiCUSaL and k-GROUSE, compiled and line by line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from polyspan.data.rows import ArrayRows
from polyspan.datasets import mask_entries
from polyspan.geometry import draw_bases
from polyspan.linear._solve.alternation import Rules
from polyspan.linear._solve.grouse import learn_by_grouse
from polyspan.linear._solve.masked import MaskedBlock
from polyspan.linear._solve.problem import Problem, prepare
from reproduction.experiments import literal
from reproduction.experiments.scenes import noisy_scene
from reproduction.experiments.source import STAND_IN, Source
from reproduction.experiments.synthetic import draw
from reproduction.experiments.tools import DRAWS, finished, size_at, value
from reproduction.registry import Experiment, register
from reproduction.run.records import Params, Record
from reproduction.run.runner import trial_seed
from reproduction.sections import (
    CANNOT_TELL,
    DOES_NOT_HOLD,
    HOLDS,
    NOT_REACHABLE,
    Claim,
    Row,
    Section,
)

PUBLISHED = {
    ("synthetic", "rMiCUSaL"): (8.02, 7.41, 6.62),
    ("synthetic", "kGROUSE"): (7.46, 6.95, 6.11),
    ("scene", "rMiCUSaL"): (23.19, 22.46, 20.31),
    ("scene", "kGROUSE"): (16.56, 14.75, 12.53),
}
FRACTIONS = (0.1, 0.3, 0.5)
SWEEPS = 100
_STEP = 1.5


def trials(scale: str) -> list[Params]:
    """Return every data set, fraction and method; the paper times one run of each."""
    return [
        {"draw": k, "size": size_at(scale), "set": which, "missing": fraction, "method": method}
        for k in range(min(3, DRAWS[scale]))
        for which, method in PUBLISHED
        for fraction in FRACTIONS
    ]


def run(params: Params, source: Source) -> dict[str, Any]:
    """Time one outer iteration, compiled and literal, and one majorise-minimise iteration."""
    if params["set"] == "synthetic":
        Y, n_subspaces, s = draw(params)[1], 5, 13
    else:
        Y, _ = noisy_scene({**params, "noise": 0.02}, source, "scene")
        n_subspaces, s = 5, 12
    if params["size"] == "small":
        s = 4
    Y = mask_entries(Y, params["missing"], random_state=trial_seed("mask", params["draw"]))
    lam = 2.0 if params["method"] == "rMiCUSaL" else np.inf
    problem, _ = prepare(Y, lam, center=False, holes=True)
    bases = draw_bases((n_subspaces, Y.shape[1], s), np.random.RandomState(0))
    learn = partial(learn_by_grouse, problem, bases, Rules(max_iter=1, tol=0.0), step_size=_STEP)
    learn(n_sweeps=1)  # compiles the sweep
    # The solver assigns samples once more at the end than Algorithm 3: this time is subtracted.
    again = _seconds(lambda: problem.assign(bases[None], with_products=False))
    compiled = _seconds(lambda: learn(n_sweeps=SWEEPS)) - again
    # Every literal sweep takes the same time: that of 100 sweeps is extrapolated from 1 and 3.
    one = _seconds(lambda: _literal_iteration(problem, bases, 1))
    three = _seconds(lambda: _literal_iteration(problem, bases, 3))
    plain = one + (SWEEPS - 1) * (three - one) / 2
    step = _seconds(lambda: _majorise_minimise(problem, bases))
    return {
        "seconds": compiled,
        "literal seconds": plain,
        "ratio": plain / compiled,
        "majorise-minimise seconds": step,
        "majorise-minimise ratio": plain / step,
    }


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return max(time.process_time() - begin, 1e-9)


def _majorise_minimise(problem: Problem, bases: np.ndarray) -> np.ndarray:
    _, sums = problem.assign(bases[None], with_products=True)
    return np.asarray(problem.shape.step(bases[None], sums, problem.weights))


def _literal_iteration(problem: Problem, bases: np.ndarray, n_sweeps: int) -> None:
    """Assign and update exactly as Algorithm 3 is printed."""
    assert isinstance(problem.rows, ArrayRows)
    block = problem.rows.block
    assert isinstance(block, MaskedBlock)
    values, apart = np.asarray(block.values), np.isinf(problem.lam)
    labels = literal.assign(bases, values, block.missing)
    steps = (1.0 if apart else problem.lam) * _STEP * block.weights
    for p in range(len(bases)):
        others = [bases[q] for q in range(len(bases)) if q != p]
        basis, members = bases[p], np.flatnonzero(labels == p)
        for t in range(1, n_sweeps + 1):
            if not apart:
                basis = literal.closeness_step(basis, others, _STEP / t)
            basis = literal.sweep(basis, values, block.missing, members, steps / t)


def summarise(records: Sequence[Record], source: Source) -> Section:
    """Compare the published seconds with ours and with those of a literal version."""
    kind = str(records[0].params.get("data", STAND_IN)) if records else STAND_IN
    section = Section(
        id="table3",
        title="Time of one iteration, in seconds",
        where="Table III",
        topic="time of an iteration",
        text="One assignment and one update of every subspace by 100 sweeps, on the synthetic data "
        "(m=180, N=650, L=5, s=13) and on the City Hall patches (m=600, N=722, L=5, s=12). "
        "“Measured” is the compiled version here, one thread.",
        rows=_rows(records),
        claims=_claims(records),
        source="Synthetic data; " + source.describe("scene", kind),
        stand_in=kind == STAND_IN,
        notes=[
            "Seconds of another machine and language (Matlab R2013a, i7-2600) cannot be "
            "reproduced; the ratio to a literal NumPy version, in the notes of the rows, can."
        ],
    )
    return finished(section, records)


def _rows(records: Sequence[Record]) -> list[Row]:
    rows = []
    for (which, method), numbers in PUBLISHED.items():
        for fraction, published in zip(FRACTIONS, numbers, strict=True):
            where = {"set": which, "method": method, "missing": fraction}
            found = value(records, "seconds", **where)
            ratio = value(records, "ratio", **where)
            more = value(records, "majorise-minimise ratio", **where)
            note = ""
            if ratio is not None and more is not None:
                note = (
                    f"{ratio.mean:.0f} times faster than a literal version; one majorise-minimise "
                    f"step, which is less work, {more.mean:.0f} times"
                )
            name = f"{method}, {which}, {fraction:.0%} missing"
            rows.append(Row(name, published, found, None, NOT_REACHABLE, note, 3))
    return rows


def _claims(records: Sequence[Record]) -> list[Claim]:
    claims = []
    for which in ("synthetic", "scene"):
        text = f"rMiCUSaL takes more time per iteration than k-GROUSE ({which})."
        for key, kind in (("literal seconds", "literal"), ("seconds", "compiled")):
            pairs = []
            for fraction in FRACTIONS:
                where = {"set": which, "missing": fraction}
                a = value(records, key, method="rMiCUSaL", **where)
                b = value(records, key, method="kGROUSE", **where)
                if a is not None and b is not None:
                    pairs.append((a.mean, b.mean))
            claims.append(_always_claim(f"{text[:-1]}, {kind}.", [a > b for a, b in pairs], pairs))
    for method in ("rMiCUSaL", "kGROUSE"):
        pairs = []
        for which in ("synthetic", "scene"):
            few = value(records, "literal seconds", set=which, method=method, missing=0.1)
            many = value(records, "literal seconds", set=which, method=method, missing=0.5)
            if few is not None and many is not None:
                pairs.append((few.mean, many.mean))
        text = f"{method} becomes faster as more entries are missing, literal."
        claims.append(_always_claim(text, [a > b for a, b in pairs], pairs))
    return claims


def _always_claim(text: str, outcomes: list[bool], pairs: list[tuple[float, float]]) -> Claim:
    if not outcomes:
        return Claim(text, CANNOT_TELL, "no trial of it has run at this scale")
    evidence = "seconds: " + ", ".join(f"{a:.3g} against {b:.3g}" for a, b in pairs)
    return Claim(text, HOLDS if all(outcomes) else DOES_NOT_HOLD, evidence)


register(
    Experiment(
        "table3",
        "Time of one iteration",
        "Table III",
        trials,
        run,
        summarise,
        needs="scene",
        revision=2,
    )
)
