"""Area under the curve of outlier detectors, with complete data and with holes.

    python benchmarks/outliers.py all [--seeds 1 2 3]       ten digits and nine fresh tables
    python benchmarks/outliers.py tables chose|fresh [--protocol contaminated --contamination .05]
    python benchmarks/outliers.py digits 0 1 2 ...

Settings of `SubspaceOutlierDetector` were chosen with seed 0, on the tables "chose" and on digits
with 1, 3 or 8 out. Peers get the columns standardised (pixels as they are), several settings each,
and `KNNImputer` before them where entries are missing. A peer is one setting for all data.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.impute import KNNImputer
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor

from outlier_data import TABLES, Case, Split, digits, splits
from polyspan import SubspaceOutlierDetector

#: Numbers of components of Gaussian mixtures, and ridges relative to the mean variance. Without a
#: ridge mixtures were worse at every size on digits with 1, 3 or 8 out, so only tables have 1e-6.
SIZES, RIDGES, LEAST_RIDGE = (1, 2, 4, 8, 16), (0.01, 0.1), 1e-6
NEIGHBOURS = (10, 20)


def forest(split: Split) -> Iterator[tuple[str, np.ndarray]]:
    yield "forest", IsolationForest(random_state=0).fit(split.train).score_samples(split.test)


def neighbours(split: Split) -> Iterator[tuple[str, np.ndarray]]:
    for k in NEIGHBOURS:
        model = LocalOutlierFactor(n_neighbors=k, novelty=not split.same).fit(split.train)
        same = split.same
        yield (
            f"LOF {k}",
            model.negative_outlier_factor_ if same else model.score_samples(split.test),
        )


def gaussians(split: Split) -> Iterator[tuple[str, np.ndarray]]:
    """Yield mixtures of every size, and of the size that BIC chooses."""
    power = float(split.train.var(axis=0).mean())
    for ridge in RIDGES if split.train.shape[1] > 40 else (LEAST_RIDGE, *RIDGES):
        found = {}
        for n in SIZES:
            model = GaussianMixture(n, reg_covar=ridge * power, random_state=0).fit(split.train)
            found[model.bic(split.train)] = model.score_samples(split.test)
            yield f"GMM {n}, {ridge:g}", found[model.bic(split.train)]
        yield f"GMM BIC, {ridge:g}", found[min(found)]


def residual(split: Split) -> Iterator[tuple[str, np.ndarray]]:
    model = PCA(0.95, svd_solver="full").fit(split.train)
    rest = split.test - model.inverse_transform(model.transform(split.test))
    yield "PCA", -(rest**2).sum(axis=1)


def filled(split: Split) -> Split:
    """Return the split with holes filled by `KNNImputer`."""
    imputer = KNNImputer().fit(split.train)
    train = imputer.transform(split.train)
    test = train if split.same else imputer.transform(split.test)
    return Split(train, test, split.truth, split.same)


def measure(split: Split) -> dict[str, float]:
    """Return the areas of our detector and of all peers."""
    ours = SubspaceOutlierDetector().fit(split.train).score_samples(split.test)
    found = {"ours": float(roc_auc_score(split.truth, -ours))}
    if np.isnan(split.train).any():
        split = filled(split)
    for peer in (forest, neighbours, gaussians, residual):
        for name, scores in peer(split):
            found[name] = float(roc_auc_score(split.truth, -scores))
    return found


def areas_of(cases: list[Case], given: argparse.Namespace, holes: bool) -> dict[str, float]:
    """Return the mean areas over cases and seeds."""
    areas = [
        measure(split)
        for case in cases
        for seed in given.seeds
        for kind, split in splits(case, seed, holes=holes, contamination=given.contamination)
        if kind == given.protocol
    ]
    return {key: float(np.mean([a[key] for a in areas])) for key in areas[0]}


def report(groups: dict[str, list[Case]], given: argparse.Namespace, holes: bool) -> dict:
    """Print one line for each setting, with its areas for each table, and return the means."""
    rows = {name: areas_of(cases, given, holes) for name, cases in groups.items()}
    keys = next(iter(rows.values()))
    means = {key: float(np.mean([row[key] for row in rows.values()])) for key in keys}
    print(f"\n{given.protocol}, seeds {given.seeds}, {'20 % missing' if holes else 'complete'}")
    for key in sorted(means, key=lambda key: -means[key]):
        each = "  ".join(f"{name} {row[key]:.3f}" for name, row in rows.items())
        print(f"{key:14} mean {means[key]:.3f}  {each}", flush=True)
    return means


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["all", "tables", "digits"])
    parser.add_argument("which", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--protocol", default="novelty", choices=["novelty", "contaminated"])
    parser.add_argument("--contamination", type=float, default=0.02)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    flags = given.which or ["fresh"]
    tables = {n: make() for n, (flag, make) in TABLES.items() if flag in flags}
    out = map(int, given.which if given.what == "digits" else [])
    pixels = {case.out: [case] for case in digits(*out)}
    for holes in (False, True):
        kinds = {"all": [pixels, tables], "tables": [tables], "digits": [pixels]}[given.what]
        means = [report(groups, given, holes) for groups in kinds]
        if len(means) == 2:
            print("\nmean of digits and tables, of the settings that both have")
            both = {key: (means[0][key] + means[1][key]) / 2 for key in means[0]}
            for key in sorted(both, key=lambda key: -both[key]):
                print(f"{key:14} {both[key]:.3f}  ({means[0][key]:.3f} {means[1][key]:.3f})")


if __name__ == "__main__":
    main()
