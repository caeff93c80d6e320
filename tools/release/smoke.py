"""Use an installed polyspan for its three main jobs; ends with an error where one fails.

It runs in an environment that has polyspan and what it needs, and nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import polyspan
from polyspan import SubspaceClustering, SubspaceImputer
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.images import denoise_image
from polyspan.metrics import clustering_error


def rms(difference: np.ndarray) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(difference**2)))


def main() -> None:
    """Cluster, impute and denoise small arrays; print the version."""
    here = Path(polyspan.__file__).resolve()
    assert here.is_relative_to(Path(sys.prefix).resolve()), f"another polyspan: {here}"

    data = make_union_of_subspaces(
        (50, 50), n_features=20, subspace_dim=2, spread=0.6, noise=0.02, random_state=0
    )
    model = SubspaceClustering(2, random_state=0).fit(data.X)
    wrong = clustering_error(data.labels, model.labels_)
    assert wrong < 0.05, f"cluster: {wrong:.1%} wrong labels"

    holes = mask_entries(data.X, 0.2, random_state=0)
    missing = np.isnan(holes)
    filled = SubspaceImputer(random_state=0).fit_transform(holes)
    means = np.broadcast_to(np.nanmean(holes, axis=0), holes.shape)
    ratio = rms((filled - data.X)[missing]) / rms((means - data.X)[missing])
    assert ratio < 0.7, f"impute: error {ratio:.2f} of that of the columns' means"

    rows, columns = np.mgrid[:48, :48] / 48
    picture = 0.5 + 0.3 * np.sin(6 * rows) * np.cos(4 * columns)
    noisy = picture + 0.1 * np.random.default_rng(0).standard_normal(picture.shape)
    error = rms(denoise_image(noisy) - picture)
    assert error < 0.05, f"denoise: error {error:.3f} of 0.1"
    print(polyspan.__version__)


if __name__ == "__main__":
    main()
