"""Inpainting: subspaces learned from the picture fill the missing pixels of its patches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan._sklearn import check_parameters
from polyspan.images.canvas import Canvas
from polyspan.images.inpaint_blend import blend_weights
from polyspan.images.inpaint_channels import guess_from_other_channels
from polyspan.images.inpaint_groups import Round, fill_groups
from polyspan.images.inpaint_mask import check_mask, keep_observed
from polyspan.images.inpaint_mixture import expected_plane, learned_mixture
from polyspan.images.interpolation import interpolate
from polyspan.images.patch_model import PatchModel
from polyspan.images.planes import Planes, as_pixels, without_offset
from polyspan.images.presets import (
    Preset,
    check_picture_size,
    check_settings,
    n_threads,
    patch_side,
)
from polyspan.images.units import check_integers
from polyspan.mixture import SubspaceMixture
from polyspan.progress import progress_bar

#: What the groups leave out falls to this, in levels of 255, from one of the others: after smooth
#: interpolation, which has lost more, and after a mixture.
LAST_NOISE, AFTER_SMOOTH, AFTER_MIXTURE = 4.0, 20.0, 12.0
#: Side of the patches of a mixture.
PATCH = 8
_MIXTURE = Preset(PATCH, 2, 10, 20, 5000, 50.0, anneal_steps=8, max_iter=8, max_iter_holes=4)


@dataclass(frozen=True)
class Method:
    """Settings of a preset."""

    # Patches of different sizes make different mistakes, and each round mends those of the last:
    # .14 dB better than patches of one size.
    sides: tuple[int, ...] = (10, 8, 10, 6, 10, 6)
    """Sides of the patches, for each round of groups."""
    steps: tuple[int, ...] = (4, 4, 4, 4, 3, 2)
    """Pixels from one reference patch to the next."""
    n_similar: int = 40
    radius: int = 12
    mixture: Preset | None = None
    """The mixture whose expectation the rounds begin with; None: smooth interpolation."""

    def rounds(self, first: float) -> tuple[Round, ...]:
        """Return the rounds of groups, from a noise in levels of 255 on."""
        return tuple(
            Round(float(sigma), step, self.n_similar, side, self.radius)
            for sigma, step, side in zip(
                np.geomspace(first, LAST_NOISE, len(self.sides)),
                self.steps,
                self.sides,
                strict=True,
            )
        )


PRESETS = {
    "fast": Method((10, 8, 6), (5, 4, 3)),
    "balanced": Method(mixture=_MIXTURE),
    "best": Method(steps=(3, 3, 3, 2, 2, 2), n_similar=60, radius=18, mixture=_MIXTURE),
}


def inpaint_image(
    image: Any,
    mask: Any,
    preset: str = "balanced",
    channel_axis: int | None = None,
    *,
    model: SubspaceMixture | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Fill the missing pixels of a picture.

    First the missing pixels are filled by smooth interpolation. A mixture of low-rank Gaussians
    (`SubspaceMixture`) is learned from 8×8 patches of this picture, and then improved by EM on the
    observed pixels of the patches. Every missing pixel is replaced by its expectation given the
    observed pixels of a patch, averaged over all patches that cover it. Then groups of similar
    patches do the same in several rounds, each group with a Gaussian of its own. The result is a
    weighted mean of this and of the smooth interpolation. The weight is the one that fills best
    some observed pixels, which are hidden for that.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        The picture, of 16×16 pixels or more. Integers are divided by the largest value of their
        type, as in scikit-image, and refused where all of them would be black then, as levels of 8
        bits in int64; floats are not changed. Masked pixels are not used.
    mask : array-like of shape (height, width), or of the shape of the image
        True (or not 0) where a pixel is missing, in all channels or in one. Where channels have
        different masks, they are filled together: what one channel has tells about the others.
        No mixture is used then.
    preset : {"fast", "balanced", "best"}, default="balanced"
        "fast" has three rounds, and begins them with the smooth interpolation, without a mixture;
        "balanced" has six, and "best" larger groups and more of them.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture.
    model : SubspaceMixture, default=None
        A mixture fitted to patches of one plane, as `extract_patches` returns them. None: learned
        from the picture.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of patches to learn from, of the starts, and of the hidden pixels.
    n_jobs : int or None, default=None
        Threads for the groups; None: one, or what joblib's context says; -1: one per processor. The
        result does not depend on it.
    progress : bool, default=False
        Whether to show a progress bar; needs the package rich.

    Returns
    -------
    ndarray of the same shape
        The filled picture; float32 where the picture is float16 or float32, else float64. Observed
        pixels are not changed.

    Notes
    -----
    Memory beyond the picture: the result, and a few float32 copies.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.images import inpaint_image
    >>> image = np.sin(np.indices((40, 40)).sum(axis=0) / 3.0)
    >>> mask = np.random.default_rng(0).random(image.shape) < 0.3
    >>> filled = inpaint_image(np.where(mask, 0, image), mask)
    >>> bool(np.abs(filled - image).max() < 0.2)
    True
    """
    check_settings("inpaint_image", PRESETS, preset, channel_axis, model, random_state, progress)
    check_parameters("inpaint_image", n_jobs=(n_jobs, [Integral, None]))
    if n_jobs is not None:  # None: what joblib's context says
        n_jobs = n_threads(n_jobs)
    missing = check_mask(mask, image, channel_axis)
    # Axes of the mask in the order of the picture's, to leave holes out.
    holes = missing if channel_axis is None else np.moveaxis(missing, 0, channel_axis)
    pixels = as_pixels(image)
    holes = np.broadcast_to(holes[0] if channel_axis is None else holes, pixels.shape)
    check_integers(pixels, holes)
    moved, offset = (pixels, 0.0) if model is not None else without_offset(pixels, holes)
    picture = Planes.of(moved, channel_axis, missing)
    side = PATCH if model is None else patch_side(model)
    check_picture_size(missing.shape[1:], side, learned=model is None)
    rng = check_random_state(random_state)
    # Where channels have masks of their own, their brightness is not known: they are not mixed.
    mixing = picture.mixing if len(missing) > 1 else None
    planes = picture.planes if mixing is None else np.tensordot(mixing.T, picture.planes, axes=1)
    if missing.any():
        given = None if model is None else PatchModel.of(model, picture.scale)
        filler = Filler(PRESETS[preset], given, n_jobs, together=len(missing) > 1)
        with progress_bar(progress, filler.n_ticks(planes), "inpaint") as tick:
            planes = filler.blended(planes, missing, rng, tick)
    if mixing is not None:
        planes = np.tensordot(mixing, planes, axes=1)
    result = np.asarray(picture.to_image(planes)) + offset
    keep_observed(result, pixels, missing, channel_axis)
    return result


