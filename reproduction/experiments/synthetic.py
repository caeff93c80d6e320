"""Trials on the paper's synthetic data, for Tables I to III and Fig. 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.datasets import UnionOfSubspaces, make_union_of_subspaces, mask_entries
from polyspan.metrics import average_subspace_distance, clustering_error
from reproduction.experiments.systems import PCA, build, fit, fit_starts
from reproduction.experiments.tools import denoising_errors, with_noise
from reproduction.run.records import Params
from reproduction.run.runner import trial_seed

#: σ_te² of the test samples.
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
TRAINING_NOISE = 0.1
STARTS = 8
SIZES = {
    "full": {"sizes": (150, 100, 150, 100, 150), "n_features": 180, "subspace_dim": 13},
    "small": {"sizes": (30, 20, 30, 20, 30), "n_features": 40, "subspace_dim": 4},
}
TEXT = (
    "Five subspaces of dimension 13 in 180 dimensions, each near the one before (t_s=.04), 650 "
    "samples of norm 1 with noise of power .1."
)


def starts_at(scale: str) -> int:
    """Return the starts of the paper's algorithms: 2 at scale "smoke", which measures nothing."""
    return 2 if scale == "smoke" else STARTS


def draw(params: Params) -> tuple[UnionOfSubspaces, np.ndarray]:
    """Return data without noise and their noisy training samples.

    The paper draws ten data sets and 20 noises for each. Here every draw has a data set of its own:
    the same expectation, and intervals that cover other data too.
    """
    index, size = int(params["draw"]), SIZES[params["size"]]
    data = make_union_of_subspaces(
        **size,  # type: ignore[arg-type]
        spread=params.get("spread", 0.04),
        noise=0.0,
        random_state=trial_seed("synthetic", index),
    )
    return data, with_noise(data.X_clean, TRAINING_NOISE, "synthetic", index, 0)


def run(params: Params, source: Any) -> dict[str, Any]:
    """Learn by one method from one draw; measure d_avg, labels and denoising."""
    data, complete = draw(params)
    seed = trial_seed("starts", params["draw"]) % 2**31
    method, options = params["method"], dict(params.get("options", {}))
    n_subspaces, s = len(data.bases), data.bases.shape[2]
    tests = (data.X_test_clean, LEVELS, "synthetic", params["draw"])
    Y = complete
    if params.get("missing"):
        mask = trial_seed("mask", params["draw"])
        Y = mask_entries(complete, params["missing"], random_state=mask)
    if method == "PCA":
        components = PCA(Y)
        s = components.best_dimension(Y, data.X_clean)
        return {"errors": denoising_errors(components.projection(s), *tests), "dimension": s}
    if method == "GROUSE":
        s = PCA(complete).best_dimension(complete, data.X_clean)
        model = fit(build(method, 1, s, seed, **options), Y)
        return {"errors": denoising_errors(model, *tests), "dimension": s}
    model = build(method, n_subspaces, s, seed, **options)
    if not params.get("starts"):
        return _measured([fit(model, Y)], data, tests)
    return _measured(fit_starts(model, Y, int(params["starts"]), seed), data, tests)


def _measured(runs: list[Any], data: UnionOfSubspaces, tests: tuple[Any, ...]) -> dict[str, Any]:
    """Return the results of the best start, and how much the starts differ."""
    best = runs[0]
    results: dict[str, Any] = {
        "d_avg": average_subspace_distance(best.bases_, data.bases),
        "errors": denoising_errors(best, *tests),
    }
    if len(getattr(best, "labels_", ())) == len(data.labels) and (best.labels_ >= 0).all():
        results["wrong"] = clustering_error(data.labels, best.labels_)
    if len(runs) > 1:
        errors = [float(np.mean(denoising_errors(run, *tests))) for run in runs]
        results["spread over starts"] = float(np.std(errors, ddof=1))
        results["lowest objective denoises best"] = bool(errors[0] <= min(errors) + 1e-12)
        results["starts d_avg"] = [average_subspace_distance(r.bases_, data.bases) for r in runs]
    return results
