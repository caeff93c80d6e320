"""Algorithm 1 (MiCUSaL): assign ⇄ update until the objective settles, for many starts at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from polyspan.arrays import Array, Rows, namespace
from polyspan.geometry import orthonormal_columns
from polyspan.solvers.assignment import assign
from polyspan.solvers.leave_one_out import Leverage, measure_leverage
from polyspan.solvers.problem import Monitor, Problem, Solution
from polyspan.solvers.projections import Stacked, energies, project
from polyspan.solvers.updates import exact_update, power_update


@dataclass(frozen=True)
class Rules:
    """How to update and when to stop."""

    solver: str = "power"
    """"power" or "exact"."""
    max_iter: int = 300
    tol: float = 1e-6
    """Stop when an iteration lowers the objective by no more than this share of it."""
    leave_one_out: bool = False


def learn_subspaces(
    problem: Problem, bases: Array, rules: Rules, *, monitor: Monitor | None = None
) -> list[Solution]:
    """Run Algorithm 1 from every start; a start that has stopped leaves the common product.

    The objective is taken after each assignment, so the first entry of a history belongs to the
    start itself and the last one to the labels and bases that are returned.

    Parameters
    ----------
    bases : array of shape (n_starts, n_subspaces, n_features, subspace_dim)
    """
    xp = namespace(bases)
    active = list(range(bases.shape[0]))
    histories: list[list[float]] = [[] for _ in active]
    ended: dict[int, Solution] = {}
    labels: Array | None = None
    for iteration in range(rules.max_iter + 1):
        leverage = _leverage(problem, bases, labels, rules)
        previous = labels
        labels, sums = assign(
            problem.rows, bases, with_products=rules.solver == "power", leverage=leverage
        )
        values = [float(v) for v in problem.objective(bases, sums.energy)]
        keep = []
        for k, start in enumerate(active):
            history = histories[start]
            history.append(values[k])
            settled = _settled(problem, history, rules)
            if rules.leave_one_out:
                # The iteration minimises no F1; only equal labels tell that it is over.
                same = previous is not None and bool(xp.all(labels[:, k] == previous[:, k]))
                settled = settled and same
            asked = monitor is not None and monitor(start, iteration, values[k], bases[k, ...])
            if not settled and not asked and iteration < rules.max_iter:
                keep.append(k)
                continue
            ended[start] = Solution(
                bases=bases[k, ...],
                labels=labels[:, k],
                counts=sums.counts[k, :],
                objective=values[k],
                criterion=float(sums.score[k]) if leverage is not None else values[k],
                history=tuple(history),
                n_iter=iteration,
                stopped="converged" if settled else "callback" if asked else "max_iter",
            )
        if not keep:
            break
        if len(keep) < len(active):
            active = [active[k] for k in keep]
            which = xp.asarray(keep)
            bases, labels = xp.take(bases, which, axis=0), xp.take(labels, which, axis=1)
            if sums.products is not None:
                sums = replace(sums, products=xp.take(sums.products, which, axis=0))
        bases = _update(problem, bases, labels, sums.products, rules)
    return [ended[start] for start in range(len(histories))]


def _leverage(
    problem: Problem, bases: Array, labels: Array | None, rules: Rules
) -> Leverage | None:
    if not rules.leave_one_out or labels is None:
        return None
    xp = namespace(bases)
    every = xp.arange(bases.shape[1], dtype=labels.dtype)
    weights = xp.astype(labels[..., None] == every, bases.dtype)
    return measure_leverage(problem.rows, bases, weights, problem.norms)


def _settled(problem: Problem, history: list[float], rules: Rules) -> bool:
    if len(history) < 2:
        return False
    change = history[-2] - history[-1]
    if rules.leave_one_out:
        change = abs(change)
    return change <= max(rules.tol * abs(history[-1]), problem.rounding)


def _update(
    problem: Problem, bases: Array, labels: Array, products: Array | None, rules: Rules
) -> Array:
    if products is not None:
        return power_update(problem, bases, products)
    xp = namespace(bases)
    return xp.stack(
        [exact_update(problem, bases[k, ...], labels[:, k]) for k in range(bases.shape[0])]
    )


def refill_empty(
    problem: Problem, solution: Solution, rules: Rules, *, monitor: Monitor | None = None
) -> Solution:
    """Give empty subspaces the worst represented samples and go on; keep what is better.

    Algorithm 1 can converge with a subspace that no sample chose. The run that goes on from new
    bases is kept only if it ends lower, so the objective never rises; its history takes up again
    where it first falls below what was reached.
    """
    xp = namespace(solution.bases)
    for _ in range(solution.bases.shape[0]):
        empty = [p for p in range(solution.bases.shape[0]) if int(solution.counts[p]) == 0]
        left = rules.max_iter - solution.n_iter
        if not empty or solution.stopped != "converged" or left < 1:
            break
        bases = xp.asarray(solution.bases, copy=True)
        for k, p in enumerate(empty):
            bases[p, ...] = _worst_represented(problem.rows, solution, problem.norms, k, len(empty))
        (resumed,) = learn_subspaces(
            problem, bases[None, ...], replace(rules, max_iter=left), monitor=monitor
        )
        if not resumed.objective < solution.objective:
            break
        lower = [value for value in resumed.history if value < solution.objective]
        solution = replace(
            resumed,
            history=(*solution.history, *lower),
            n_iter=solution.n_iter + resumed.n_iter,
        )
    return solution


def _worst_represented(
    rows: Rows, solution: Solution, norms: Array, turn: int, n_empty: int
) -> Array:
    """Return a basis of the samples with the largest residuals, another share on every turn."""
    xp = namespace(solution.bases)
    n_subspaces, _, s = solution.bases.shape
    stacked = Stacked.of(solution.bases[None, ...], rows.offset)
    energy = xp.concat(
        [xp.max(energies(project(chunk, stacked))[:, 0, :], axis=1) for _, chunk in rows.chunks()],
        axis=0,
    )
    worst = xp.argsort(norms - energy, descending=True)
    share = max(s, rows.shape[0] // (2 * n_subspaces))
    chosen = worst[turn::n_empty][:share]
    members = xp.take(rows.X, chosen, axis=0)
    if rows.mean is not None:
        members = members - rows.mean
    u, _, _ = xp.linalg.svd(members.T, full_matrices=False)
    if u.shape[1] < s:
        u = xp.concat([u, solution.bases[0, ...]], axis=1)
    return orthonormal_columns(u[:, :s])
