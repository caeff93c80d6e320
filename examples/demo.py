"""The first example to run: what polyspan is for, in a few lines and a picture.

`make demo`, or `python examples/demo.py --output demo.png`. It needs Matplotlib, pandas and Pillow:
`pip install "polyspan[cli,plot]"`. Nothing is downloaded. It takes less than a minute, and with
`--quick`, which takes less data, some seconds.
"""

# %%
# The idea first, then three jobs. Each job is done by polyspan and by tools that people use today,
# on the same data. Every function below prints what it does and one line of results.
from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    print("Loading packages, which takes some seconds the first time ...", flush=True)

try:
    import matplotlib.pyplot as plt
    import pandas as pd
    from matplotlib.cbook import get_sample_data
except ModuleNotFoundError as error:
    raise SystemExit(f'{error}: pip install "polyspan[cli,plot]"') from error
import numpy as np
from scipy.ndimage import uniform_filter
from scipy.optimize import linear_sum_assignment
from scipy.spatial.transform import Rotation
from sklearn import datasets
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.metrics import confusion_matrix
from threadpoolctl import threadpool_limits

from demo_figure import Errors, draw  # the file beside this one
from polyspan import MiCUSaL, SubspaceClustering, SubspaceImputer
from polyspan.baselines import KSubspaces
from polyspan.datasets import make_union_of_subspaces
from polyspan.images import denoise_image
from polyspan.metrics import average_subspace_distance, clustering_error

FULL = {"draws": 3, "films": 10, "side": 256, "tables": ("iris", "wine", "diabetes"), "masks": 2}
QUICK = {"draws": 1, "films": 2, "side": 96, "tables": ("iris", "wine"), "masks": 1}


def say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


def ticking(items: Iterable[Any]) -> Iterator[Any]:
    """Print a dot after each item, so that nobody waits in silence."""
    print("  ", end="", flush=True)
    for item in items:
        yield item
        print(".", end="", flush=True)
    print()


# %%
# The idea. The rows are made near five subspaces, so the right labels are known. All methods get
# the number of subspaces and their dimension.
def learn_close_subspaces(n_draws: int) -> tuple[Errors, Errors]:
    """Return the part of wrong labels, and the distance to the true subspaces."""
    printed: dict[str, Any] = {"init": "random", "solver": "exact", "n_init": 8}
    methods = {
        "K-subspaces, 8 random starts": KSubspaces(5, 13, random_state=0, **printed),
        "the paper's algorithm, 8 random starts": MiCUSaL(5, 13, random_state=0, **printed),
        "K-subspaces, started like polyspan": KSubspaces(5, 13, random_state=0),
        "polyspan": MiCUSaL(5, 13, random_state=0),
    }
    say(
        "",
        "The idea: rows of a table often lie near a few planes, or the same with more",
        "dimensions (subspaces). Where these are close, it helps to learn them together.",
        f"650 made rows near 5 subspaces of 13 dimensions. Data sets: {n_draws}. Mean:",
    )
    wrong = dict.fromkeys(methods, 0.0)
    distance = dict(wrong)
    for seed in ticking(range(n_draws)):
        data = make_union_of_subspaces(random_state=seed)
        for name, model in methods.items():
            model.fit(data.X)
            wrong[name] += clustering_error(data.labels, model.labels_) / n_draws
            distance[name] += average_subspace_distance(model.bases_, data.bases) / n_draws
    say(f"  {'':40s}{'wrong labels':>12s}{'distance to the truth':>24s}")
    for name in methods:
        say(f"  {name:40s}{wrong[name]:12.1%}{distance[name]:24.3f}")
    say(
        "  Distance: 0 means that the subspaces were found exactly, 1 that they are at",
        "  right angles to the true ones. polyspan compares several starts. Here one wins",
        "  that begins with soft labels and hardens them slowly: this makes labels right.",
        "  Learning together lowers the distance.",
    )
    return wrong, distance


# %%
# Cluster. A camera sees points on three bodies that turn and drift. The tracks of the points of one
# body lie near one subspace. The films are the first of those in docs/evidence/clustering.md.
FIRST_FILM = 100


