"""The workloads that `compare.py` times: our part of every row of the benchmark.

A workload is a function that prepares its data and returns the function to time. It uses public
names only, so that this file runs on both commits of a comparison even if private modules moved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_sample_image

import usps
from polyspan import (
    AdaptiveMiCUSaL,
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
)
from polyspan.baselines import (
    GROUSE,
    KGROUSE,
    BlockSparseDictionary,
    KernelKMeans,
    KernelPCADenoiser,
    KSubspaces,
    RobustKernelPCA,
    RobustSparseSubspaceClustering,
    SparseSubspaceClustering,
    ThresholdingSubspaceClustering,
)
from polyspan.batch import fit_micusal
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.images import denoise_image, inpaint_image
from polyspan.kernels import Kernel, estimate_kernel

Run = Callable[[], Any]
LAM = 4.0


def union(n: int, m: int, n_subspaces: int, s: int) -> np.ndarray:
    sizes = [n // n_subspaces + (p < n % n_subspaces) for p in range(n_subspaces)]
    return make_union_of_subspaces(
        sizes, n_features=m, subspace_dim=s, test_sizes=[1] * n_subspaces, random_state=0
    ).X


def start_of(shape: tuple[int, int, int]) -> np.ndarray:
    drawn = np.random.default_rng(1).standard_normal(shape)
    return np.linalg.qr(drawn)[0]


def fitting(model: Any, X: np.ndarray) -> Run:
    """Return a fit without warnings: fits of few iterations do not converge."""

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X)

    return run


def figure_of(result: Any) -> float:
    """Return one number that shows whether two commits have the same result.

    It is the objective of a model if it has one, else a sum of squares of the result.
    """
    for name in ("objective_", "objective", "log_likelihood_", "inertia_", "values"):
        if hasattr(result, name):
            result = getattr(result, name)
            break
    if hasattr(result, "bases_"):  # coordinates of one fixed vector in each basis
        result = np.cos(np.arange(result.bases_.shape[1])) @ result.bases_
    parts = result if isinstance(result, list | tuple) else [result]
    values = [np.asarray(part, dtype=np.float64) for part in parts]
    if all(value.ndim == 0 for value in values):
        return float(sum(values))
    return float(sum(np.nansum(value * value) for value in values))


def iterations(
    m: int, n: int, n_subspaces: int, s: int, n_iter: int, dtype: str = "float64", **options: Any
) -> Run:
    """Return a fit of n_iter iterations from one start."""
    X = union(n, m, n_subspaces, s).astype(dtype)
    start = start_of((n_subspaces, m, s)).astype(dtype)
    model = MiCUSaL(n_subspaces, s, lam=LAM, init=start, max_iter=n_iter, tol=0.0, **options)
    return fitting(model, X)


def synthetic(model: Any, fraction: float = 0.0, dtype: str = "float64") -> Run:
    """Return a fit of the paper's synthetic setting."""
    X = make_union_of_subspaces(random_state=0).X.astype(dtype)
    return fitting(model, mask_entries(X, fraction, random_state=0) if fraction else X)


