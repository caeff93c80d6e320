"""The default starts of linear models: one is annealed, others are seeded; the lowest is kept.

Annealing wins where subspaces are close to each other, and often ends in a poor optimum where they
are far apart. There k-flats++ and a spectral start find the best one. They cost little: they are
polished together, given up where they cannot become the lowest, and found on a sample of many rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from polyspan.base.arrays import moved_to, namespace, rows_at_once, to_numpy
from polyspan.data.rows import ArrayRows
from polyspan.engine.starts import filled_rows, flats_plus_plus
from polyspan.graphs.edges import shape_interaction_graph
from polyspan.graphs.spectra import cluster_rows, leading_spectrum
from polyspan.linear._solve.alternation import Learn, Rules, Solution, alternate
from polyspan.linear._solve.annealing import annealed_starts, levels
from polyspan.linear._solve.observation import CompleteBlock
from polyspan.linear._solve.problem import Problem, prepare
from polyspan.linear.options import FINALISTS, Plan

# Starts are found on a sample where X has more entries, of at least so many rows per column.
MOST_ENTRIES, ROWS_PER_COLUMN = 10**6, 50
# Rows up to which a spectral start is cheap: its graph has their square in edges.
SPECTRAL_ROWS = 1000
# Starts in all, while the two best differ by more than this fraction of the objective.
MOST_STARTS, DISAGREEMENT = 16, 1e-3
# Starts that differ by less have met in one optimum, and the first of them is kept: then rounding
# does not decide, and every array library finds the same.
TIE = 1e-4
# An annealed start that is lower by this fraction needs no more rivals.
LEAD = 0.01
# How starts are compared before that.
COARSE = Rules("power", max_iter=100, tol=1e-4)

#: Anneals one start of a problem, and takes a few steps from there.
Annealed = Callable[[Problem], Solution]


def best_of_all_starts(
    problem: Problem, plan: Plan, rng: np.random.RandomState, annealed: Annealed, learn: Learn
) -> list[Solution]:
    """Return the best of all starts, run to the end on all rows.

    `annealed` and the seeded starts take steps by the rules `COARSE` first.
    """
    ground = on_sample(problem, plan, rng)
    found = [annealed(ground)]
    if found[0].stopped != "callback":
        found = ranked(found + compared_starts(ground, plan, rng, found[0].objective), ground)
    lowest = found[0].objective
    near = [one for one in found[1:FINALISTS] if one.objective <= lowest * (1.0 + LEAD)]
    best = found[:1] + [one for one in near if not _tied(one.objective, lowest, ground)]
    frames = namespace(best[0].frames).stack([one.frames for one in best])
    ended = zip(best, learn(problem, frames), strict=True)
    return [replace(end, anneal_history=one.anneal_history) for one, end in ended]


def on_sample(problem: Problem, plan: Plan, rng: np.random.RandomState) -> Problem:
    """Return the problem of a sample of the rows, in memory; of few rows the problem itself.

    A row of weight 2 is drawn twice as often, and then counts once.
    """
    rows, n = problem.rows, problem.rows.n_rows
    most = max(MOST_ENTRIES // rows.like.shape[1], ROWS_PER_COLUMN * plan.n_columns)
    if n <= most:
        return problem if rows.in_memory else problem.on_block(rows.block_of(np.arange(n)))
    weights = rows.weights_of(np.arange(n))
    if weights is None:
        return problem.on_block(rows.block_of(np.sort(rng.choice(n, most, replace=False))))
    chances = to_numpy(weights).astype(np.float64)
    drawn = np.sort(rng.choice(n, most, p=chances / chances.sum()))
    return problem.on_block(replace(rows.block_of(drawn), sample_weights=None))


def compared_starts(
    ground: Problem, plan: Plan, rng: np.random.RandomState, rival: float
) -> list[Solution]:
    """Return seeded starts after a few steps, the lowest objective first.

    `rival` is the objective that another start has reached. With missing entries starts are seeded
    and polished on filled rows first.
    """
    complete = filled_problem(ground, plan, rng)
    assert isinstance(complete.rows, ArrayRows)
    block = complete.rows.block
    X = to_numpy(block.centred(slice(0, complete.rows.n_rows))).astype(np.float64, copy=False)
    weights = None if block.sample_weights is None else to_numpy(block.sample_weights)[0]
    draw = partial(
        flats_plus_plus, X, plan.n_subspaces, plan.subspace_dim, rng=rng, affine=plan.affine,
        weights=weights,
    )  # fmt: skip

    def polished(frames: np.ndarray) -> list[Solution]:
        starts = moved_to(frames, ground.rows.like, ground.rows.like.dtype)
        if plan.dims is not None:
            schedules: dict[int, list[float]] = {dim: [] for dim in levels(plan.dims)}
            starts, _ = annealed_starts(complete, starts, schedules)
        own = replace(COARSE, rival=rival if complete is ground else np.inf)
        found = ranked(alternate(complete, starts, own), complete)
        if complete is ground:
            return found
        best = namespace(starts).stack([one.frames for one in found[:FINALISTS]])
        return ranked(alternate(ground, best, replace(COARSE, rival=rival)), ground)

    found = polished(draw(n_starts=plan.n_seeded))
    if not plan.more_seeds:
        return found
    if len(X) <= SPECTRAL_ROWS and plan.dims is None and not plan.affine:
        frames = spectral_start(X, plan.n_subspaces, plan.subspace_dim, weights, rng)
        if frames is not None:
            found = ranked(found + polished(frames[None]), ground)
    if _undecided(found, rival):
        n_more = MOST_STARTS - 1 - plan.n_seeded
        found = ranked(found + polished(draw(n_starts=n_more)), ground)
    return found


def _undecided(found: list[Solution], rival: float) -> bool:
    """Tell whether more starts may find a lower objective: no two have met in the lowest."""
    best, second = sorted([rival, *(one.objective for one in found)])[:2]
    if best == rival and second > best * (1.0 + LEAD):
        return False
    return second > best * (1.0 + DISAGREEMENT)


def filled_problem(ground: Problem, plan: Plan, rng: np.random.RandomState) -> Problem:
    """Return the problem of complete rows, whose missing entries one subspace of all has filled."""
    assert isinstance(ground.rows, ArrayRows)
    block, like = ground.rows.block, ground.rows.like
    if isinstance(block, CompleteBlock):
        return ground
    values = filled_rows(to_numpy(block.values), to_numpy(block.missing), plan.n_columns, rng)
    filled = moved_to(values, like, like.dtype)
    own = block.sample_weights
    return ground.on_block(CompleteBlock(filled, None, rows_at_once(filled), sample_weights=own))


def spectral_start(
    X: np.ndarray, n_subspaces: int, dim: int, weights: np.ndarray | None,
    rng: np.random.RandomState,
) -> np.ndarray | None:  # fmt: skip
    """Return bases of spectral clusters of rows, by the angles of leading left singular vectors.

    None where these vectors would span all rows, so that all angles are right.
    """
    rank = n_subspaces * dim
    if not 0 < 2 * rank <= len(X) or n_subspaces == 1:
        return None
    U = np.linalg.svd(X if weights is None else X * np.sqrt(weights)[:, None], full_matrices=False)
    seed = int(rng.randint(2**31 - 1))
    graph = shape_interaction_graph(U[0], min(rank, U[0].shape[1]))
    vectors = leading_spectrum(graph.toarray(), n_subspaces, seed).vectors
    labels = cluster_rows(vectors, n_subspaces, seed, n_starts=3, sample_weights=weights)
    bases = []
    for p in range(n_subspaces):
        own = X[labels == p]
        own = own if len(own) >= dim else X
        bases.append(np.linalg.svd(own, full_matrices=False)[2][:dim].T)
    return np.stack(bases)


def hard_labels(
    X: np.ndarray, n_subspaces: int, dim: int, n_starts: int, rng: np.random.RandomState, *,
    affine: bool = False, weights: np.ndarray | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """Return labels of K-subspaces, linear or affine, from starts of k-flats++."""
    problem, _ = prepare(X, math.inf, center=affine, affine=affine, weights=weights)
    assert isinstance(problem.rows, ArrayRows)
    rows = problem.rows.block.centred(slice(0, len(X)))
    frames = flats_plus_plus(rows, n_subspaces, dim, n_starts, rng, affine=affine, weights=weights)
    found = alternate(problem, frames, COARSE)
    return [np.asarray(one.labels) for one in found]


def ranked(solutions: list[Solution], problem: Problem) -> list[Solution]:
    """Return solutions, the lowest objective first; of those that are tied the first one found."""
    left, found = list(solutions), []
    while left:
        lowest = min(one.objective for one in left)
        tied = (k for k, one in enumerate(left) if _tied(one.objective, lowest, problem))
        found.append(left.pop(next(tied, 0)))
    return found


def _tied(objective: float, lowest: float, problem: Problem) -> bool:
    return objective <= lowest * (1.0 + TIE) + problem.rounding
