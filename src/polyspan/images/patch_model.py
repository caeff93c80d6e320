"""A fitted mixture of patches, in the units in which a picture is worked on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import to_numpy
from polyspan.images.presets import patch_side
from polyspan.mixture import SubspaceMixture
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture.prediction import gaussians_of


@dataclass(frozen=True)
class PatchModel:
    """What is needed of a mixture, as NumPy arrays."""

    side: int
    """Side of its square patches."""
    mean: np.ndarray
    """(side²,): means of the Gaussians are relative to it."""
    gaussians: Gaussians

    @classmethod
    def of(cls, model: SubspaceMixture, unit: float = 1.0) -> PatchModel:
        """Return the mixture of patches that were divided by `unit`.

        Very large and very small pictures are worked on in other units than they are given in, and
        a model of the user is in those of the picture.
        """
        side = patch_side(model)
        found = gaussians_of(model)
        # Divided twice: the square of a unit may leave the range of numbers.
        return cls(
            side,
            to_numpy(model.mean_) / unit,
            Gaussians(
                to_numpy(found.log_weights),
                to_numpy(found.means) / unit,
                to_numpy(found.bases),
                to_numpy(found.variances) / unit / unit,
                to_numpy(found.noise) / unit / unit,
            ),
        )
