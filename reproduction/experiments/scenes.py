"""Trials on patches of a photograph, for Fig. 4, Fig. 5 and half of Table III."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyspan.datasets import mask_entries
from polyspan.metrics import estimate_dimension
from reproduction.experiments.source import REAL, Source
from reproduction.experiments.systems import PCA, build, fit, fit_starts
from reproduction.experiments.tools import denoising_errors, with_noise
from reproduction.run.records import Params
from reproduction.run.runner import trial_seed

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
NOISES = (0.02, 0.05)
L, S = 5, 12
STARTS = 10


def noisy_scene(params: Params, source: Source, needs: str) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy training patches and clean test patches."""
    _, train, test = source.scene(params.get("data", REAL), needs)
    if params["size"] == "small":
        train, test = train[:120, ::6], test[:120, ::6]
        train, test = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (train, test))
    return with_noise(train, params["noise"], needs, params["noise"], params["draw"]), test


def scene_run(params: Params, source: Source, needs: str) -> dict[str, Any]:
    """Learn by one method from one draw of noise and denoise the other half of the picture."""
    Y, test = noisy_scene(params, source, needs)
    seed = trial_seed("starts", needs, params["draw"]) % 2**31
    method, options = params["method"], dict(params.get("options", {}))
    s = 4 if params["size"] == "small" else S

    def tests(model: Any) -> list[float]:
        return denoising_errors(model, test, LEVELS, needs, params["draw"])

    if params.get("missing"):
        mask = trial_seed("mask", needs, params["draw"])
        Y = mask_entries(Y, params["missing"], random_state=mask)
    if method == "PCA":
        return _pca(Y, params, tests)
    if method.startswith("own L"):
        return {"L": _own_number(method, Y, s, seed, options)}
    if method == "GROUSE":
        model = fit(build(method, 1, 10 if s == S else s, seed, **options), Y)
        return {"errors": tests(model)}
    model = build(method, L, s, seed, **options)
    if method == "aMiCUSaL":
        if params["size"] == "small":
            model.set_params(max_subspaces=4, max_dim=6, n_init=2)
        fit(model, Y)
        errors = tests(model)
        return {"errors": errors, "L": model.n_subspaces_, "s": model.subspace_dim_}
    if not params.get("starts"):
        return {"errors": tests(fit(model, Y))}
    runs = fit_starts(model, Y, int(params["starts"]), seed)
    found = [tests(run) for run in runs]
    spread = float(np.std([np.mean(e) for e in found], ddof=1)) if len(runs) > 1 else None
    return {"errors": found[0], "spread over starts": spread}


def _pca(Y: np.ndarray, params: Params, tests: Callable[[Any], list[float]]) -> dict[str, Any]:
    """Denoise by PCA, plain and with shrinkage, and estimate the dimension."""
    components = PCA(Y)
    most = min(80, len(components.variances))
    projected = (Y - components.mean) @ components.rows[: min(20, most)].T
    estimated = estimate_dimension(projected, k1=6, k2=10)
    s = int(params["dimension"])
    return {
        "errors": tests(components.projection(min(s, most))),
        "estimated dimension": float(estimated),
        "shrunk": tests(lambda level: components.shrunk(most, params["noise"], level)),
    }


def _own_number(method: str, Y: np.ndarray, s: int, seed: int, options: dict[str, Any]) -> int:
    """Return how many subspaces a method finds by itself."""
    model = build(method.removeprefix("own L of "), L, s, seed, **options)
    return int(fit(model.set_params(n_subspaces=None), Y).n_subspaces_)
