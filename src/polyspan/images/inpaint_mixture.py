"""A mixture of subspaces learned from a plane with holes, and what it expects in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyspan.images.canvas import Canvas
from polyspan.images.patch_model import PatchModel
from polyspan.images.presets import Preset, no_convergence_warnings
from polyspan.mixture.prediction import posterior_means


def learned_mixture(
    guess: np.ndarray, incomplete: np.ndarray, settings: Preset, rng: np.random.RandomState
) -> PatchModel:
    """Learn from a plane that was filled smoothly, then from the same with NaN in its holes."""
    seed = int(rng.randint(2**31 - 1))
    # Patches at the same places of the interpolated and of the incomplete picture.
    smooth, holed = (
        Canvas(plane, settings.side, 1).sample(settings.n_train, np.random.RandomState(seed))
        for plane in (guess, incomplete)
    )
    model = settings.model(len(holed), "shared", rng)
    with no_convergence_warnings():
        model.fit(smooth)
        usable = holed[~np.isnan(holed).all(axis=1)]
        # The number of patches must be at least the number of pixels of a patch.
        if len(usable) >= settings.side**2:
            model.set_params(warm_start=True, max_iter=settings.max_iter_holes).fit(usable)
    return PatchModel.of(model)


def expected_plane(
    canvas: Canvas, model: PatchModel, tick: Callable[[], None] = lambda: None
) -> np.ndarray:
    """Return the expectation of missing pixels; NaN where no incomplete patch is."""
    for top, patches in canvas.bands():
        # Complete patches get the weight 0.
        rows = np.flatnonzero(np.isnan(patches).any(axis=1))
        weights = np.zeros(len(patches), dtype=np.float32)
        if len(rows):
            patches, incomplete = patches.copy(), patches[rows]
            expected, _ = posterior_means(incomplete, model.mean, model.gaussians)
            patches[rows] = np.where(np.isnan(incomplete), expected, incomplete)
            weights[rows] = 1.0
        canvas.add(top, patches, weights)
        tick()
    return canvas.mean()
