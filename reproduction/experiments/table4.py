"""Table IV: clustering digits in feature spaces, with and without missing entries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from polyspan import MCKUSaL, RobustMCKUSaL
from polyspan.baselines import KernelKMeans, SparseSubspaceClustering
from polyspan.datasets import mask_entries
from polyspan.metrics import clustering_error
from reproduction.experiments.digits import dimension, select
from reproduction.experiments.source import STAND_IN, Source
from reproduction.experiments.tools import by_draw, finished, paired, size_at, value
from reproduction.registry import Experiment, register
from reproduction.run.records import Params, Record
from reproduction.run.runner import trial_seed
from reproduction.sections import (
    CANNOT_TELL,
    DOES_NOT_HOLD,
    HOLDS,
    NEW,
    Claim,
    Row,
    Section,
    compare_means,
    judge,
)

#: The paper has 20 selections, too few to decide how errors grow with missing entries.
DRAWS = {"smoke": 1, "quick": 4, "standard": 100, "paper": 100}
STARTS = {"smoke": 3, "quick": 20, "standard": 20, "paper": 20}
#: Digits, kernel, s, and published errors in %: MC-KUSaL, kernel k-means, rMC-KUSaL 10 and 20 %.
SETTINGS: dict[str, tuple[tuple[int, int], dict[str, Any], int, tuple[float, ...]]] = {
    "1,7 Gauss": ((1, 7), {"gamma": 0.125}, 35, (7.21, 20.94, 11.52, 12.69)),
    "1,7 poly": (
        (1, 7), {"kernel": "poly", "gamma": 1.0, "coef0": 2.0}, 40, (8.23, 20.54, 10.60, 11.85)
    ),
    "1,6 Gauss": ((1, 6), {"gamma": 0.25}, 35, (5.00, 11.04, 6.27, 7.88)),
    "1,6 poly": (
        (1, 6), {"kernel": "poly", "gamma": 1.0, "coef0": 1.0}, 40, (4.85, 10.60, 7.54, 8.04)
    ),
}  # fmt: skip
ALPHAS = {(1, 7): 20.0, (1, 6): 10.0}
#: Published errors of k-means and of SSC.
PLAIN = {(1, 7): (21.19, 12.13), (1, 6): (11.29, 8.71)}


def trials(scale: str) -> list[Params]:
    """Return every setting and method on every selection."""
    found: list[Params] = []
    for k in range(DRAWS[scale]):
        base: Params = {"draw": k, "size": size_at(scale)}
        for digits in PLAIN:
            found += [
                {**base, "method": method, "digits": list(digits)} for method in ("k-means", "SSC")
            ]
        for setting in SETTINGS:
            some = {**base, "setting": setting}
            found.append({**some, "method": "GKIOP", "starts": STARTS[scale]})
            found += [
                {**some, "method": method}
                for method in ("kernel k-means", "spectral", "ours", "missing 10%", "missing 20%")
            ]
    return found


def run(params: Params, source: Source) -> dict[str, Any]:
    """Cluster one selection by one method; errors in %."""
    seed = trial_seed("table4", params["draw"]) % 2**31
    digits = tuple(params["digits"]) if "digits" in params else SETTINGS[params["setting"]][0]
    X, y, _ = select(params, source, digits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if params["method"] == "GKIOP":
            return _gkiop(X, y, params, seed)
        labels = _model(params, seed, X).labels_
    return {"error": 100 * clustering_error(y, labels)}


def _model(params: Params, seed: int, X: np.ndarray) -> Any:
    method = params["method"]
    if method == "k-means":
        return KMeans(2, n_init=10, random_state=seed).fit(X)
    if method == "SSC":
        alpha = ALPHAS[tuple(params["digits"])]
        return SparseSubspaceClustering(2, 10, alpha=alpha, random_state=seed).fit(X)
    _, kernel, s, _ = SETTINGS[params["setting"]]
    if method == "kernel k-means":
        return KernelKMeans(2, **kernel, random_state=seed).fit(X)
    common = {**kernel, "lam": 200.0, "random_state": seed}
    if method == "spectral":
        return MCKUSaL(2, dimension(params, s), **common).fit(X)
    if method == "ours":
        return MCKUSaL(2, min(15, dimension(params, s)), residual="loo", **common).fit(X)
    fraction = float(method.removeprefix("missing ")[:-1]) / 100
    holes = mask_entries(X, fraction, random_state=seed)
    return RobustMCKUSaL(2, dimension(params, s), **common).fit(holes)


def _gkiop(X: np.ndarray, y: np.ndarray, params: Params, seed: int) -> dict[str, Any]:
    """Run the printed algorithm from many random starts."""
    _, kernel, s, _ = SETTINGS[params["setting"]]
    model = MCKUSaL(
        2, dimension(params, s), init="gkiop", n_init=int(params["starts"]), lam=200.0,
        random_state=seed, **kernel,
    ).fit(X)  # fmt: skip
    errors = [100 * clustering_error(y, run.labels) for run in model.runs_]
    return {
        "mean of starts": float(np.mean(errors)),
        "lowest objective": 100 * clustering_error(y, model.labels_),
        "lowest true error": min(errors),
    }


def summarise(records: Sequence[Record], source: Source) -> Section:
    """Compare the published table with ours, with a row for each way to choose a start."""
    kind = str(records[0].params.get("data", STAND_IN)) if records else STAND_IN
    section = Section(
        id="table4",
        title="Clustering digits, error in %",
        where="Table IV",
        topic="clustering digits",
        text="120 of the first 200 samples of each digit, of norm 1; L=2, λ=200, s=35 (Gaussian) "
        "or 40 (polynomial kernel). The printed algorithm starts at random (GKIOP).",
        rows=[row for setting in SETTINGS for row in _rows(records, setting)]
        + [row for digits in PLAIN for row in _plain_rows(records, digits)],
        claims=_claims(records),
        source=source.describe("usps", kind),
        stand_in=kind == STAND_IN,
        notes=[
            "In other measurements, with s=35 to 40 directions for about 120 samples the iteration "
            "does not leave its start, and the lowest true error of a few dozen starts matches "
            "the published column; choosing that start needs the labels.",
            "Ours: spectral start, leave-one-out residuals, s=15, no labels used. The kind of "
            "graph was chosen with knowledge of these labels. On samples 200 to 1099 of the same "
            "digits (`make bench ROWS=table4`) 14, 14, 5 and 5 % of the labels are wrong.",
        ],
    )
    return finished(section, records)


def _rows(records: Sequence[Record], setting: str) -> list[Row]:
    published = SETTINGS[setting][3]
    ours = value(records, "error", method="ours", setting=setting)
    rows = []
    for key in ("mean of starts", "lowest objective", "lowest true error"):
        found = value(records, key, method="GKIOP", setting=setting)
        name = f"MC-KUSaL, {setting}, {key}"
        if key == "lowest objective":
            verdict, note = judge(
                published[0], found, 1.5, "the start that the paper says it keeps"
            )
            rows.append(Row(name, published[0], found, ours, verdict, note, 2, "leave-one-out"))
        else:
            note = f"published: {published[0]}" + ("; uses the labels" if "true" in key else "")
            rows.append(Row(name, None, found, ours, NEW, note, 2, "leave-one-out"))
    found = value(records, "error", method="spectral", setting=setting)
    name, note = f"MC-KUSaL, {setting}, spectral start", f"published: {published[0]}"
    rows.append(Row(name, None, found, ours, NEW, note, 2, "leave-one-out"))
    for method, number, name in (
        ("kernel k-means", published[1], "kernel k-means, {}"),
        ("missing 10%", published[2], "rMC-KUSaL, {}, 10 % missing, spectral start"),
        ("missing 20%", published[3], "rMC-KUSaL, {}, 20 % missing, spectral start"),
    ):
        found = value(records, "error", method=method, setting=setting)
        verdict, note = judge(number, found, 1.5)
        mine = None if method.startswith("missing") else ours
        full = name.format(setting)
        rows.append(Row(full, number, found, mine, verdict, note, 2, "leave-one-out"))
    return rows


def _plain_rows(records: Sequence[Record], digits: tuple[int, int]) -> list[Row]:
    rows = []
    for method, published in zip(("k-means", "SSC"), PLAIN[digits], strict=True):
        found = value(records, "error", method=method, digits=list(digits))
        verdict, note = judge(published, found, 1.5)
        name = f"{method}, digits {digits[0]},{digits[1]}"
        rows.append(Row(name, published, found, None, verdict, note, 2))
    return rows


def _claims(records: Sequence[Record]) -> list[Claim]:
    claims = []
    for setting, (digits, _, _, _) in SETTINGS.items():
        mine = by_draw(records, "lowest objective", method="GKIOP", setting=setting)
        for peer, where in (
            ("kernel k-means", {"setting": setting}),
            ("k-means", {"digits": list(digits)}),
            ("SSC", {"digits": list(digits)}),
        ):
            theirs = by_draw(records, "error", method=peer, **where)
            common = sorted(mine.keys() & theirs.keys())
            text = f"MC-KUSaL (lowest objective) clusters better than {peer} ({setting})."
            pair = [mine[k] for k in common], [theirs[k] for k in common]
            claims.append(compare_means(text, *pair, ("MC-KUSaL", peer)))
        claims += [_reduction_claim(records, setting), _more_missing_claim(records, setting)]
    return claims


def _reduction_claim(records: Sequence[Record], setting: str) -> Claim:
    """Check the reduction of the error against SSC that the text quotes."""
    digits = SETTINGS[setting][0]
    quoted = {(1, 7): 0.32, (1, 6): 0.42}[digits]
    text = f"MC-KUSaL reduces the error of SSC by about {quoted:.0%} ({setting})."
    mine = value(records, "lowest objective", method="GKIOP", setting=setting)
    theirs = value(records, "error", method="SSC", digits=list(digits))
    if mine is None or theirs is None or not theirs.mean:
        return Claim(text, CANNOT_TELL, "no trial of it has run at this scale")
    found = 1 - mine.mean / theirs.mean
    evidence = f"{mine.mean:.1f} % against {theirs.mean:.1f} %: a reduction of {found:.0%}"
    return Claim(text, HOLDS if found >= quoted - 0.1 else DOES_NOT_HOLD, evidence)


def _more_missing_claim(records: Sequence[Record], setting: str) -> Claim:
    few, many = paired(
        records,
        "error",
        {"method": "missing 10%", "setting": setting},
        {"method": "missing 20%", "setting": setting},
    )
    names = ("10 % missing", "20 %")
    if setting != "1,6 poly":
        text = f"The error of rMC-KUSaL grows with the fraction of missing entries ({setting})."
        return compare_means(text, few, many, names)
    text = f"More missing entries do not make rMC-KUSaL much worse ({setting})."
    if not few:
        return Claim(text, CANNOT_TELL, "no trial of it has run at this scale")
    evidence = f"{np.mean(few):.1f} % and {np.mean(many):.1f} %; taken to hold below 1.5 points"
    holds = np.mean(many) - np.mean(few) < 1.5
    return Claim(text, HOLDS if holds else DOES_NOT_HOLD, evidence)


register(
    Experiment("table4", "Clustering digits", "Table IV", trials, run, summarise, needs="usps")
)
