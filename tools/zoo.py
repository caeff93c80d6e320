"""Write the zoo of saved models in tests/storage/zoo: `python tools/zoo.py`.

It holds a file for every class that can be saved and for every optional attribute, the rows that
the models are asked about, and their answers. Files of an older polyspan must load and answer as
before, so what is there is never written again: the script adds models that are new.
"""

from __future__ import annotations

import gzip
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from forging import models
from forging.models import HOLES, ROWS, Example, fitted, sized, stream
from polyspan import (
    AdaptiveMiCUSaL,
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceClustering,
    SubspaceImputer,
    SubspaceMixture,
    SubspaceOutlierDetector,
    baselines,
    load_model,
)
from polyspan.datasets import mask_entries
from polyspan.storage.models import model_bytes
from recording.outcomes import answers
from recording.stored import Record, fingerprint, kept_of

ZOO = Path(__file__).parents[1] / "tests" / "storage" / "zoo"
ANSWERS, ASKED = "answers.npz", "asked.npz"


def weighted(kind: type, **parameters: Any) -> Example:
    """Return an estimator that was fitted to rows of unequal weight, of which some are 0."""
    model = sized(kind, **parameters)
    X = HOLES if model.__sklearn_tags__().input_tags.allow_nan else ROWS
    weights = np.linspace(0.5, 2.0, len(X))
    weights[::7] = 0.0
    return Example(model.fit(X, sample_weight=weights), X[:9])


def grouped(**parameters: Any) -> Example:
    """Return a mixture that was fitted to rows of two noises."""
    groups = np.where(np.arange(len(ROWS)) % 3 == 0, "rough", "fine")
    return Example(sized(SubspaceMixture, **parameters).fit(HOLES, noise_groups=groups), HOLES[:9])


def of_frame(kind: type, **parameters: Any) -> Example:
    """Return an estimator that was fitted to a frame, and gives frames."""
    model = sized(kind, **parameters)
    X = HOLES if model.__sklearn_tags__().input_tags.allow_nan else ROWS
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])])
    return Example(model.fit(frame).set_output(transform="pandas"), frame[:9])


def of_numbers(X: np.ndarray, **parameters: Any) -> Example:
    """Return an imputer of an array."""
    return Example(SubspaceImputer(random_state=0, **parameters).fit(X), X[:9])


def standardised(*, wide: bool = False) -> Example:
    """Return clusters of a table whose graphs contradict each other."""
    X = scale(load_iris().data)
    X = X @ np.eye(4, 60) if wide else X
    return Example(SubspaceClustering(3, random_state=0).fit(X), X[:9])


def single() -> Example:
    """Return a model that was fitted in single precision."""
    return Example(sized(MiCUSaL).fit(ROWS.astype(np.float32)), ROWS[:9].astype(np.float32))


def kernel_matrix(kind: type) -> Example:
    """Return a kernel model that was fitted to a matrix."""
    G = ROWS @ ROWS.T
    return Example(sized(kind, kernel="precomputed").fit(G), G[:9])


