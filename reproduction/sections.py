"""What an experiment says when its trials are done: rows, claims, curves and pictures.

Plain data, no drawing: the report turns a section into HTML, Markdown and CSV.
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
NEW = "not in the paper"
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
        """Half of the 95 % interval of the mean (Student's t); 0 for one trial, which has none."""
        return float(student.ppf(0.975, self.n - 1)) * self.error if self.n > 1 else 0.0

    @classmethod
    def of(cls, samples: Iterable[float | None]) -> Value | None:
        """Summarise numbers; those of trials that failed (None or NaN) are left out."""
        kept = np.array([x for x in samples if x is not None and math.isfinite(x)], dtype=float)
        if not len(kept):
            return None
        error = float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan
        return cls(float(kept.mean()), error, len(kept))


@dataclass(frozen=True)
class Row:
    """One number of the paper, or one that belongs beside it."""

    name: str
    published: float | None
    measured: Value | None
    """What the same method gives here; None where no trial of it has run (yet)."""
    improved: Value | None = None
    """What our best method gives on the same data, where smaller is better."""
    verdict: str = NEW
    """HOLDS, DIFFERS, NOT_REACHABLE or NEW."""
    note: str = ""
    """Why, where it differs; which setting, otherwise."""
    digits: int = 4
    """Decimals to print."""
    improved_by: str = ""
    """Which method the improved value is from."""


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
    """A method of ours that the paper does not have: drawn apart."""


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
    """Logarithmic axes; the default is linear ones."""


@dataclass(frozen=True)
class Section:
    """All that the page says about one table or figure."""

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
    """The data: synthetic, the real files, or what stood in for them."""
    stand_in: bool = False
    """Whether other data stood in for the paper's."""
    notes: Sequence[str] = ()
    n_trials: int = 0
    n_failed: int = 0
    seconds: float = 0.0
    """Processor time of the trials."""
    failures: Sequence[str] = field(default_factory=tuple)
    """What went wrong in trials that failed."""


def judge(
    published: float | None, measured: Value | None, tolerance: float, note: str = ""
) -> tuple[str, str]:
    """Return a verdict on one number and the note that goes with it.

    It holds where the difference is within the tolerance; few trials widen that by their 95 %
    interval, but never to more than twice.
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

    It holds, or does not, where the 95 % interval of the mean difference leaves out 0.
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
