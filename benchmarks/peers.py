"""Compare ours with scikit-learn, kspaces and tslearn: the same data, one process, one thread.

    python benchmarks/peers.py            table and docs/images/peers.png
    python benchmarks/peers.py --quick    the smallest sizes, no figure

`pip install .[peers]` installs kspaces and tslearn; the table names what is not installed. Times
are processor times: with one thread, these do not depend on other programs that run.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA

from polyspan import MCKUSaL, MiCUSaL
from polyspan.baselines import ThresholdingSubspaceClustering
from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import draw_bases
from polyspan.metrics import average_subspace_distance, clustering_error
from timing import interleaved, machine, peak_mib

Row = dict[str, Any]
L, S = 5, 5
SPREAD = 0.2  # t_s: subspaces so far apart that every method can find them
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "peers.png"


class Peer(NamedTuple):
    """One method: how to fit it, and up to how many samples."""

    fit: Callable[[np.ndarray], np.ndarray | None]
    """Returns labels, or None where it has none."""
    max_samples: int
    """Largest number of samples; with more, a fit takes minutes or needs an N×N matrix."""


def data(n: int, m: int, seed: int = 0) -> Any:
    sizes = [n // L + (p < n % L) for p in range(L)]
    found = make_union_of_subspaces(
        sizes, n_features=m, subspace_dim=S, spread=SPREAD, test_sizes=[1] * L, random_state=seed
    )
    order = np.random.default_rng(seed).permutation(n)
    return found.X[order], found.labels[order], found.bases


def kspaces_fit(
    X: np.ndarray, max_iter: int = 50, tol: float = 5e-2, *,
    n_subspaces: int = L, dim: int = S, starts: int = 1,
) -> np.ndarray:  # fmt: skip
    """Return labels of kspaces with hard assignment (its K-subspaces), by default from one start.

    Its default, soft assignment, failed on these data at N=100 000 ("EM unsuccessful").
    """
    from kspaces import run_EM

    np.random.seed(0)
    _, responsibilities = run_EM(
        X, [dim] * n_subspaces, assignment="closest", max_iter=max_iter, tol=tol,
        initializations=starts, silent=True, randomize_init=True,
    )  # fmt: skip
    return np.asarray(responsibilities).argmax(axis=1)


def tslearn_fit(X: np.ndarray) -> np.ndarray:
    from tslearn.clustering import KernelKMeans

    return KernelKMeans(L, kernel="rbf", random_state=0).fit(X[:, :, None]).labels_


def random_start(X: np.ndarray, **options: Any) -> MiCUSaL:
    start = draw_bases((L, X.shape[1], S), np.random.RandomState(0)).astype(X.dtype)
    return MiCUSaL(L, S, init=start, **options).fit(X)


def pca_fit(X: np.ndarray) -> None:
    PCA(S, random_state=0).fit(X)


PEERS: dict[str, Peer] = {
    "MiCUSaL": Peer(lambda X: MiCUSaL(L, S, random_state=0).fit(X).labels_, 10**9),
    "MiCUSaL, random start": Peer(lambda X: random_start(X).labels_, 10**9),
    "MCKUSaL, low rank 200": Peer(
        lambda X: MCKUSaL(L, S, low_rank=200, random_state=0).fit(X).labels_, 20_000
    ),
    "TSC (ours)": Peer(
        lambda X: ThresholdingSubspaceClustering(L, S, random_state=0).fit(X).labels_, 5_000
    ),
    "KMeans": Peer(lambda X: KMeans(L, n_init=1, random_state=0).fit(X).labels_, 10**9),
    "PCA": Peer(pca_fit, 10**9),
    "SpectralClustering": Peer(
        lambda X: SpectralClustering(
            L, affinity="nearest_neighbors", random_state=0
        ).fit(X).labels_, 5_000,
    ),
    "kspaces": Peer(kspaces_fit, 20_000),
    "tslearn KernelKMeans": Peer(tslearn_fit, 2_000),
}  # fmt: skip


def bases_of(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the leading directions of every cluster, so that d_avg is defined for all methods."""
    bases = []
    for p in range(L):
        own = X[labels == p] - X.mean(axis=0)
        own = own if len(own) >= S else X[:S]
        bases.append(np.linalg.svd(own[:20_000], full_matrices=False)[2][:S].T)
    return np.stack(bases)