def more() -> Iterator[tuple[str, Callable[[], Example]]]:
    """Yield what the forged models have not: other options, and attributes that these set."""
    sparse = mask_entries(ROWS, 0.3, random_state=1)[:, :4]
    yield "affine", partial(fitted, MiCUSaL, affine=True)
    yield "leave one out", partial(fitted, MiCUSaL, residual="loo", lam=float("inf"))
    yield "weight found", partial(fitted, MiCUSaL, init="auto", n_init=2)
    yield "weights", partial(weighted, MiCUSaL, trim=0.1, center=False)
    yield "single precision", single
    for kind in (MiCUSaL, RobustMiCUSaL, MCKUSaL, SubspaceMixture):
        yield f"frame, {kind.__name__}", partial(of_frame, kind)
    yield "unequal stream", partial(stream, MiCUSaL, 2, subspace_dim=[1, 3], forget_factor=0.8)
    yield "robust affine", partial(fitted, RobustMiCUSaL, affine=True, center=True, trim=0.1)
    yield "robust unequal", partial(weighted, RobustMiCUSaL, subspace_dim=(1, 2))
    yield "robust sweeps", partial(fitted, RobustMiCUSaL, solver="grouse", n_sweeps=5, max_iter=3)
    yield "adaptive trim", partial(fitted, AdaptiveMiCUSaL, trim=0.1, init="anneal")
    yield "kernel weights", partial(weighted, MCKUSaL, kernel="poly", preimage="fixed_point")
    yield "kernel seeds", partial(fitted, MCKUSaL, init="gkiop", gkiop_seeds=[0, 30])
    yield "low rank weights", partial(weighted, MCKUSaL, low_rank=12, residual="loo")
    yield "robust kernel weights", partial(weighted, RobustMCKUSaL, preimage="paper")
    yield "mixture of groups", grouped
    yield "mixture of all", partial(grouped, outliers=0.1, noise="shared", subspace_dim=(1, 2))
    yield "mixture of any dimension", partial(weighted, SubspaceMixture, subspace_dim="auto")
    yield (
        "mixture of chosen sizes",
        partial(weighted, SubspaceMixture, n_subspaces=(1, 2), subspace_dim="auto"),
    )
    yield "mixture of given noise", partial(fitted, SubspaceMixture, noise=0.01, closeness=0.0)
    yield "detector of units", partial(fitted, SubspaceOutlierDetector, standardize=True)
    yield "detector of a frame", partial(of_frame, SubspaceOutlierDetector)
    yield "clusters of a mixture", standardised
    yield "clusters of a mixture, wide", partial(standardised, wide=True)
    yield "clusters counted", partial(fitted, SubspaceClustering, n_clusters=None, max_clusters=4)
    yield (
        "clusters of all graphs",
        partial(fitted, SubspaceClustering, graphs="all", extra_members=["ensemble"]),
    )
    yield (
        "clusters of sparse graphs",
        partial(fitted, SubspaceClustering, graphs="sparse", close_subspaces=False),
    )
    yield "numbers", partial(of_numbers, sparse, n_fits=1)
    yield "indicator", partial(of_numbers, sparse, method="subspaces", add_indicator=True)
    yield (
        "other mark",
        partial(
            of_numbers, np.nan_to_num(sparse, nan=-9.0), missing_values=-9.0, method="subspaces"
        ),
    )
    yield "table of subspaces", partial(models.imputer, 24, method="subspaces", n_subspaces=1)
    yield (
        "types by hand",
        partial(
            models.imputer, 24, method="subspaces", feature_types={"age": "number", "day": "skip"}
        ),
    )
    yield "stream of sweeps", partial(stream, baselines.GROUSE, 2)
    yield "affine K-subspaces", partial(weighted, baselines.KSubspaces, affine=True)
    yield "stream of K-subspaces", partial(stream, baselines.KSubspaces, 2)
    yield (
        "exemplars",
        partial(fitted, baselines.ElasticNetSubspaceClustering, n_exemplars=20, n_subspaces=None),
    )
    yield "sparse outliers", partial(fitted, baselines.SparseSubspaceClustering, outliers=True)
    yield "K-means weights", partial(weighted, baselines.KernelKMeans, kernel="poly")
    yield "K-means of a matrix", partial(kernel_matrix, baselines.KernelKMeans)
    yield "fixed points", partial(weighted, baselines.KernelPCADenoiser, preimage="fixed_point")


def members() -> dict[str, Callable[[], Example]]:
    """Return everything that the zoo holds, by name."""
    return {**dict(models.makers()), **dict(more())}


def path_of(name: str) -> Path:
    """Return the file of a model."""
    return ZOO / (re.sub(r"\W+", "_", name) + ".skops.gz")


def loaded(name: str) -> Any:
    """Return a model of the zoo."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        path.write_bytes(gzip.decompress(path_of(name).read_bytes()))
        return load_model(path)


def frame_of(name: str) -> Path:
    """Return the file of the rows that a model is asked about, where they are a frame."""
    return path_of(name).with_suffix("").with_suffix(".parquet")


def asked(name: str) -> Any:
    """Return the rows that a model is asked about."""
    frame = frame_of(name)
    if frame.exists():
        return pd.read_parquet(frame)
    with np.load(ZOO / ASKED) as rows:
        return rows[name]


def main() -> None:
    """Add to the zoo what is not there."""
    warnings.simplefilter("ignore")
    ZOO.mkdir(parents=True, exist_ok=True)
    there = (ZOO / ANSWERS).exists()
    record = Record.read(ZOO / ANSWERS) if there else Record({}, {}, fingerprint())
    rows: dict[str, np.ndarray] = dict(np.load(ZOO / ASKED)) if there else {}
    for name, make in members().items():
        if name in record.cases:
            continue
        example = make()
        path_of(name).write_bytes(gzip.compress(model_bytes(example.model), mtime=0))
        if isinstance(example.X, pd.DataFrame):
            example.X.to_parquet(frame_of(name))
        else:
            rows[name] = example.X
            np.savez_compressed(ZOO / ASKED, **rows)  # type: ignore[arg-type]
        with threadpool_limits(1):
            record.cases[name] = kept_of(answers(loaded(name), asked(name)))
        record.write(ZOO / ANSWERS)
        print(f"{name}: {path_of(name).stat().st_size // 1024} KB", flush=True)


if __name__ == "__main__":
    main()
