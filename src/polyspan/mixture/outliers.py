"""The uniform component of a mixture, which takes samples that fit no subspace."""

from __future__ import annotations

from typing import Any

from polyspan.mixture._solve.gaussians import ExtendedGaussians, Gaussians

# Share of outliers that EM starts from, where it is learned.
FIRST_SHARE = 0.05


def with_outliers(gaussians: Gaussians, outliers: Any) -> Gaussians:
    """Return Gaussians beside a uniform component; True: its share is learned."""
    factors = gaussians.noise_factors if isinstance(gaussians, ExtendedGaussians) else None
    share = FIRST_SHARE if outliers is True else float(outliers)
    return ExtendedGaussians.of(gaussians, share, factors)
