"""Sizes, starts and options of a fit, and their checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyspan.base.arrays import Array, to_numpy
from polyspan.base.checks import warn_user
from polyspan.base.inputs import as_dispatched
from polyspan.graphs.edges import neighbour_graph
from polyspan.graphs.spectra import cluster_graph
from polyspan.kernel._solve.alternation import KernelRules
from polyspan.kernel._solve.subspaces import KernelSubspaces, gkiop
from polyspan.kernel.functions import feature_distances

if TYPE_CHECKING:
    from polyspan.kernel import MCKUSaL, RobustMCKUSaL


@dataclass(frozen=True)
class KernelOptions(KernelRules):
    """Checked parameters of a fit: sizes, stopping rules and starts."""

    init: str = "spectral"
    """"gkiop", "spectral" or "labels"."""
    n_starts: int = 1
    n_neighbors: int = 1
    given_start: np.ndarray | None = None
    """Labels, or seeds of GKIOP, that the user passed."""
    leave_one_out: bool = False
    n_jobs: int | None = None
    distances: np.ndarray | None = None
    """Distances between the samples, for "spectral"; None: from the kernel matrix."""

    def start(
        self,
        G: Array,
        size: int,
        seed: int,
        floor: float,
        sample_weights: np.ndarray | None = None,
    ) -> KernelSubspaces | Array:
        """Return the start of one run on a centred kernel matrix: subspaces, or labels.

        `size` is the number of samples that GKIOP gathers for each subspace. Weights are the
        chances of random samples, and the sizes of nodes in the graph of "spectral".
        """
        if self.init == "labels":
            assert self.given_start is not None
            return self.given_start
        if self.init == "spectral":
            distances = feature_distances(G) if self.distances is None else self.distances
            return spectral_labels(
                distances, self.n_subspaces, self.n_neighbors, seed, sample_weights
            )
        seeds = self.given_start
        if seeds is None:
            rng = np.random.RandomState(seed)
            chances = None  # also for equal weights, which then give the seeds of none
            if sample_weights is not None and np.ptp(sample_weights) > 0:
                chances = sample_weights / sample_weights.sum()
            seeds = rng.choice(G.shape[0], self.n_subspaces, replace=False, p=chances)
        return gkiop(G, self.n_subspaces, size, seeds, floor=floor)


def spectral_labels(
    distances: np.ndarray,
    n_clusters: int,
    n_neighbors: int,
    seed: int,
    sample_weights: np.ndarray | None = None,
) -> np.ndarray:
    """Cluster samples by the leading eigenvectors of their graph, rows scaled to norm 1.

    Parameters
    ----------
    distances : array of shape (n_samples, n_samples)
    sample_weights : array of shape (n_samples,), default=None
        A sample stands for so many nodes with the same edges.
    """
    if n_clusters == 1:
        return np.zeros(len(distances), dtype=np.int64)
    if n_clusters >= len(distances):
        return np.arange(len(distances))
    graph = neighbour_graph(distances, n_neighbors)
    return cluster_graph(graph, n_clusters, seed, sample_weights=sample_weights)


def options_of(
    model: MCKUSaL | RobustMCKUSaL, n_samples: int, kept: np.ndarray | None = None
) -> KernelOptions:
    """Check the parameters of a model against the number of samples, and return them checked.

    `kept` are the samples whose weight is not 0, of which the fit is; None: all.
    """
    n_kept = n_samples if kept is None else len(kept)
    check_sizes(model.n_subspaces, model.subspace_dim, n_kept, weighted=kept is not None)
    init, given = _check_given_start(model, n_samples)
    if given is not None and kept is not None:
        given = given[kept] if init == "labels" else _seeds_among(given, kept)
    n_starts = 8 if init == "gkiop" else 1
    if given is not None and model.n_init not in ("auto", 1):
        warn_user(f"one start is given: n_init={model.n_init} is not used", RuntimeWarning)
    if given is not None:
        n_starts = 1
    elif model.n_init != "auto":
        n_starts = int(model.n_init)
    return KernelOptions(
        model.n_subspaces,
        model.subspace_dim,
        1.0 if isinstance(model.lam, str) else float(model.lam),  # the first until data are read
        model.max_iter,
        float(model.tol),
        model.max_update_iter,
        float(model.update_tol),
        init=init,
        n_starts=n_starts,
        n_neighbors=model.n_neighbors,
        given_start=given,
        leave_one_out=model.residual == "loo",
        n_jobs=model.n_jobs,
    )


def check_sizes(
    n_subspaces: int, subspace_dim: int, n_samples: int, *, weighted: bool = False
) -> None:
    """Raise an error where there are fewer samples (that have a weight) than basis vectors."""
    if subspace_dim * n_subspaces > n_samples:
        raise ValueError(
            f"n_samples={n_samples} is fewer than n_subspaces * subspace_dim = {n_subspaces} * "
            f"{subspace_dim}: every sample could have a direction of its own; lower "
            "n_subspaces or subspace_dim, or give more samples"
            f"{' with a weight above 0' if weighted else ''}"
        )


def _check_given_start(model: MCKUSaL | RobustMCKUSaL, n: int) -> tuple[str, np.ndarray | None]:
    """Check the labels, or the seeds of GKIOP, that the user passed; return the kind and them."""
    if not isinstance(model.init, str):
        labels = to_numpy(as_dispatched(model.init, "init"))
        if labels.shape != (n,) or labels.dtype.kind not in "iu":
            raise ValueError(
                f"init has the shape {labels.shape} and the type {labels.dtype}: give one "
                f"integer label for each of the {n} samples, or 'spectral' or 'gkiop'"
            )
        if labels.min() < 0 or labels.max() >= model.n_subspaces:
            raise ValueError(
                f"labels in init go from {labels.min()} to {labels.max()}: they must be "
                f"between 0 and n_subspaces - 1 = {model.n_subspaces - 1}"
            )
        return "labels", labels.astype(np.int64)
    if model.gkiop_seeds is None:
        return model.init, None
    if model.init != "gkiop":
        raise ValueError(f"gkiop_seeds are for init='gkiop', not for init={model.init!r}")
    seeds = to_numpy(as_dispatched(model.gkiop_seeds, "gkiop_seeds"))
    if (
        seeds.shape != (model.n_subspaces,)
        or seeds.dtype.kind not in "iu"
        or len(set(seeds.tolist())) < len(seeds)
        or not ((seeds >= 0) & (seeds < n)).all()
    ):
        raise ValueError(
            f"gkiop_seeds={model.gkiop_seeds} must be n_subspaces={model.n_subspaces} "
            f"different samples, from 0 to {n - 1}"
        )
    return model.init, seeds


def _seeds_among(seeds: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return the places of seeds among the samples whose weight is not 0."""
    unknown = np.setdiff1d(seeds, kept)
    if len(unknown):
        raise ValueError(
            f"gkiop_seeds {unknown.tolist()} are samples of weight 0: give samples that count"
        )
    return np.searchsorted(kept, seeds)
