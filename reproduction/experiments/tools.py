"""Helpers of several experiments: draws, noise, denoising errors, and means over records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reproduction.run.records import Params, Record
from reproduction.run.runner import trial_seed
from reproduction.sections import (
    CANNOT_TELL,
    NEW,
    NOT_REACHABLE,
    Curve,
    Row,
    Section,
    Value,
)

#: Draws of data and noise at each scale; the paper's own number is 200 for the synthetic data.
#: Those of "standard" were set before its run, by what undecided claims of an earlier run needed.
DRAWS = {"smoke": 1, "quick": 2, "standard": 20, "paper": 200}


def size_at(scale: str) -> str:
    """Return the size of the problems: "small" at scale "smoke", else "full" as in the paper."""
    return "small" if scale == "smoke" else "full"


def with_noise(clean: np.ndarray, power: float, *seed: Any) -> np.ndarray:
    """Add white noise of expected squared norm `power`; `seed` is what `trial_seed` takes."""
    rng = np.random.RandomState(trial_seed(*seed))
    return np.asarray(clean + rng.standard_normal(clean.shape) * np.sqrt(power / clean.shape[1]))


def relative_error(clean: np.ndarray, found: np.ndarray) -> float:
    """Return the mean over samples of ‖x - x̂‖²/‖x‖²."""
    squares = np.sum((clean - found) ** 2, axis=1)
    return float(np.mean(squares / np.sum(clean * clean, axis=1)))


def denoising_errors(
    model: Any, clean: np.ndarray, levels: Sequence[float], *seed: Any
) -> list[float]:
    """Return the relative error of denoised test samples at every level of their noise.

    `model` has `reconstruct`, or is a function that returns such a model for a level.
    """
    errors = []
    for level in levels:
        denoiser = model if hasattr(model, "reconstruct") else model(level)
        noisy = with_noise(clean, level, "test", level, *seed)
        errors.append(relative_error(clean, denoiser.reconstruct(noisy)))
    return errors


def matching(records: Sequence[Record], **where: Any) -> list[Record]:
    """Return the records with these parameters whose trials did not fail."""
    return [
        record
        for record in records
        if record.results is not None
        and all(record.params.get(name) == value for name, value in where.items())
    ]


def by_draw(records: Sequence[Record], key: str, **where: Any) -> dict[int, Any]:
    """Return one result of every draw, by the number of the draw."""
    return {
        int(record.params["draw"]): record.results[key]
        for record in matching(records, **where)
        if record.results is not None and key in record.results
    }


def value(records: Sequence[Record], key: str, **where: Any) -> Value | None:
    """Return the mean of a result over draws."""
    return Value.of(by_draw(records, key, **where).values())


def mean_value(records: Sequence[Record], key: str, **where: Any) -> Value | None:
    """Return the mean over draws of a result that is a list, averaged."""
    lists = by_draw(records, key, **where).values()
    return Value.of(float(np.mean(entries)) for entries in lists)


def paired(
    records: Sequence[Record], key: str, first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[list[float], list[float]]:
    """Return a result of two methods on the draws that both have; lists are averaged."""
    one, other = by_draw(records, key, **first), by_draw(records, key, **second)
    common = sorted(one.keys() & other.keys())
    return [float(np.mean(one[k])) for k in common], [float(np.mean(other[k])) for k in common]


def curve(
    records: Sequence[Record],
    label: str,
    x: Sequence[float],
    key: str,
    *,
    where: Mapping[str, Any],
    ours: bool = False,
) -> Curve | None:
    """Return the mean over draws of a result that is a list over x, or None without a draw."""
    lists = [entries for entries in by_draw(records, key, **where).values() if entries]
    if not lists:
        return None
    table = np.array(lists, dtype=float)
    error = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else None
    return Curve(
        label,
        list(x),
        table.mean(axis=0).tolist(),
        None if error is None else error.tolist(),
        ours,
    )


def curves(*found: Curve | None) -> list[Curve]:
    """Return the curves that are not None."""
    return [one for one in found if one is not None]


def finished(section: Section, records: Sequence[Record]) -> Section:
    """Add the number, time and failures of the trials; remove verdicts that the data forbid."""
    failed = [record for record in records if record.results is None]
    small = any(record.params.get("size") == "small" for record in records)
    if small:
        section = without_verdicts(section, "a small problem, only to check that everything runs")
    elif section.stand_in:
        section = without_verdicts(section, "other data than the paper's")
    return replace(
        section,
        n_trials=len(records),
        n_failed=len(failed),
        seconds=float(sum(record.cpu_seconds for record in records)),
        failures=tuple(f"{_format_params(record.params)}: {record.error}" for record in failed),
    )


def without_verdicts(section: Section, why: str, *, claims: bool = True) -> Section:
    """Remove the verdicts on published numbers (and claims), with the reason as a note."""
    rows = [
        row
        if row.verdict == NEW
        else replace(row, verdict=NOT_REACHABLE, note=_with_reason(row, why))
        for row in section.rows
    ]
    undecided = [replace(claim, verdict=CANNOT_TELL) for claim in section.claims]
    return replace(section, rows=rows, claims=undecided if claims else section.claims)


def _with_reason(row: Row, why: str) -> str:
    return f"{row.note}; {why}" if row.note else why


def _format_params(params: Params) -> str:
    return ", ".join(f"{name}={entry}" for name, entry in params.items())