def film_bodies(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the tracks of 40 points on each of three bodies, and the true bodies."""
    rng = np.random.default_rng(seed)
    times = np.linspace(0, 1, 30)[:, None]
    tracks = []
    for start in ((-0.6, 0, 0), (0.6, 0, 0), (0, 0.8, 0)):
        points = rng.uniform(-1, 1, (40, 3))
        turn = Rotation.from_rotvec(times * rng.normal(0, 1.5, 3)).as_matrix()
        drift = times * rng.normal(0, 1, 3) + times**2 * rng.normal(0, 1, 3)
        moved = np.einsum("tij,nj->nti", turn, points) + drift + start
        tracks.append(moved[:, :, :2])  # the camera is far away: it keeps two coordinates
    noisy = np.concatenate(tracks) + 0.003 * rng.standard_normal((120, 30, 2))
    return noisy, np.repeat([0, 1, 2], 40)


def cluster_tracks(n_films: int) -> tuple[Errors, np.ndarray, dict[str, np.ndarray]]:
    """Return the part of points in a wrong cluster; tracks and labels of the first film."""
    methods = {
        "k-means": KMeans(3, n_init=10, random_state=0),
        "spectral clustering": SpectralClustering(
            3, affinity="nearest_neighbors", n_neighbors=10, random_state=0
        ),
        "polyspan": SubspaceClustering(3, random_state=0),
    }
    say(
        "",
        f"Cluster: which of 120 points move together? Three bodies. Made films: {n_films}.",
        "The number of bodies is given. Points in a wrong cluster, mean of all films:",
    )
    errors = dict.fromkeys(methods, 0.0)
    first_tracks, first_bodies = film_bodies(FIRST_FILM)
    shown = {"truth": first_bodies}
    for seed in ticking(range(FIRST_FILM, FIRST_FILM + n_films)):
        tracks, bodies = film_bodies(seed)
        for name, model in methods.items():
            labels = model.fit_predict(tracks.reshape(120, 60))
            errors[name] += clustering_error(bodies, labels) / n_films
            if seed == FIRST_FILM:  # each cluster is named after the body that suits it best
                shown[name] = linear_sum_assignment(-confusion_matrix(labels, bodies))[1][labels]
    say("  " + "   ".join(f"{name} {error:.1%}" for name, error in errors.items()))
    return errors, first_tracks, shown


# %%
# Clean a photograph. Nothing was learned from this portrait of Grace Hopper (US Navy, in the public
# domain), which comes with Matplotlib.
def non_local_means(noisy: np.ndarray, sigma: float, strength: float) -> np.ndarray:
    """Return means over pixels nearby, weighted by how alike their surroundings are."""
    shifts = np.lib.stride_tricks.sliding_window_view(np.pad(noisy, 6, "reflect"), noisy.shape)
    total, weights = np.zeros_like(noisy), np.zeros_like(noisy)
    for shifted in shifts.reshape(-1, *noisy.shape):
        difference = uniform_filter((noisy - shifted) ** 2, 5) - 2 * sigma**2
        weight = np.exp(-np.maximum(difference, 0) / (strength * sigma) ** 2)
        total += weight * shifted
        weights += weight
    return total / weights


def clean_photo(side: int) -> tuple[Errors, dict[str, np.ndarray]]:
    """Return the typical error of a pixel in levels of 255, and the pictures."""
    with get_sample_data("grace_hopper.jpg") as file:
        photo = plt.imread(file, format="jpg")[70:, 130:][:side, :side].mean(axis=2) / 255
    noisy = photo + 25 / 255 * np.random.default_rng(0).standard_normal(photo.shape)

    def error(picture: np.ndarray) -> float:
        return float(255 * np.sqrt(np.mean((picture.clip(0, 1) - photo) ** 2)))

    say(
        "",
        "Clean a photograph: noise of 25 levels (of 255) is added. Non-local means gets",
        "the true strength of the noise, and the best of 4 settings. polyspan measures",
        "the strength itself. Typical error of a pixel, in levels:",
    )
    tried = [non_local_means(noisy, 25 / 255, h) for h in ticking((0.5, 0.7, 0.9, 1.1))]
    say("  (the first call of polyspan compiles its loops, which takes some seconds)")
    pictures = {
        "with noise": noisy,
        "non-local means": min(tried, key=error),
        "polyspan": denoise_image(noisy),
    }
    errors = {name: error(picture) for name, picture in pictures.items()}
    say("  " + "   ".join(f"{name} {value:.1f}" for name, value in errors.items()))
    return errors, pictures


# %%
# Fill a table. These three come with scikit-learn. Each has columns of numbers and one category.
def mixed_table(name: str) -> tuple[pd.DataFrame, str]:
    """Return a table, and the name of its column of categories."""
    if name == "diabetes":
        table = datasets.load_diabetes(as_frame=True, scaled=False).frame
        return table.assign(sex=table["sex"].map({1: "one", 2: "two"})), "sex"
    loaded = getattr(datasets, f"load_{name}")(as_frame=True)
    return loaded.data.assign(kind=loaded.target_names[loaded.target]), "kind"


def fill_as_numbers(imputer: Any, table: pd.DataFrame, category: str) -> pd.DataFrame:
    """Fill by an imputer of numbers: a column of 0 and 1 stands for each category but one.

    The most frequent has none, with which these imputers are more often right.
    """
    numbers, (first, *rest) = table.drop(columns=category), table[category].value_counts().index
    scaled = (numbers - numbers.mean()) / numbers.std()
    for value in rest:
        scaled[value] = (table[category] == value).where(table[category].notna()).astype(float)
    filled = pd.DataFrame(imputer.fit_transform(scaled), columns=scaled.columns)
    filled[first] = 1 - filled[rest].sum(axis=1)
    result = filled[numbers.columns] * numbers.std() + numbers.mean()
    return result.assign(**{category: filled[[first, *rest]].idxmax(axis=1)})


def fill_tables(names: tuple[str, ...], masks: int) -> tuple[Errors, Errors]:
    """Return the error of hidden numbers, in standard deviations, and of hidden categories."""
    methods = {
        "KNNImputer": KNNImputer(),
        "IterativeImputer": IterativeImputer(random_state=0),
        "polyspan": SubspaceImputer(random_state=0),
    }
    say(
        "",
        f"Fill a table of numbers and a category: {', '.join(names)} (scikit-learn).",
        "30% of the cells are hidden. Typical error of the hidden numbers (the mean of",
        "the column has 1), and hidden categories that are filled wrong:",
    )
    off = dict.fromkeys(methods, 0.0)
    wrong = dict(off)
    cases = [(name, seed) for name in names for seed in range(masks)]
    for name, seed in ticking(cases):
        truth, category = mixed_table(name)
        table = truth.mask(np.random.default_rng(seed).random(truth.shape) < 0.3)
        numbers = truth.drop(columns=category)
        for method, imputer in methods.items():
            if method == "polyspan":
                filled = imputer.fit_transform(table)
            else:
                filled = fill_as_numbers(imputer, table, category)
            missed = (filled[category] != truth[category])[table[category].isna()]
            wrong[method] += missed.mean() / len(cases)
            errors = (filled[numbers.columns] - numbers) / numbers.std()
            squares = errors.to_numpy(dtype=float)[table[numbers.columns].isna()] ** 2
            off[method] += float(np.sqrt(squares.mean())) / len(cases)
    say(
        "  " + "   ".join(f"{name} {off[name]:.2f}, {wrong[name]:.0%}" for name in methods),
        "  polyspan was tuned on these tables, among others. docs/evidence/tables.md has",
        "  thirty tables that it was not tuned on.",
    )
    return off, wrong


# %%
# All parts, and a figure of them.
def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/demo.png"))
    parser.add_argument("--quick", action="store_true", help="less data, in some seconds")
    options = parser.parse_args(arguments)
    sizes: dict[str, Any] = QUICK if options.quick else FULL
    begin = time.perf_counter()
    # Advice about settings is left out. Products of small matrices are fastest on one thread.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        idea = learn_close_subspaces(sizes["draws"])
        films = cluster_tracks(sizes["films"])
        photos = clean_photo(sizes["side"])
        filled = fill_tables(sizes["tables"], sizes["masks"])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    draw(options.output, idea, films, photos, filled)
    say(
        "",
        f"Figure: {options.output} ({time.perf_counter() - begin:.0f} seconds in all)",
        "",
        "Where to go next:",
        "  README.md                the first ten lines of code",
        "  docs/guide/cluster.md    clusters; denoise.md and impute.md: the other jobs",
        "  docs/evidence/index.md   all measurements, and where other tools are better",
        "  make docs                the site, with tutorials and a gallery",
    )


if __name__ == "__main__":
    main()
