"""Dictionaries whose atoms form blocks: SAC finds blocks, BK-SVD atoms, BOMP codes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.linear_model import orthogonal_mp_gram
from sklearn.utils import check_random_state

from polyspan.base.arrays import limit_threads, pass_work
from polyspan.base.checks import check_subspace_dim
from polyspan.base.private_sklearn import Interval, fit_context, plain_settings
from polyspan.base.progress import FitProgress
from polyspan.geometry.bases import draw_bases
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.looking import noise_variance

# A run stops after this many iterations without a lower error.
PATIENCE = 5

#: Error, atoms, blocks and codes of a start, and the iteration that they are of.
Run = tuple[float, np.ndarray, list[np.ndarray], np.ndarray, int]


def merge_blocks(codes: np.ndarray, largest: int) -> list[np.ndarray]:
    """Merge atoms that the same samples use into blocks of at most `largest` atoms (SAC).

    Parameters
    ----------
    codes : array of shape (n_samples, n_atoms)
        Sparse codes, computed without blocks.
    """
    blocks = [np.array([k]) for k in range(codes.shape[1])]
    used = [codes[:, k] != 0 for k in range(codes.shape[1])]
    # How many samples use both of two blocks; merging changes one row and column.
    shared = (codes != 0).astype(float).T @ (codes != 0)
    np.fill_diagonal(shared, -1.0)
    alive = np.ones(len(blocks), dtype=bool)
    while True:
        sizes = np.array([len(block) for block in blocks])
        allowed = (sizes[:, None] + sizes <= largest) & alive[:, None] & alive
        candidates = np.where(allowed, shared, -1.0)
        a, b = np.unravel_index(int(candidates.argmax()), candidates.shape)
        if candidates[a, b] <= 0:
            break
        blocks[a] = np.concatenate([blocks[a], blocks[b]])
        used[a] = used[a] | used[b]
        alive[b] = False
        row = np.array([float(np.count_nonzero(used[a] & other)) for other in used])
        row[a] = -1.0
        shared[a], shared[:, a] = row, row
    return [block for block, kept in zip(blocks, alive, strict=True) if kept]


def block_omp(
    X: np.ndarray, atoms: np.ndarray, blocks: list[np.ndarray], n_blocks: int
) -> np.ndarray:
    """Return codes that use at most n_blocks blocks, chosen greedily (BOMP).

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    atoms : array of shape (n_features, n_atoms)
        Orthonormal within a block.
    blocks : list of arrays
        Which atoms belong to each block.
    """
    codes = np.zeros((len(X), atoms.shape[1]))
    chosen = np.zeros((len(X), len(blocks)), dtype=bool)
    residual = X
    for _ in range(min(n_blocks, len(blocks))):
        products = residual @ atoms
        strength = np.stack([np.sum(products[:, b] ** 2, axis=1) for b in blocks], axis=1)
        strength[chosen] = -1.0
        chosen[np.arange(len(X)), strength.argmax(axis=1)] = True
        # Samples with the same choice share one least-squares problem.
        patterns, which = np.unique(chosen, axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            own = np.flatnonzero(which == p)
            support = np.concatenate([blocks[k] for k in np.flatnonzero(pattern)])
            codes[own] = 0.0
            solution = np.linalg.lstsq(atoms[:, support], X[own].T, rcond=None)[0]
            codes[np.ix_(own, support)] = solution.T
        residual = X - codes @ atoms.T
    return codes


def update_blocks(
    X: np.ndarray, atoms: np.ndarray, blocks: list[np.ndarray], codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Replace each block and its codes by the best approximation of the others' residual."""
    atoms, codes = atoms.copy(), codes.copy()
    for block in blocks:
        users = np.flatnonzero((codes[:, block] != 0).any(axis=1))
        if len(users) < len(block):
            continue
        codes[np.ix_(users, block)] = 0.0
        residual = X[users] - codes[users] @ atoms.T
        u, values, vt = np.linalg.svd(residual, full_matrices=False)
        k = min(len(block), len(values))
        atoms[:, block[:k]] = vt[:k].T
        codes[np.ix_(users, block[:k])] = u[:, :k] * values[:k]
    return atoms, codes


