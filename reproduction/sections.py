"""The summary of an experiment: rows, claims, curves and pictures.

A section holds data only; `reproduction.page` turns it into HTML, Markdown and CSV.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t as student

HOLDS = "holds"
DIFFERS = "differs"
NOT_REACHABLE = "not reachable"
NEW = "also measured"
CANNOT_TELL = "cannot be told"
DOES_NOT_HOLD = "does not hold"


@dataclass(frozen=True)
class Value:
    """A mean over trials, with its standard error and the number of trials."""

    mean: float
    error: float
    n: int

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the mean (Student's t); 0 for a single trial."""
        return float(student.ppf(0.975, self.n - 1)) * self.error if self.n > 1 else 0.0

    @classmethod
    def of(cls, samples: Iterable[float | None]) -> Value | None:
        """Summarise numbers; None and NaN, from trials that failed, are left out."""
        kept = np.array([x for x in samples if x is not None and math.isfinite(x)], dtype=float)
        if not len(kept):
            return None
        error = float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan
        return cls(float(kept.mean()), error, len(kept))


@dataclass(frozen=True)
class Row:
    """One number of the paper, or one that was also measured: its verdict is then NEW."""

    name: str
    published: float | None
    measured: Value | None
    """Result of the same method here; None if no trial of it has run yet."""
    improved: Value | None = None
    """Result of our best method on the same data; smaller is better."""
    verdict: str = NEW
    """HOLDS, DIFFERS, NOT_REACHABLE or NEW."""
    note: str = ""
    """The reason for a difference, or else the setting."""
    digits: int = 4
    """Decimals to print."""
    improved_by: str = ""
    """The method that gave the improved value."""
    published_as: str = ""
    """How the paper prints it where that is no single number: "4 to 5"."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in words, checked."""

    text: str
    verdict: str
    """HOLDS, DOES_NOT_HOLD or CANNOT_TELL."""
    evidence: str
    """The numbers that decide it."""


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    ours: bool = False
    """Whether this is our own method, which the paper does not have; drawn in another style."""


@dataclass(frozen=True)
class Picture:
    """A gray image, values between 0 and 1."""

    pixels: np.ndarray
    caption: str


@dataclass(frozen=True)
class Panel:
    """One part of a figure: curves over an axis, or a row of pictures."""

    title: str
    x_label: str = ""
    y_label: str = ""
    curves: Sequence[Curve] = ()
    pictures: Sequence[Picture] = ()
    x_log: bool = False
    y_log: bool = False
    """Whether the axes are logarithmic."""


@dataclass(frozen=True)
class Section:
    """The part of the page about one table or figure."""

    id: str
    """Such as "table1" or "fig2"."""
    title: str
    where: str
    """As the paper calls it: "Table I"."""
    text: str
    """The setting in a few sentences."""
    rows: Sequence[Row] = ()
    claims: Sequence[Claim] = ()
    panels: Sequence[Panel] = ()
    source: str = ""
    """Description of the data: synthetic, the real files, or the stand-in data."""
    stand_in: bool = False
    """Whether other data were used instead of the paper's."""
    notes: Sequence[str] = ()
    n_trials: int = 0
    n_failed: int = 0
    seconds: float = 0.0
    """Processor time of the trials."""
    failures: Sequence[str] = field(default_factory=tuple)
    """Error messages of the trials that failed."""
    topic: str = ""
    """What it is about in two or three words, for the first sentences of the report."""


def judge(
    published: float | None, measured: Value | None, tolerance: float, note: str = ""
) -> tuple[str, str]:
    """Return a verdict on one number and the note that goes with it.

    The number holds if the difference is within the tolerance. If the 95 % interval of the
    measured mean is wider, that interval counts instead, up to twice the tolerance.
    """
    if measured is None:
        return NOT_REACHABLE, note or "no trial of it has run at this scale"
    if published is None:
        return NEW, note
    allowed = max(tolerance, min(measured.half_width, 2 * tolerance))
    return (HOLDS if abs(measured.mean - published) <= allowed else DIFFERS), note


def compare_means(
    text: str, better: Sequence[float | None], worse: Sequence[float | None], names: tuple[str, str]
) -> Claim:
    """Check "the first is smaller than the second" on paired trials.

    The claim is decided only if the 95 % interval of the mean difference does not contain 0.
    """
    pairs = [(a, b) for a, b in zip(better, worse, strict=False) if a is not None and b is not None]
    if not pairs:
        return Claim(text, CANNOT_TELL, "no pair of trials has run at this scale")
    first, second = np.array(pairs, dtype=float).T
    difference = Value.of(second - first)
    assert difference is not None
    evidence = (
        f"{names[0]} {first.mean():.4g}, {names[1]} {second.mean():.4g}, "
        f"mean difference {difference.mean:.2g}"
    )
    if difference.n < 2:
        return Claim(text, CANNOT_TELL, f"{evidence}: one trial only")
    evidence += f" ± {difference.error:.1g} over {difference.n} trials"
    if abs(difference.mean) <= difference.half_width:
        return Claim(text, CANNOT_TELL, evidence)
    return Claim(text, HOLDS if difference.mean > 0 else DOES_NOT_HOLD, evidence)