def fitted(name: str, n: int, m: int) -> Row:
    """Fit one method once for its time and once for its memory."""
    X, labels, bases = data(n, m)
    row: Row = {"row": f"{name}, N={n}, m={m}", "method": name, "N": n, "m": m}
    peer = PEERS[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer.fit(X[: min(n, 500)])  # a small first fit, for imports and compilation
            begin = time.process_time()
            found = peer.fit(X)
            row["s"] = time.process_time() - begin
            if n <= 20_000:
                row["peak MiB"] = peak_mib(lambda: peer.fit(X))
    except Exception as error:  # the row of a method that fails has its error
        return row | {"error": f"{type(error).__name__}: {error}"}
    if found is not None:
        row["wrong labels"] = float(clustering_error(labels, found))
        row["d_avg"] = float(average_subspace_distance(bases_of(X, found), bases))
    return row


def per_iteration(n: int, m: int, names: tuple[str, ...], repeats: int = 3) -> dict[str, float]:
    """Return the seconds of one iteration, from the difference of a long and a short run."""
    X, _, _ = data(n, m)
    start = X[np.random.default_rng(0).choice(n, L, replace=False)]
    lengths = {"MiCUSaL": (2, 12), "KMeans": (2, 12)}

    def run(name: str, length: int) -> Any:
        if name == "MiCUSaL":
            return random_start(X, max_iter=length, tol=0.0).n_iter_
        if name == "KMeans":
            return KMeans(L, init=start, n_init=1, max_iter=length, tol=0.0).fit(X).n_iter_
        return kspaces_fit(X, max_iter=length, tol=1e-12)

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            short, long = lengths.get(name, (1, 4))
            if name in lengths:
                long = run(name, long)  # number of iterations: it may have converged earlier
            runs = {"short": lambda: run(name, short), "long": lambda: run(name, long)}  # noqa: B023
            seconds = interleaved(runs, repeats)
            found[name] = (seconds["long"] - seconds["short"]) / (long - short)
    return found


def peers_iteration(n: int = 100_000, m: int = 100) -> Iterator[Row]:
    """Time one iteration of MiCUSaL against one of KMeans and one of kspaces."""
    times = per_iteration(n, m, ("MiCUSaL", "KMeans"), repeats=5)
    row: Row = {"row": f"iteration, N={n}, m={m}, L={L}, s={S}"}
    row |= {f"{name} s": value for name, value in times.items()}
    row["MiCUSaL over KMeans"] = times["MiCUSaL"] / times["KMeans"]
    try:
        own = per_iteration(n, m, ("kspaces",))["kspaces"]
        row |= {"kspaces s": own, "kspaces over MiCUSaL": own / times["MiCUSaL"]}
    except ImportError as error:
        row["error"] = f"kspaces: {error}"
    yield row
    for name in ("MiCUSaL", "MiCUSaL, random start", "KMeans", "kspaces"):
        yield fitted(name, n, m)


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of log time over log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-9)), 1)[0])


