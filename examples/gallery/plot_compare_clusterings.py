"""
Which method for which shape?
=============================

The clusterings of polyspan and of scikit-learn on the same five toy data sets.
:class:`~polyspan.MiCUSaL` and :class:`~polyspan.SubspaceMixture` find lines and planes,
:class:`~polyspan.SubspaceClustering` those through the origin, and :class:`~polyspan.MCKUSaL`
follows curves. For compact groups k-means is the right tool, and for lines in a plane a Gaussian
mixture often does as well.
"""

# %%
# Lines through the origin, lines elsewhere, a line and a plane, curves, and compact groups.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_moons
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

from polyspan import MCKUSaL, MiCUSaL, SubspaceClustering, SubspaceMixture
from polyspan.metrics import clustering_error

rng = np.random.default_rng(0)
n = 80


def near_line(angle, centre=(0.0, 0.0)):
    along = rng.uniform(-2, 2, (n, 1)) * [np.cos(angle), np.sin(angle)]
    return along + centre + 0.04 * rng.standard_normal((n, 2))


through = np.concatenate([near_line(angle) for angle in (0.3, 1.3, 2.3)])
elsewhere = np.concatenate(
    [near_line(0.2, (0, 1)), near_line(1.2, (1, 0)), near_line(2.4, (-0.5, -0.5))]
)
plane = rng.uniform(-1.5, 1.5, (n, 2)) @ [[1.0, 0.0, 0.3], [0.0, 1.0, 0.3]]
line = rng.uniform(-2, 2, (n, 1)) * [0.5, 0.3, 1.2]
three = np.repeat([0, 1, 2], n)
data = {
    "lines through\nthe origin": (through, three),
    "lines": (elsewhere, three),
    "a line and a\nplane in space": (
        np.concatenate([plane, line]) + 0.04 * rng.standard_normal((2 * n, 3)),
        three[: 2 * n],
    ),
    "curves": make_moons(2 * n, noise=0.05, random_state=0),
    "compact\ngroups": make_blobs(3 * n, random_state=8),
}


# %%
# Each method gets the number of clusters (except HDBSCAN, which finds it), and a model of subspaces
# gets their dimensions. With few features the mixture needs a cooler start than its default
# (``anneal_start``). Curves and compact groups are scaled to variance 1 first.
def methods(k, dims, affine):
    one = dims if len(set(dims)) > 1 else dims[0]
    return {
        "KMeans": KMeans(k, n_init=10, random_state=0),
        "GaussianMixture": GaussianMixture(k, n_init=5, random_state=0),
        "SpectralClustering": SpectralClustering(k, affinity="nearest_neighbors", random_state=0),
        "HDBSCAN": HDBSCAN(min_cluster_size=15, copy=True),
        "MiCUSaL": MiCUSaL(
            k, one, lam=np.inf, center=False, affine=affine, n_init=20, random_state=0
        ),
        "SubspaceMixture": SubspaceMixture(
            k,
            one,
            closeness=0,
            affine=affine,
            center=False,
            anneal_start=0.5,
            n_init=20,
            random_state=0,
        ),
        "SubspaceClustering": SubspaceClustering(k, random_state=0),
        "MCKUSaL": MCKUSaL(k, 4, gamma=1.0, random_state=0),
    }


found = {}
for row, (name, (X, truth)) in enumerate(data.items()):
    X = scale(X) if row > 2 else X
    k = len(set(truth))
    for method, model in methods(
        k, (2, 1) if row == 2 else (1,) * k, affine=row in (1, 3, 4)
    ).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some say that the data do not suit them
            found[name, method] = model.fit_predict(X)

# %%
# Colours are labels. The number is the part of the labels that is right.
columns = list(methods(2, (1, 1), False))
figure, axes = plt.subplots(len(data), len(columns), figsize=(12, 7.6), layout="constrained")
for i, (name, (X, truth)) in enumerate(data.items()):
    axes[i, 0].set_ylabel(name, fontsize=9)
    for j, method in enumerate(columns):
        ax, labels = axes[i, j], found[name, method]
        ax.scatter(X[:, 0], X[:, -1], c=labels, cmap="viridis", s=5)
        right = 1 - clustering_error(truth, labels)
        ax.text(
            0.97,
            0.03,
            f"{right:.0%}",
            transform=ax.transAxes,
            ha="right",
            va="bottom",
            fontsize=9,
            fontweight="bold" if right > 0.95 else "normal",
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5},
        )
        ax.set(xticks=[], yticks=[])
        if i == 0:
            ax.set_title(method, fontsize=10)
plt.show()