class BlockSparseDictionary(ClusterMixin, LinearUnion):  # type: ignore[misc]
    """Learn a dictionary whose atoms come in blocks, each a subspace (SAC + BK-SVD).

    Sparse agglomerative clustering joins atoms that the same samples use, block K-SVD updates the
    atoms, block OMP codes the samples (Zelnik-Manor, Rosenblum and Eldar, 2012).

    Parameters
    ----------
    n_subspaces : int, default=3
        Number of subspaces; the dictionary has n_subspaces · subspace_dim atoms.
    subspace_dim : int, default=1
        Largest number of atoms in a block.
    n_blocks : int, default=1
        Largest number of blocks that a sample may use.
    n_init : int, default=8
        Number of starts; the one with the lowest training error is kept.
    max_iter : int, default=50
        Largest number of iterations; each of them finds the blocks anew.
    tol : float, default=1e-4
        Stop when five iterations in a row lower the error by no more than this fraction.
    random_state : int, RandomState instance or None, default=None
        Seed of the first dictionary of every start.

    Attributes
    ----------
    bases_ : ndarray of shape (n_subspaces, n_features, subspace_dim)
        The blocks that most samples use. A smaller block is completed to `subspace_dim` by
        principal directions of its samples.
    mean_ : ndarray of shape (n_features,)
        Zero.
    labels_ : ndarray of shape (n_samples,)
        Index of the nearest of these subspaces.
    error_ : float
        Sum of squared residuals of the block-sparse codes.
    block_sizes_ : list of int
        Sizes of all blocks that were found.
    n_iter_ : int
        Iteration of the best start in which its error was lowest.
    n_features_in_ : int
        Number of features seen during `fit`.

    Examples
    --------
    >>> from polyspan.baselines import BlockSparseDictionary
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> data = make_union_of_subspaces((50, 50), n_features=30, subspace_dim=2, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> BlockSparseDictionary(2, 2, random_state=0).fit(data.X).bases_.shape
    (2, 30, 2)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_subspaces": [Interval(Integral, 1, None, closed="left")],
        "subspace_dim": [Interval(Integral, 1, None, closed="left")],
        "n_blocks": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int = 1,
        *,
        n_blocks: int = 1,
        n_init: int = 8,
        max_iter: int = 50,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.n_blocks = n_blocks
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the dictionary.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples without missing entries.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        BlockSparseDictionary
            The fitted estimator.
        """
        X = self._validate(X, reset=True)
        n, m = X.shape
        check_subspace_dim(self.subspace_dim, m)
        if n < self.n_subspaces * self.subspace_dim:
            raise ValueError(
                f"n_samples={n} is fewer than n_subspaces * subspace_dim = {self.n_subspaces} * "
                f"{self.subspace_dim}: every sample could have an atom of its own"
            )
        rng = check_random_state(self.random_state)
        Y = np.asarray(X, dtype=np.float64)
        with limit_threads(pass_work(n, m, self.n_subspaces * self.subspace_dim), self.n_init):
            progress = FitProgress(self, X, y, self.n_init, self.max_iter)
            runs = [self._run(Y, rng, progress, k) for k in range(self.n_init)]
            error, atoms, blocks, codes, n_iter = min(runs, key=lambda run: run[0])
            self.bases_ = self._subspaces(Y, atoms, blocks, codes).astype(X.dtype)
        self.mean_ = np.zeros(m, dtype=X.dtype)
        self.error_, self.n_iter_ = error, n_iter
        self.block_sizes_ = [len(block) for block in blocks]
        self.labels_ = self._nearest(X)
        self.noise_variance_ = noise_variance(self, X)
        progress.end()
        return self

    def _run(
        self, X: np.ndarray, rng: np.random.RandomState, progress: FitProgress, number: int
    ) -> Run:
        """Alternate between blocks, codes and atoms from one start."""
        m, n_atoms = X.shape[1], self.n_subspaces * self.subspace_dim
        atoms = np.empty((m, 0))
        while atoms.shape[1] < n_atoms:
            extra = draw_bases((m, min(m, n_atoms - atoms.shape[1])), rng)
            atoms = np.concatenate([atoms, extra], axis=1)
        best: Run | None = None
        stale = 0
        n_nonzero = min(self.n_blocks * self.subspace_dim, m, n_atoms)
        tick = progress.ticker(number)
        for step in range(1, self.max_iter + 1):
            with plain_settings():
                sparse = orthogonal_mp_gram(
                    atoms.T @ atoms, atoms.T @ X.T, n_nonzero_coefs=n_nonzero
                )
            blocks = merge_blocks(np.reshape(sparse, (n_atoms, len(X))).T, self.subspace_dim)
            codes = block_omp(X, atoms, blocks, self.n_blocks)
            atoms, codes = update_blocks(X, atoms, blocks, codes)
            error = float(np.sum((X - codes @ atoms.T) ** 2))
            # New blocks can raise the error: keep the best result, and allow a few worse steps.
            lower = best is None or error < best[0] * (1.0 - self.tol)
            stale = 0 if lower else stale + 1
            if best is None or error < best[0]:
                best = (error, atoms, blocks, codes, step)
            tick()
            if stale >= PATIENCE:
                break
        progress.end_start(number)
        assert best is not None
        return best

    def _subspaces(
        self, X: np.ndarray, atoms: np.ndarray, blocks: list[np.ndarray], codes: np.ndarray
    ) -> np.ndarray:
        """Return the blocks that most samples use, completed to subspaces of one dimension.

        Arbitrary directions complete what the samples do not span.
        """
        s, axes = self.subspace_dim, np.eye(X.shape[1], self.subspace_dim)
        users = [(codes[:, block] != 0).any(axis=1) for block in blocks]
        order = np.argsort([-int(u.sum()) for u in users], kind="stable")[: self.n_subspaces]
        bases = []
        for k in order:
            basis = np.linalg.qr(atoms[:, blocks[k]])[0]
            residual = X[users[k]] - (X[users[k]] @ basis) @ basis.T
            more = np.linalg.svd(residual, full_matrices=False)[2].T
            columns = np.concatenate([basis, more], axis=1)[:, :s]
            bases.append(np.linalg.qr(np.concatenate([columns, axes], axis=1))[0][:, :s])
        while len(bases) < self.n_subspaces:
            bases.append(bases[-1])
        return np.stack(bases)