def peers_growth(quick: bool = False) -> Iterator[Row]:
    """Measure time, accuracy and memory of fits as N and m grow, and the exponents of growth."""
    n_grid = [500, 1000] if quick else [1000, 2000, 5000, 20_000, 100_000]
    m_grid = [20, 40] if quick else [50, 100, 200, 400, 800]
    for name, peer in PEERS.items():
        for axis, shapes in (
            ("N", [(n, m_grid[1] if quick else 100) for n in n_grid if n <= peer.max_samples]),
            ("m", [(n_grid[0] if quick else min(5000, peer.max_samples), m) for m in m_grid]),
        ):
            rows = [fitted(name, n, m) for n, m in shapes]
            yield from rows
            done = [row for row in rows if "s" in row]
            if len(done) > 1:
                sizes, seconds = [row[axis] for row in done], [row["s"] for row in done]
                yield {
                    "row": f"{name}: growth of a fit in {axis}",
                    "method": name,
                    "axis": axis,
                    "exponent": exponent(sizes[-3:], seconds[-3:]),
                }


def iteration_growth() -> Iterator[Row]:
    """Fit the exponents of growth of one iteration, whatever the number of iterations of a fit."""
    names = ("MiCUSaL", "KMeans")
    for axis, shapes in (
        ("N", [(n, 100) for n in (10_000, 30_000, 100_000, 300_000)]),
        ("m", [(20_000, m) for m in (100, 200, 400, 800)]),
    ):
        times = [per_iteration(n, m, names) for n, m in shapes]
        sizes = [n if axis == "N" else m for n, m in shapes]
        for name in names:
            slope = exponent(sizes, [t[name] for t in times])
            yield {"row": f"{name}: growth of an iteration in {axis}", "exponent": slope}


def figure(rows: list[Row]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(10, 5.4), sharey=True, layout="constrained")
    for ax, axis in zip(axes, ("N", "m"), strict=True):
        for k, name in enumerate(PEERS):
            own = [row for row in rows if row.get("method") == name and "s" in row]
            common = [row for row in own if row["N"] <= PEERS[name].max_samples]
            common = [
                row for row in common if (row["m"] == 100 if axis == "N" else row["N"] == 5000)
            ]
            slopes = [
                row["exponent"] for row in rows
                if row.get("method") == name and row.get("axis") == axis
            ]  # fmt: skip
            if len(common) < 2 or not slopes:
                continue
            points = sorted({row[axis]: row["s"] for row in common}.items())
            style = "-" if "MiCUSaL" in name or "MCKUSaL" in name else "--"
            ax.loglog(
                *zip(*points, strict=True), style, marker="osd^v<>ph"[k], markersize=4,
                label=f"{name}: {axis}$^{{{slopes[0]:.1f}}}$",
            )  # fmt: skip
        ax.set_xlabel("samples N (m=100)" if axis == "N" else "features m (N=5000)")
        ax.legend(
            fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14)
        )
        if axis == "m":
            ticks = [50, 100, 200, 400, 800]
            ax.set_xticks(ticks, [str(tick) for tick in ticks])
            ax.set_xticks([], minor=True)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds of one fit, one thread")
    FIGURE.parent.mkdir(exist_ok=True)
    fig.savefig(FIGURE, dpi=130)


def format_row(row: Row) -> str:
    values = [f"{key} {value:.4g}" for key, value in row.items() if isinstance(value, float)]
    return f"{row['row']}: " + "; ".join(values + [row[key] for key in ("error",) if key in row])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--draw", action="store_true", help="draw the figure of the last run again")
    parser.add_argument("--output", type=Path, default=Path("build/peers.json"))
    options = parser.parse_args()
    if options.draw:
        figure(json.loads(options.output.read_text(encoding="utf-8"))["rows"])
        return
    about, rows = machine(), []
    print("; ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    sources = [peers_growth(options.quick)]
    if not options.quick:
        sources = [peers_iteration(), iteration_growth(), *sources]
    for source in sources:
        for row in source:
            rows.append(row)
            print(format_row(row), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(
        json.dumps({"machine": about, "rows": rows}, indent=2), encoding="utf-8"
    )
    if not options.quick:
        figure(rows)
    assert all(math.isfinite(row.get("s", 0.0)) for row in rows)


if __name__ == "__main__":
    main()