class Filler:
    """Fill planes by a mixture and by groups; it keeps the mixtures for the hidden pixels."""

    def __init__(
        self,
        method: Method,
        model: PatchModel | None,
        n_jobs: int | None,
        *,
        together: bool = False,
    ) -> None:
        # A model that is given is used by every preset. None fits channels that are filled
        # together: other channels tell more than the pixels around a hole.
        self._mixture = method.mixture or (None if model is None else _MIXTURE)
        if together:
            self._mixture = None
        self._rounds = method.rounds(AFTER_SMOOTH if self._mixture is None else AFTER_MIXTURE)
        self._model = model
        self._models: list[PatchModel] = []
        self._n_jobs = n_jobs

    def n_ticks(self, planes: np.ndarray) -> int:
        """Return the number of steps of a progress bar."""
        n_planes, height, _ = planes.shape
        steps = sum(one.n_bands(height) for one in self._rounds) + 1
        if self._mixture is not None:
            steps += n_planes * (self._canvas(planes[0]).n_bands + 1)
        return steps

    def blended(
        self,
        planes: np.ndarray,
        missing: np.ndarray,
        rng: np.random.RandomState,
        tick: Callable[[], None],
    ) -> np.ndarray:
        """Return the planes filled: a mean of smooth interpolation and of groups."""
        smooth = _smooth(planes, missing)
        if self._mixture is not None:
            self._learn(planes, smooth, missing, rng, tick)
        groups = self._by_groups(planes, smooth, missing, tick)

        def both(part: np.ndarray, holes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            start = _smooth(part, holes)
            return start, self._by_groups(part, start, holes)

        weights = blend_weights(planes, missing, both, rng)[:, None, None]
        tick()
        # In place, to save memory.
        groups -= smooth
        groups *= weights
        groups += smooth
        np.copyto(groups, planes, where=~missing)
        return groups

    def _canvas(self, plane: np.ndarray) -> Canvas:
        assert self._mixture is not None
        side = self._mixture.side if self._model is None else self._model.side
        return Canvas(plane, side, self._mixture.step)

    def _learn(
        self,
        planes: np.ndarray,
        smooth: np.ndarray,
        missing: np.ndarray,
        rng: np.random.RandomState,
        tick: Callable[[], None],
    ) -> None:
        for plane, guess, holes in _with_holes(planes, smooth, missing):
            model = self._model
            if model is None:
                assert self._mixture is not None
                incomplete = np.where(holes, np.float32(np.nan), plane)
                model = learned_mixture(guess, incomplete, self._mixture, rng)
            self._models.append(model)
            tick()

    def _by_groups(
        self,
        planes: np.ndarray,
        smooth: np.ndarray,
        missing: np.ndarray,
        tick: Callable[[], None] = lambda: None,
    ) -> np.ndarray:
        start = smooth
        if len(missing) > 1:
            start = guess_from_other_channels(planes, missing)
        elif self._mixture is not None:
            start = smooth.copy()
            for plane, out, holes, model in zip(
                planes, start, np.broadcast_to(missing, planes.shape), self._models, strict=True
            ):
                canvas = self._canvas(np.where(holes, np.float32(np.nan), plane))
                found = expected_plane(canvas, model, tick)
                out[:] = np.where(np.isnan(found) | ~holes, out, found)
        return fill_groups(start, missing, self._rounds, self._n_jobs, tick)


def _with_holes(
    planes: np.ndarray, smooth: np.ndarray, missing: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    return zip(planes, smooth, np.broadcast_to(missing, planes.shape), strict=True)


def _smooth(planes: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the planes with smooth interpolation in their missing pixels."""
    holes = np.broadcast_to(missing, planes.shape)
    return np.stack([interpolate(one, hole) for one, hole in zip(planes, holes, strict=True)])
