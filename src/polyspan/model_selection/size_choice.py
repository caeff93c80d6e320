"""The result of `choose_size`, and what it says in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from polyspan.base.checks import warn_user
from polyspan.summaries import card, facts_html, folded, records_html


@dataclass(frozen=True, repr=False)
class SizeChoice:
    """The result of `choose_size`: the sizes, how certain they are, and all that was tried.

    It prints as a short table.

    Parameters
    ----------
    n_subspaces : int
        Number of subspaces that was chosen.
    subspace_dim : int
        Dimension that was chosen.
    lam : float
        Weight λ that was chosen, or that was given.
    n_subspaces_range : tuple of two ints
        Smallest and largest number of subspaces whose error is within one standard error of the
        best.
    subspace_dim_margin : float
        Difference of the BIC of the second-best dimension from the best, relative to the best.
    table : list of dict, default=[]
        One row per model tried: step, n_subspaces, subspace_dim, lam, value, standard_error.
    seed_answers : list of tuple, default=[]
        The pair (n_subspaces, subspace_dim) by each seed; the first is the answer.
    at_bound : dict, default={}
        For each of "n_subspaces", "subspace_dim", "lam" at a bound of its grid: what to do.
    """

    n_subspaces: int
    subspace_dim: int
    lam: float
    n_subspaces_range: tuple[int, int]
    subspace_dim_margin: float
    table: list[dict[str, float | str]] = field(default_factory=list)
    seed_answers: list[tuple[int, int]] = field(default_factory=list)
    at_bound: dict[str, str] = field(default_factory=dict)

    @property
    def stability(self) -> str:
        """How the answer changes with the seed, in one sentence."""
        answers = self.seed_answers
        if len(answers) < 2:
            return "not measured: only one seed was tried"
        same = sum(answer == (self.n_subspaces, self.subspace_dim) for answer in answers)
        if same == len(answers):
            return f"all {same} seeds give the same sizes"
        counts = {answer: answers.count(answer) for answer in answers}
        shown = ", ".join(
            f"{n} of dimension {dim}" + (f" ({count} seeds)" if count > 1 else "")
            for (n, dim), count in counts.items()
        )
        return f"{len(answers)} seeds give {len(counts)} answers: {shown}"

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return names, values and notes: what is printed, and shown in a notebook."""
        low, high = self.n_subspaces_range
        alone = "no other is as good" if low == high else f"{low} to {high} are about as good"
        if self.n_subspaces == 1:
            alone += "; one subspace is PCA"
        margin = self.subspace_dim_margin
        next_best = "no other was tried"
        if math.isfinite(margin):
            next_best = f"BIC of the next best is {margin:.2%} worse"
        rows = []
        for name, value, note in (
            ("n_subspaces", str(self.n_subspaces), alone),
            ("subspace_dim", str(self.subspace_dim), next_best),
            ("lam", f"{self.lam:g}", ""),
        ):
            notes = [text for text in (note, self.at_bound.get(name, "")) if text]
            rows.append((name, value, "; ".join(notes)))
        seeds = ("seeds", str(len(self.seed_answers) or 1), self.stability)
        return [*rows, seeds, ("models tried", str(len(self.table)), "")]

    def __repr__(self) -> str:
        rows = self._rows()
        return "\n".join(f"{name:14s}{value:>6s}  {note}".rstrip() for name, value, note in rows)

    def _repr_html_(self) -> str:
        tried = folded("Every model that was tried", records_html(self.table))
        return card(facts_html(self._rows()), tried)

    def warn(self) -> None:
        """Warn where the answer is a bound of its grid, or most seeds give other numbers."""
        for name, advice in self.at_bound.items():
            warn_user(f"choose_size: {name}={getattr(self, name):g} {advice}")
        same = [number == self.n_subspaces for number, _ in self.seed_answers]
        if len(same) > 1 and 2 * sum(same) <= len(same):
            warn_user(
                f"choose_size: the number of subspaces depends on the seed ({self.stability}): "
                "these data do not determine it; look at the table, or cluster them with "
                "polyspan.SubspaceClustering, which says how sure it is"
            )


def bounds_reached(
    sizes: tuple[int, int, float],
    largest: tuple[int, int],
    asked: tuple[int, int],
    lam_grid: list[float],
) -> dict[str, str]:
    """Return which answers are the last of their grid, and what to do.

    Parameters
    ----------
    sizes : (int, int, float)
        Number, dimension and λ that were chosen.
    largest : (int, int)
        Largest number and dimension that were tried.
    asked : (int, int)
        `max_subspaces` and `max_dim`: fewer are tried where samples are few.
    lam_grid : list of float
        All λ tried, in ascending order.
    """
    found = {}
    names = (("n_subspaces", "max_subspaces"), ("subspace_dim", "max_dim"))
    for (name, bound), size, tried, wanted in zip(names, sizes, largest, asked, strict=False):
        # 1 of 1 is no answer of a search, but what the user said.
        if size < tried or wanted == 1:
            continue
        advice = f"raise {bound}" if tried == wanted else "for more there are too few samples"
        found[name] = f"is the largest that was tried: {advice}"
    lam = sizes[2]
    if len(lam_grid) > 1 and lam in (lam_grid[0], lam_grid[-1]):
        which = "smallest" if lam == lam_grid[0] else "largest"
        found["lam"] = f"is the {which} that was tried: run again with lam={lam:g}"
    return found
