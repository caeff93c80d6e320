"""Where the runs of many problems start."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.arrays import Array, moved_to, namespace, to_numpy
from polyspan.geometry import draw_bases
from polyspan.models.micusal import MiCUSaL
from polyspan.models.starts import given_start


class Starts:
    """Where the runs of every problem start: given, or drawn by NumPy and moved."""

    def __init__(self, model: MiCUSaL, X: Array, random_state: Any) -> None:
        self.sizes, self.like = (model.n_subspaces, model.subspace_dim), X
        self.n = model._n_starts()
        self.given: Array | None = None
        if not isinstance(model.init, str):
            self.given = self._given(to_numpy(model.init))
        several = hasattr(random_state, "__len__")
        seeds = list(random_state) if several else [random_state]
        if several and len(seeds) != X.shape[0]:
            raise ValueError(
                f"random_state has {len(seeds)} seeds for {X.shape[0]} problems: give one for each"
            )
        self._generators = [check_random_state(seed) for seed in seeds]
        self._shared: tuple[list[Any], list[Any]] | None = None

    def _given(self, init: np.ndarray) -> Array:
        xp, X = namespace(self.like), self.like
        n_subspaces, s = self.sizes
        shape = (X.shape[0], n_subspaces, X.shape[2], s)
        if init.ndim != 4:
            bases = given_start(init, X[0, ...], n_subspaces, s, affine=False)
            return xp.broadcast_to(bases[None, ...], shape)
        if init.shape != shape:
            raise ValueError(
                f"init has the shape {init.shape}, but (n_problems, n_subspaces, n_features, "
                f"subspace_dim) is {shape}"
            )
        flat = init.reshape(-1, *shape[2:])
        return xp.reshape(given_start(flat, X[0, ...], len(flat), s, affine=False), shape)

    def draw(self, which: slice, n_features: int) -> tuple[Array, Array]:
        """Return starts of the pooled subspace, (P, m, s), and of the runs, (P, R, L, m, s).

        In the order in which `MiCUSaL` draws them.
        """
        xp, (n_subspaces, s) = namespace(self.like), self.sizes
        shape = (self.n, n_subspaces, n_features, s)
        one_for_all = len(self._generators) == 1
        pooled, runs = self._shared or ([], [])
        if not pooled:
            for generator in self._generators if one_for_all else self._generators[which]:
                pooled.append(draw_bases((n_features, s), generator))
                runs.append(None if self.given is not None else draw_bases(shape, generator))
        if one_for_all:
            self._shared = pooled, runs
        count = which.stop - which.start

        def placed(drawn: list[Any]) -> Array:
            a = moved_to(np.stack(drawn), self.like, self.like.dtype)
            return xp.broadcast_to(a, (count, *a.shape[1:]))

        if self.given is not None:
            return placed(pooled), self.given[which, None, ...]
        return placed(pooled), placed(runs)
