"""Algorithms 4 and 5, line by line, in NumPy and SciPy: the reference for our times."""

from __future__ import annotations

import numpy as np
import scipy.linalg


def centred(G: np.ndarray) -> np.ndarray:
    """Return G̃ = G - HG - GH + HGH."""
    N = len(G)
    H = np.full((N, N), 1.0 / N)
    return G - H @ G - G @ H + H @ G @ H


def gkiop(G: np.ndarray, L: int, s: int, seeds: list[int]) -> tuple[list, list]:
    """Run Algorithm 4."""
    left = set(range(len(G)))
    members, coefs = [], []
    for p in range(L):
        seed = seeds[p] if seeds[p] in left else min(left)
        c = [seed]
        left.remove(seed)
        for _ in range(2, s + 1):
            candidates = sorted(left)
            best = candidates[int(np.argmax(G[np.ix_(candidates, c)].sum(axis=1)))]
            c.append(best)
            left.remove(best)
        values, U = np.linalg.eigh(G[np.ix_(c, c)])
        members.append(np.array(c))
        coefs.append(U / np.sqrt(values))
    return members, coefs


def assign(G: np.ndarray, members: list, coefs: list) -> np.ndarray:
    energies = [np.sum((G[:, c] @ E) ** 2, axis=1) for c, E in zip(members, coefs, strict=True)]
    return np.argmin([np.diag(G) - e for e in energies], axis=0)


def objective(G: np.ndarray, members: list, coefs: list, labels: np.ndarray, lam: float) -> float:
    """Return F3."""
    s = coefs[0].shape[1]
    close = 0.0
    for a in range(len(members)):
        for b in range(len(members)):
            if a != b:
                overlap = coefs[a].T @ G[np.ix_(members[a], members[b])] @ coefs[b]
                close += s - np.trace(overlap @ overlap.T)
    residual = 0.0
    for p, (c, E) in enumerate(zip(members, coefs, strict=True)):
        own = labels == p
        residual += np.sum(np.diag(G)[own] - np.sum((G[np.ix_(own, c)] @ E) ** 2, axis=1))
    return close + lam * residual


def update(
    G: np.ndarray, labels: np.ndarray, L: int, s: int, lam: float, max_iter: int, tol: float
) -> tuple[list, list]:
    """Take steps 9 to 20: full eigendecompositions, generalised ones in the loop."""
    members, coefs = [], []
    for p in range(L):
        c = np.flatnonzero(labels == p)
        values, U = np.linalg.eigh(G[np.ix_(c, c)])
        members.append(c)
        coefs.append(U[:, ::-1][:, :s] / np.sqrt(values[::-1][:s]))
    before = objective(G, members, coefs, labels, lam)
    for _ in range(max_iter):
        for p in range(L):
            c = members[p]
            own = G[np.ix_(c, c)]
            A = lam / 2 * own @ own
            for q in range(L):
                if q != p:
                    between = G[np.ix_(c, members[q])] @ coefs[q]
                    A += between @ between.T
            _, vectors = scipy.linalg.eigh(A, own)
            coefs[p] = vectors[:, ::-1][:, :s]
        value = objective(G, members, coefs, labels, lam)
        if before - value <= tol * abs(value):
            break
        before = value
    return members, coefs


def mckusal(
    G: np.ndarray,
    seeds: list[int],
    L: int,
    s: int,
    lam: float,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    max_update_iter: int = 50,
    update_tol: float = 1e-6,
) -> tuple[np.ndarray, list[float]]:
    """Run Algorithm 5 on a centred kernel matrix; return labels and F3 after every assignment."""
    members, coefs = gkiop(G, L, s, seeds)
    labels, history = None, []
    for iteration in range(max_iter + 1):
        assigned = assign(G, members, coefs)
        history.append(objective(G, members, coefs, assigned, lam))
        same = labels is not None and np.array_equal(assigned, labels)
        small = len(history) > 1 and abs(history[-2] - history[-1]) <= tol * abs(history[-1])
        labels = assigned
        if same or small or iteration == max_iter:
            break
        members, coefs = update(G, labels, L, s, lam, max_update_iter, update_tol)
    return labels, history


def estimated_kernel(X: np.ndarray, gamma: float) -> np.ndarray:
    """Estimate the Gaussian kernel from incomplete pairs, one pair after the other."""
    N, m = X.shape
    G = np.empty((N, N))
    observed = ~np.isnan(X)
    for i in range(N):
        for j in range(N):
            common = observed[i] & observed[j]
            d = X[i, common] - X[j, common]
            G[i, j] = np.exp(-gamma * m / common.sum() * (d @ d))
    return G
