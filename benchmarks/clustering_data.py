"""Labelled data of the clustering table: one draw for each seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation
from sklearn.datasets import load_digits

import usps
from polyspan.datasets import load_extended_yale_b, load_usps, make_union_of_subspaces
from polyspan.geometry import draw_bases

#: Seeds below this one were used for choosing settings.
FIRST_SEED = 100
OUTLIER = -1  # the label of samples that belong nowhere and are not counted


@dataclass(frozen=True)
class Data:
    """How to draw one data set, and the dimension that methods get which must know one."""

    draw: Callable[[int], tuple[np.ndarray, np.ndarray]]
    dim: int
    n_draws: int = 10


@cache
def _faces() -> Any:
    return load_extended_yale_b(downsampling="bicubic", data_home=usps.data_home())


@cache
def _digits() -> Any:
    return load_usps(data_home=usps.data_home())


def faces(n_subjects: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all good images of some subjects, scaled to norm 1."""
    yale = _faces()
    X, target = yale.X[~yale.bad], yale.target[~yale.bad]
    rng = np.random.default_rng(seed)
    chosen = np.isin(target, rng.choice(np.unique(target), n_subjects, replace=False))
    return X[chosen], np.unique(target[chosen], return_inverse=True)[1]


def digits(which: tuple[int, ...], n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n samples of every digit of USPS."""
    data, rng = _digits(), np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(data.target == d), n, replace=False) for d in which]
    return data.X[np.concatenate(rows)], np.repeat(np.arange(len(which)), n)


def small_digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's digits, scaled to norm 1; every seed gives the same."""
    data = load_digits()
    return data.data / np.linalg.norm(data.data, axis=1, keepdims=True), data.target


def paper(spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the paper's synthetic setting."""
    data = make_union_of_subspaces(spread=spread, random_state=seed)
    return data.X, data.labels


def unequal(outliers: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 120 samples of norm 1 in each of three subspaces of dimension 3, 6 and 12."""
    rng = np.random.RandomState(seed)
    parts = [rng.standard_normal((120, s)) @ draw_bases((1, 60, s), rng)[0].T for s in (3, 6, 12)]
    n_outliers = round(outliers * 360)
    X = np.concatenate([*parts, rng.standard_normal((n_outliers, 60))])
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    X = X + np.sqrt(0.01 / 60) * rng.standard_normal(X.shape)
    return X, np.concatenate([np.repeat([0, 1, 2], 120), np.full(n_outliers, OUTLIER)])


def moving_bodies(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the tracks of 40 points on each of three bodies that turn and drift.

    As in `examples/demo.py`: a camera that is far away keeps two of three coordinates.
    """
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 1, 30)[:, None]
    tracks = []
    for start in ((-0.6, 0, 0), (0.6, 0, 0), (0, 0.8, 0)):
        points = rng.uniform(-1, 1, (40, 3))
        turn = Rotation.from_rotvec(time * rng.normal(0, 1.5, 3)).as_matrix()
        drift = time * rng.normal(0, 1, 3) + time**2 * rng.normal(0, 1, 3)
        moved = np.einsum("tij,nj->nti", turn, points) + drift + start
        tracks.append(moved[:, :, :2])
    X = np.concatenate(tracks) + 0.003 * rng.standard_normal((120, 30, 2))
    return X.reshape(120, 60), np.repeat([0, 1, 2], 40)


PAIRS = ((1, 6), (0, 4), (3, 8), (1, 7), (3, 5), (4, 9), (2, 7), (5, 6))
DATA = {
    **{
        f"Yale B, {k} subjects": Data(lambda seed, k=k: faces(k, seed), 9)
        for k in (2, 3, 5, 10)
    },
    "Yale B, all 38 subjects": Data(lambda seed: faces(38, seed), 9, 5),
    **{
        f"USPS {a},{b}": Data(lambda seed, pair=(a, b): digits(pair, 120, seed), 4)
        for a, b in PAIRS
    },
    "USPS, ten digits, N=3000": Data(lambda seed: digits(tuple(range(10)), 300, seed), 4, 5),
    "scikit-learn's digits": Data(small_digits, 4),
    "synthetic, t_s=.04": Data(lambda seed: paper(0.04, seed), 13),
    "synthetic, t_s=.2": Data(lambda seed: paper(0.2, seed), 13),
    "dimensions 3, 6, 12": Data(lambda seed: unequal(0.0, seed), 6),
    "dimensions 3, 6, 12, 5 % outliers": Data(lambda seed: unequal(0.05, seed), 6),
    "three moving bodies": Data(moving_bodies, 4, 60),
}  # fmt: skip