def digits(model: Any, n: int = 240, fraction: float = 0.0) -> Run:
    """Return a fit of two USPS digits."""
    X = np.concatenate([usps.load((d,), slice(0, n // 2))[0] for d in (1, 7)])
    return fitting(model, mask_entries(X, fraction, random_state=0) if fraction else X)


def kernel_values() -> Run:
    X = mask_entries(usps.load((0, 4), slice(0, 325))[0], 0.2, random_state=0)
    return lambda: estimate_kernel(Kernel("rbf", gamma=0.25), X)


def preimages() -> Run:
    X = np.concatenate([usps.load((d,), slice(0, 120))[0] for d in (0, 4)])
    model = MCKUSaL(2, 45, gamma=0.25, random_state=0).fit(X)
    return lambda: model.reconstruct(X + 0.02)


def denoised(model: Any, fraction: float = 0.0) -> Run:
    """Return a fit and a reconstruction of two USPS digits."""
    X = usps.load((0, 4), slice(0, 120))[0]
    X = mask_entries(X, fraction, random_state=0) if fraction else X
    return lambda: model.fit(X).reconstruct(X[:60])


def photograph(size: int) -> np.ndarray:
    return load_sample_image("china.jpg")[100 : 100 + size, 200 : 200 + size].mean(axis=2) / 255


def denoising(preset: str, size: int) -> Run:
    noise = np.random.default_rng(0).standard_normal((size, size))
    noisy = photograph(size) + 25 / 255 * noise
    return lambda: denoise_image(noisy, 25 / 255, preset)


def inpainting(preset: str, size: int) -> Run:
    mask = np.random.default_rng(0).random((size, size)) < 0.5
    image = photograph(size)
    return lambda: inpaint_image(image, mask, preset=preset)


def table() -> Run:
    X = mask_entries(load_digits().data[:600], 0.3, random_state=0)
    model = SubspaceImputer(random_state=0)
    return lambda: model.fit_transform(X)


def many_small() -> Run:
    X = np.stack([union(120, 40, 3, 4) + 0.01 * k for k in range(64)])
    return lambda: fit_micusal(X, 3, 4, random_state=0)


def streamed() -> Run:
    X = union(6000, 60, 4, 5)
    batches = np.split(X[np.random.default_rng(0).permutation(len(X))], 12)

    def run() -> Any:
        model = MiCUSaL(4, 5, random_state=0)
        for batch in batches:
            model.partial_fit(batch)
        return model

    return run


def by_dask() -> Run:
    import dask
    import dask.array as da

    X = da.from_array(union(6000, 60, 4, 5), chunks=(1500, -1))
    model = MiCUSaL(4, 5, random_state=0)

    def run() -> Any:
        with dask.config.set(scheduler="synchronous"):
            return model.fit(X)

    return run


def prediction() -> Run:
    X = union(60_000, 200, 10, 10)
    model = MiCUSaL(10, 10, random_state=0).fit(X[:2000])
    return lambda: (model.predict(X), model.transform(X))


def small(model: Any, fraction: float = 0.0) -> Run:
    """Return a fit of 180 × 20, where checks, starts and results cost more than the products."""
    return fitting(model, mask_entries(union(180, 20, 3, 3), fraction, random_state=0))


def small_table() -> Run:
    """Return the filling of a table of 180 × 20."""
    X = mask_entries(union(180, 20, 3, 3), 0.1, random_state=0)
    model = SubspaceImputer(3, 3, method="subspaces", random_state=0)
    return lambda: model.fit_transform(X)


SMALL: dict[str, Callable[[], Run]] = {
    "small, MiCUSaL": lambda: small(MiCUSaL(3, 3, random_state=0)),
    "small, MiCUSaL, random": lambda: small(MiCUSaL(3, 3, init="random", n_init=8, random_state=0)),
    "small, RobustMiCUSaL": lambda: small(RobustMiCUSaL(3, 3, random_state=0), 0.1),
    "small, mixture": lambda: small(SubspaceMixture(3, 3, random_state=0)),
    "small, mixture, missing": lambda: small(SubspaceMixture(3, 3, random_state=0), 0.1),
    "small, MCKUSaL": lambda: small(MCKUSaL(3, 3, random_state=0)),
    "small, impute": small_table,
    "small, denoise": lambda: denoising("fast", 32),
}
WORKLOADS: dict[str, Callable[[], Run]] = SMALL | {
    "smoke": lambda: iterations(60, 90, 3, 4, 5),
    "faces, exact": lambda: iterations(2016, 96, 3, 9, 6, solver="exact"),
    "scene, exact": lambda: iterations(600, 722, 5, 12, 10, solver="exact"),
    "scene, power": lambda: iterations(600, 722, 5, 12, 40),
    "restarts, float64": lambda: synthetic(MiCUSaL(5, 13, init="random", random_state=0)),
    "restarts, float32": lambda: synthetic(
        MiCUSaL(5, 13, init="random", random_state=0), dtype="float32"
    ),
    "table2, exact": lambda: synthetic(
        MiCUSaL(5, 13, init="random", solver="exact", n_init=2, random_state=0)
    ),
    "affine": lambda: synthetic(MiCUSaL(5, 13, affine=True, random_state=0)),
    "linear, loo": lambda: synthetic(MiCUSaL(5, 13, residual="loo", random_state=0)),
    "affine, exact": lambda: synthetic(
        MiCUSaL(5, 13, affine=True, init="random", solver="exact", n_init=1, random_state=0)
    ),
    "default": lambda: synthetic(MiCUSaL(5, 13, random_state=0)),
    "annealed": lambda: synthetic(MiCUSaL(5, 13, lam=4.0, init="anneal", random_state=0)),
    "adaptive": lambda: synthetic(AdaptiveMiCUSaL(8, 15, n_init=1, random_state=0)),
    "affine, loo": lambda: synthetic(
        MiCUSaL(5, 13, lam=np.inf, affine=True, residual="loo", random_state=0)
    ),
    "large, float32": lambda: iterations(4096, 10_000, 20, 10, 2, "float32"),
    "product, float64": lambda: iterations(784, 60_000, 10, 10, 5),
    "product, float32": lambda: iterations(784, 60_000, 10, 10, 5, "float32"),
    "missing, mm": lambda: synthetic(RobustMiCUSaL(5, 13, random_state=0), 0.3),
    "missing, mm, random": lambda: synthetic(
        RobustMiCUSaL(5, 13, init="random", n_init=2, max_iter=50, random_state=0), 0.1
    ),
    "adaptive, missing": lambda: synthetic(AdaptiveMiCUSaL(8, 15, n_init=1, random_state=0), 0.1),
    "stream": streamed,
    "dask": by_dask,
    "missing, grouse": lambda: synthetic(
        RobustMiCUSaL(
            5, 13, lam=2.0, init="random", n_init=1, solver="grouse", max_iter=2, random_state=0
        ),
        0.3,
    ),
    "kernel, exact": lambda: digits(
        MCKUSaL(2, 45, gamma=0.25, lam=LAM, init="gkiop", n_init=1, max_iter=2, random_state=0),
        1500,
    ),
    "kernel, low rank": lambda: digits(
        MCKUSaL(2, 45, gamma=0.25, lam=LAM, low_rank=200, random_state=0), 2000
    ),
    "kernel_estimate": kernel_values,
    "table4, spectral": lambda: digits(MCKUSaL(2, 35, gamma=1 / 8, lam=200.0, random_state=0)),
    "table4, loo": lambda: digits(
        MCKUSaL(2, 15, gamma=1 / 8, lam=200.0, residual="loo", random_state=0)
    ),
    "table4, missing": lambda: digits(
        RobustMCKUSaL(2, 35, gamma=1 / 8, lam=200.0, random_state=0), fraction=0.2
    ),
    "denoising": preimages,
    "baselines, K-subspaces": lambda: synthetic(KSubspaces(5, 13, random_state=0)),
    "baselines, SSC": lambda: synthetic(
        SparseSubspaceClustering(5, 13, alpha=60.0, random_state=0)
    ),
    "baselines, SSC by OMP": lambda: synthetic(
        SparseSubspaceClustering(5, 13, algorithm="omp", random_state=0)
    ),
    "baselines, RSSC": lambda: synthetic(RobustSparseSubspaceClustering(5, 13, random_state=0)),
    "baselines, TSC": lambda: synthetic(ThresholdingSubspaceClustering(5, 13, random_state=0)),
    "baselines, BK-SVD": lambda: synthetic(
        BlockSparseDictionary(5, 13, max_iter=1, random_state=0)
    ),
    "baselines, k-GROUSE": lambda: synthetic(KGROUSE(5, 13, max_iter=2, random_state=0), 0.3),
    "baselines, GROUSE": lambda: synthetic(GROUSE(13, random_state=0), 0.3),
    "baselines, kernel PCA": lambda: denoised(KernelPCADenoiser(45, gamma=0.25)),
    "baselines, robust kernel PCA": lambda: denoised(RobustKernelPCA(45, gamma=0.25), 0.2),
    "baselines, kernel k-means": lambda: digits(KernelKMeans(2, gamma=1 / 8, random_state=0)),
    "jobs, mixture, missing": lambda: synthetic(SubspaceMixture(5, 13, random_state=0), 0.3),
    "jobs, mixture": lambda: synthetic(SubspaceMixture(5, 13, random_state=0)),
    "jobs, denoise fast": lambda: denoising("fast", 192),
    "jobs, denoise best": lambda: denoising("best", 64),
    "jobs, inpaint fast": lambda: inpainting("fast", 96),
    "jobs, inpaint best": lambda: inpainting("best", 48),
    "jobs, impute": table,
    "peers, iteration": lambda: iterations(100, 100_000, 10, 5, 5),
    "batch": many_small,
    "prediction": prediction,
}
