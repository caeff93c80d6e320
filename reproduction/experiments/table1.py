"""Table I and Fig. 2 (a) and (c): all systems on synthetic data, complete and incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from reproduction.experiments.claims import smaller_errors
from reproduction.experiments.synthetic import LEVELS, TEXT, run, starts_at
from reproduction.experiments.systems import GOOD_STEP, SMALL_STEP
from reproduction.experiments.tools import DRAWS, curve, curves, finished, paired, size_at, value
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
    compare_means,
    judge,
)

COMPLETE: dict[str, tuple[float, float, str]] = {
    # published number, tolerance, setting
    "MiCUSaL": (0.1331, 0.008, "Algorithm 1, λ=2, best of 8 starts"),
    "SAC+BK-SVD": (0.2187, 0.03, "best of 8 starts by training error"),
    "K-sub": (0.1612, 0.015, "best of 8 starts"),
    "SSC": (0.1386, 0.008, "α_z=60"),
    "RSSC": (0.2215, 0.025, "λ=1/√s"),
    "TSC": (0.2275, 0.025, "q=7"),
}
MISSING = {
    ("rMiCUSaL", 0.1): 0.1661,
    ("kGROUSE", 0.1): 0.3836,
    ("rMiCUSaL", 0.3): 0.1788,
    ("kGROUSE", 0.3): 0.4168,
    ("rMiCUSaL", 0.5): 0.2047,
    ("kGROUSE", 0.5): 0.4649,
}
FRACTIONS = (0.1, 0.3, 0.5)
#: k-GROUSE with the step that comes close to its published numbers, and with a better one.
STEPS = ((SMALL_STEP, ""), (GOOD_STEP, " with a step of 1.5"))
_OPTIONS: dict[str, dict[str, Any]] = {"MiCUSaL": {"lam": 2.0}, "SSC": {"alpha": 60.0}}
_STEP_NOTE = (
    "The paper names no step size. That of rMiCUSaL (η=1.5) was fitted to its own row; a step "
    "15 times smaller and 4 outer iterations bring k-GROUSE close to its published numbers."
)

_SIGNS_NOTE = (
    "Algorithm 3 is below the published numbers at 10 %. In other measurements, the number of "
    "starts (d_avg .155, .152, .152 for 1, 4, 8 on four draws) and centring (.150 against .152) "
    "explain little. The signs of the singular vectors in the generator explain more: with the "
    "signs of LAPACK, six draws had .162, .183, .212 at 10, 30, 50 %; with fixed signs, as here, "
    ".156, .170, .202."
)


def trials(scale: str) -> list[Params]:
    """Return every method on every draw."""
    found: list[Params] = []
    for k in range(DRAWS[scale]):
        base: Params = {"draw": k, "size": size_at(scale)}
        for method in (*COMPLETE, "PCA", "ours"):
            starts = {"starts": starts_at(scale)} if method in ("MiCUSaL", "K-sub") else {}
            trial = {**base, "method": method, "options": _OPTIONS.get(method, {}), **starts}
            found.append(trial)
            if k < max(1, DRAWS[scale] // 2) and method != "PCA":
                found.append({**trial, "spread": 0.2})
        for fraction in FRACTIONS:
            some = {**base, "missing": fraction}
            found += [
                {**some, "method": "rMiCUSaL", "options": {"lam": 2.0}, "starts": starts_at(scale)},
                {**some, "method": "kGROUSE", "options": SMALL_STEP},
                {**some, "method": "kGROUSE", "options": GOOD_STEP},
                {**some, "method": "GROUSE", "options": GOOD_STEP},
                {**some, "method": "ours, missing", "options": {}},
            ]
    return found


def summarise(records: Sequence[Record], source: Any) -> Section:
    """Compare the published table with ours, and check the claims of the text."""
    near = [record for record in records if "spread" not in record.params]
    far = [record for record in records if "spread" in record.params]
    section = Section(
        id="table1",
        title="Distance to the true subspaces, and denoising, on synthetic data",
        where="Table I and Fig. 2 (a, c)",
        topic="synthetic data",
        text=TEXT
        + " d_avg is the mean normalised distance of learned and true subspaces. Test samples are "
        "denoised by projection on the nearest subspace. PCA and GROUSE have the dimension that "
        "denoises the training samples best, which needs the clean samples.",
        rows=[*_complete_rows(near), *_missing_rows(near)],
        claims=[*_distance_claims(near), *_error_claims(near), _far_apart_claim(far)],
        panels=[_complete_panel(near), _missing_panel(near)],
        source="Synthetic, drawn as in the paper.",
        notes=[_STEP_NOTE, _SIGNS_NOTE],
    )
    return finished(section, records)


def _complete_rows(records: Sequence[Record]) -> list[Row]:
    ours = value(records, "d_avg", method="ours")
    rows = []
    for method, (published, tolerance, note) in COMPLETE.items():
        found = value(records, "d_avg", method=method)
        verdict, note = judge(published, found, tolerance, note)
        rows.append(
            Row(f"{method}, complete", published, found, ours, verdict, note, 4, "annealed")
        )
    return rows


def _missing_rows(records: Sequence[Record]) -> list[Row]:
    rows = []
    for (method, fraction), published in MISSING.items():
        options = {"lam": 2.0} if method == "rMiCUSaL" else SMALL_STEP
        found = value(records, "d_avg", method=method, missing=fraction, options=options)
        ours = value(records, "d_avg", method="ours, missing", missing=fraction)
        note = "step .1, 4 outer iterations, 8 starts"
        if method == "rMiCUSaL":
            note = "Algorithm 3, λ=2, η=1.5, 8 starts; step and stopping rule are not published"
        tolerance = 0.012 if method == "rMiCUSaL" else 0.06
        verdict, note = judge(published, found, tolerance, note)
        name = f"{method}, {fraction:.0%} missing"
        rows.append(Row(name, published, found, ours, verdict, note, 4, "annealed"))
        if method == "kGROUSE":
            better = value(records, "d_avg", method=method, missing=fraction, options=GOOD_STEP)
            rows.append(Row(f"{name}, a better step", None, better, ours, note="step 1.5"))
    return rows


def _distance_claims(records: Sequence[Record]) -> list[Claim]:
    claims = []
    for method in list(COMPLETE)[1:]:
        first, second = paired(records, "d_avg", {"method": "MiCUSaL"}, {"method": method})
        text = f"MiCUSaL learns nearer subspaces (d_avg) than {method}."
        claims.append(compare_means(text, first, second, ("MiCUSaL", method)))
    for fraction, (step, name) in product(FRACTIONS, STEPS):
        first, second = paired(
            records,
            "d_avg",
            {"method": "rMiCUSaL", "missing": fraction},
            {"method": "kGROUSE", "missing": fraction, "options": step},
        )
        text = f"With {fraction:.0%} missing, rMiCUSaL learns nearer subspaces than k-GROUSE{name}."
        claims.append(compare_means(text, first, second, ("rMiCUSaL", "k-GROUSE")))
    return claims


def _error_claims(records: Sequence[Record]) -> list[Claim]:
    peers = [*list(COMPLETE)[1:], "PCA"]
    claims = [
        smaller_errors(
            f"MiCUSaL denoises test samples better than {peer}.",
            records,
            {"method": "MiCUSaL"},
            {"method": peer},
        )
        for peer in peers
    ]
    for fraction in FRACTIONS:
        peers_missing = [("kGROUSE", step, name) for step, name in STEPS]
        for peer, options, name in (*peers_missing, ("GROUSE", GOOD_STEP, "")):
            claims.append(
                smaller_errors(
                    f"With {fraction:.0%} missing, rMiCUSaL denoises better than {peer}{name}.",
                    records,
                    {"method": "rMiCUSaL", "missing": fraction},
                    {"method": peer, "missing": fraction, "options": options},
                )
            )
    return [
        *claims,
        *_gap_claims(records, peers),
        *(_degradation_claim(records, *step) for step in STEPS),
    ]


def _gap_claims(records: Sequence[Record], peers: Sequence[str]) -> list[Claim]:
    """Check that the errors of all others are larger by more than .003."""
    text = "The errors of all other methods are larger than those of MiCUSaL by more than .003."
    found = {}
    for peer in peers:
        first, second = paired(records, "errors", {"method": "MiCUSaL"}, {"method": peer})
        if not first:
            return [Claim(text, CANNOT_TELL, "not every method has run at this scale")]
        found[peer] = float(np.mean(second) - np.mean(first))
    evidence = "larger by " + ", ".join(f"{peer} {gap:.4f}" for peer, gap in found.items())
    verdict = HOLDS if min(found.values()) > 0.003 else DOES_NOT_HOLD
    return [Claim(text, verdict, evidence)]


def _degradation_claim(records: Sequence[Record], step: dict[str, Any], name: str) -> Claim:
    text = f"From 10 to 50 % missing the errors of rMiCUSaL grow less than those of k-GROUSE{name}."
    rises = []
    for method, options in (("rMiCUSaL", {"lam": 2.0}), ("kGROUSE", step)):
        few, many = paired(
            records,
            "errors",
            {"method": method, "missing": 0.1, "options": options},
            {"method": method, "missing": 0.5, "options": options},
        )
        rises.append([b - a for a, b in zip(few, many, strict=True)])
    return compare_means(text, rises[0], rises[1], ("rise of rMiCUSaL", "rise of k-GROUSE"))


def _far_apart_claim(records: Sequence[Record]) -> Claim:
    text = "Where the subspaces are not close (t_s=.2), all methods learn them successfully."
    wrong = {m: value(records, "wrong", method=m) for m in (*COMPLETE, "ours")}
    known = {method: found for method, found in wrong.items() if found is not None}
    if not known:
        return Claim(text, CANNOT_TELL, "no trial of it has run at this scale")
    evidence = "wrong labels: " + ", ".join(f"{m} {100 * v.mean:.1f} %" for m, v in known.items())
    if min(found.n for found in known.values()) < 2:
        return Claim(text, CANNOT_TELL, f"{evidence}; one draw only")
    bad = [method for method, found in known.items() if found.mean > 0.01]
    if bad:
        return Claim(text, DOES_NOT_HOLD, f"{evidence}; more than 1 %: {', '.join(bad)}")
    return Claim(text, HOLDS, evidence)


def _complete_panel(records: Sequence[Record]) -> Panel:
    lines = [
        curve(records, method, LEVELS, "errors", where={"method": method})
        for method in (*COMPLETE, "PCA")
    ]
    ours = curve(records, "polyspan default", LEVELS, "errors", ours=True, where={"method": "ours"})
    return Panel("(a) complete data", "σ_te²", "relative error of test data", curves(*lines, ours))


def _missing_panel(records: Sequence[Record]) -> Panel:
    lines = []
    for fraction in FRACTIONS:
        for method, options in (
            ("rMiCUSaL", {"lam": 2.0}),
            ("kGROUSE", SMALL_STEP),
            ("GROUSE", {}),
        ):
            peer = {"method": method, "missing": fraction, "options": options}
            lines.append(curve(records, f"{method} {fraction:.0%}", LEVELS, "errors", where=peer))
        label = f"polyspan default {fraction:.0%}"
        mine = {"method": "ours, missing", "missing": fraction}
        lines.append(curve(records, label, LEVELS, "errors", ours=True, where=mine))
    return Panel("(c) missing entries", "σ_te²", "relative error of test data", curves(*lines))


register(
    Experiment(
        "table1",
        "Synthetic data, all systems",
        "Table I, Fig. 2 (a, c)",
        trials,
        run,
        summarise,
        revision=2,
    )
)
