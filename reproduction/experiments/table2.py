"""Table II and Fig. 2 (b) and (d): the weight λ, and the claims about random starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduction.experiments.claims import smaller_errors
from reproduction.experiments.synthetic import LEVELS, TEXT, run, starts_at
from reproduction.experiments.systems import GOOD_STEP, SMALL_STEP
from reproduction.experiments.tools import (
    DRAWS,
    by_draw,
    curve,
    curves,
    finished,
    mean_value,
    paired,
    size_at,
    value,
)
from reproduction.registry import Experiment, register
from reproduction.run.records import Params, Record
from reproduction.sections import (
    CANNOT_TELL,
    DOES_NOT_HOLD,
    HOLDS,
    Claim,
    Panel,
    Row,
    Section,
    Value,
    compare_means,
    judge,
)

COMPLETE = {1.0: 0.1552, 2.0: 0.1331, 4.0: 0.1321, 8.0: 0.1378, 20.0: 0.1493}
MISSING = {1.0: 0.2096, 2.0: 0.1661, 4.0: 0.1725, 10.0: 0.2065, 20.0: 0.2591}
SPREADS = {("MiCUSaL", 2.0): 0.003, ("MiCUSaL", 8.0): 0.0034, ("K-sub", None): 0.0039}
_LARGE_LAM_NOTE = (
    "η=1.5 throughout: the step was fitted at λ=2, and a larger λ makes the steps of the data "
    "larger; the paper does not say whether η depends on λ"
)


def trials(scale: str) -> list[Params]:
    """Return every λ on every draw, complete and with a tenth of the entries missing."""
    found: list[Params] = []
    for k in range(DRAWS[scale]):
        base: Params = {"draw": k, "size": size_at(scale)}
        for lam in COMPLETE:
            options = {"options": {"lam": lam}}
            found.append({**base, "method": "MiCUSaL", **options, "starts": starts_at(scale)})
            found.append({**base, "method": "ours", **options})
        found.append({**base, "method": "K-sub", "options": {}, "starts": starts_at(scale)})
        some = {**base, "missing": 0.1}
        for lam in MISSING:
            options = {"options": {"lam": lam}}
            found.append({**some, "method": "rMiCUSaL", **options, "starts": starts_at(scale)})
            found.append({**some, "method": "ours, missing", **options})
        for step in (SMALL_STEP, GOOD_STEP):
            found.append({**some, "method": "kGROUSE", "options": step})
    return found


def summarise(records: Sequence[Record], source: Any) -> Section:
    """Compare the published table with ours, and check the claims of the text."""
    section = Section(
        id="table2",
        title="The weight λ, and random starts",
        where="Table II and Fig. 2 (b, d)",
        topic="the weight λ",
        text=TEXT + " Algorithm 1 and, with a tenth of the entries missing, Algorithm 3.",
        rows=[*_rows(records), *_spread_rows(records)],
        claims=[*_lam_claims(records), *_start_claims(records)],
        panels=[
            _panel(records, "MiCUSaL", "ours", COMPLETE, "K-sub", {}, "(b) complete data"),
            _panel(
                records, "rMiCUSaL", "ours, missing", MISSING, "kGROUSE", {"options": SMALL_STEP},
                "(d) a tenth of the entries missing",
            ),
        ],
        source="Synthetic, drawn as in the paper.",
        notes=_notes(records),
    )  # fmt: skip
    return finished(section, records)


def _rows(records: Sequence[Record]) -> list[Row]:
    rows = []
    for method, mine, published, kind in (
        ("MiCUSaL", "ours", COMPLETE, "complete"),
        ("rMiCUSaL", "ours, missing", MISSING, "10 % missing"),
    ):
        for lam, number in published.items():
            options = {"lam": lam}
            found = value(records, "d_avg", method=method, options=options)
            ours = value(records, "d_avg", method=mine, options=options)
            note = _LARGE_LAM_NOTE if method == "rMiCUSaL" and lam > 4 else ""
            verdict, note = judge(number, found, 0.008 if kind == "complete" else 0.012, note)
            name = f"{method}, λ={lam:g}, {kind}"
            rows.append(Row(name, number, found, ours, verdict, note, 4, "annealed, same λ"))
    return rows


def _spread_rows(records: Sequence[Record]) -> list[Row]:
    rows = []
    for (method, lam), published in SPREADS.items():
        where: dict[str, Any] = {"method": method}
        if lam is not None:
            where["options"] = {"lam": lam}
        found = value(records, "spread over starts", **where)
        note = "of the mean test error over 8 starts; within 30 %"
        verdict, note = judge(published, found, 0.3 * published, note)
        name = f"standard deviation over starts, {method}" + (f", λ={lam:g}" if lam else "")
        rows.append(Row(name, published, found, None, verdict, note))
    return rows


def _lam_claims(records: Sequence[Record]) -> list[Claim]:
    claims = []
    for method, grid, last in (("MiCUSaL", COMPLETE, "K-sub"), ("rMiCUSaL", MISSING, "kGROUSE")):
        for bad in (1.0, 20.0):
            first, second = paired(
                records,
                "d_avg",
                {"method": method, "options": {"lam": 2.0}},
                {"method": method, "options": {"lam": bad}},
            )
            text = f"{method}: λ=2 learns nearer subspaces than λ={bad:g}."
            claims.append(compare_means(text, first, second, ("λ=2", f"λ={bad:g}")))
        claims.append(_best_lam_claim(records, method, list(grid)))
        limits = [{}] if last == "K-sub" else [SMALL_STEP, GOOD_STEP]
        claims += [_limit_claim(records, method, grid, last, options) for options in limits]
        for bad in (1.0, 20.0):
            good, other = ({"method": method, "options": {"lam": x}} for x in (2.0, bad))
            text = f"{method}: λ=2 denoises better than λ={bad:g}."
            claims.append(smaller_errors(text, records, good, other))
    return claims


def _best_lam_claim(records: Sequence[Record], method: str, grid: list[float]) -> Claim:
    text = f"{method} is best for λ between 2 and 4."
    found = {x: value(records, "d_avg", method=method, options={"lam": x}) for x in grid}
    known = {x: v.mean for x, v in found.items() if v is not None}
    if len(known) < len(grid):
        return Claim(text, CANNOT_TELL, "not every λ has run at this scale")
    best = min(known, key=lambda x: known[x])
    evidence = "d_avg " + ", ".join(f"λ={x:g}: {v:.4f}" for x, v in known.items())
    return Claim(text, HOLDS if 2 <= best <= 4 else DOES_NOT_HOLD, evidence)


def _limit_claim(
    records: Sequence[Record],
    method: str,
    grid: dict[float, float],
    last: str,
    options: dict[str, Any],
) -> Claim:
    step = f" with a step of {options['step_size']:g}" if options else ""
    text = f"As λ grows, the errors of {method} approach those of {last}{step}."
    limit = mean_value(records, "errors", method=last, options=options)
    gaps = []
    for lam in (2.0, max(grid)):
        found = mean_value(records, "errors", method=method, options={"lam": lam})
        if found is None or limit is None:
            return Claim(text, CANNOT_TELL, "not every λ has run at this scale")
        gaps.append(abs(found.mean - limit.mean))
    evidence = f"mean gap {gaps[0]:.4f} at λ=2, {gaps[1]:.4f} at λ={max(grid):g}"
    return Claim(text, HOLDS if gaps[1] < gaps[0] else DOES_NOT_HOLD, evidence)


def _start_claims(records: Sequence[Record]) -> list[Claim]:
    first, second = paired(
        records,
        "spread over starts",
        {"method": "MiCUSaL", "options": {"lam": 2.0}},
        {"method": "K-sub"},
    )
    steadier = compare_means(
        "The result of MiCUSaL (λ=2) depends less on the start than that of K-sub.",
        first, second, ("MiCUSaL", "K-sub"),
    )  # fmt: skip
    text = "The start with the smallest objective always denoises best."
    outcomes: list[bool] = []
    for lam in COMPLETE:
        where = {"method": "MiCUSaL", "options": {"lam": lam}}
        outcomes += by_draw(records, "lowest objective denoises best", **where).values()
    if not outcomes:
        return [steadier, Claim(text, CANNOT_TELL, "no trial of it has run at this scale")]
    evidence = f"it did in {sum(outcomes)} of {len(outcomes)} sets of 8 starts"
    always = Claim(text, HOLDS if all(outcomes) else DOES_NOT_HOLD, evidence)
    return [steadier, always, _insensitive_claim(records)]


def _insensitive_claim(records: Sequence[Record]) -> Claim:
    text = "MiCUSaL (λ=2) is mostly insensitive to the choice of initial subspaces."
    where = {"method": "MiCUSaL", "options": {"lam": 2.0}}
    spread = value(records, "spread over starts", **where)
    mean = mean_value(records, "errors", **where)
    if spread is None or mean is None:
        return Claim(text, CANNOT_TELL, "no trial of it has run at this scale")
    evidence = (
        f"over 8 starts the mean test error has a standard deviation of {spread.mean:.4f}, "
        f"{spread.mean / mean.mean:.0%} of it; taken to hold below 10 %"
    )
    return Claim(text, HOLDS if spread.mean < 0.1 * mean.mean else DOES_NOT_HOLD, evidence)


def _notes(records: Sequence[Record]) -> list[str]:
    notes = [
        "In other measurements, no setting without tuning brought λ=1 in complete data to the "
        "published .1552; stopping after five iterations does, but then λ=2 differs."
    ]
    where = {"options": {"lam": 2.0}}
    lists = by_draw(records, "starts d_avg", method="MiCUSaL", **where).values()
    widths = Value.of(float(np.ptp(entries)) for entries in lists)
    ours, best = (value(records, "d_avg", method=m, **where) for m in ("ours", "MiCUSaL"))
    if widths is not None and ours is not None and best is not None:
        notes.append(
            f"At λ=2 the 8 random starts differ by {widths.mean:.3f} in d_avg and the best has "
            f"{best.mean:.4f}; the annealed start of the same objective has {ours.mean:.4f}."
        )
    return notes


def _panel(
    records: Sequence[Record],
    method: str,
    mine: str,
    grid: dict[float, float],
    limit: str,
    which: dict[str, Any],
    title: str,
) -> Panel:
    lines = [
        curve(
            records, f"λ={x:g}", LEVELS, "errors", where={"method": method, "options": {"lam": x}}
        )
        for x in grid
    ]
    lines.append(curve(records, limit, LEVELS, "errors", where={"method": limit, **which}))
    best = {"method": mine, "options": {"lam": 4.0}}
    lines.append(curve(records, "polyspan, λ=4", LEVELS, "errors", ours=True, where=best))
    return Panel(title, "σ_te²", "relative error of test data", curves(*lines))


register(
    Experiment(
        "table2", "The weight λ", "Table II, Fig. 2 (b, d)", trials, run, summarise, revision=2
    )
)
