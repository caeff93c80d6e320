"""
Which points move together?
===========================

A camera sees points on three moving bodies. The tracks of one body lie near a subspace of four
dimensions, so :class:`~polyspan.SubspaceClustering` finds the bodies from the tracks alone.
"""

# %%
# Each body is a cloud of points that turns and drifts. The clouds overlap. The camera is far away
# (an affine one): it keeps two of three coordinates. A row of ``X`` is the track of a point.
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.transform import Rotation
from sklearn.cluster import KMeans
from sklearn.metrics import confusion_matrix

from polyspan import SubspaceClustering
from polyspan.metrics import clustering_error

rng = np.random.default_rng(3)
n_points, n_frames = 40, 30
time = np.linspace(0, 1, n_frames)[:, None]
tracks = []
for start in ((-0.6, 0, 0), (0.6, 0, 0), (0, 0.8, 0)):
    points = rng.uniform(-1, 1, (n_points, 3))
    turn = Rotation.from_rotvec(time * rng.normal(0, 1.5, 3)).as_matrix()
    drift = time * rng.normal(0, 1, 3) + time**2 * rng.normal(0, 1, 3)
    moved = np.einsum("tij,nj->nti", turn, points) + drift + start
    tracks.append(moved[:, :, :2])
tracks = np.concatenate(tracks) + 0.003 * rng.standard_normal((3 * n_points, n_frames, 2))
X = tracks.reshape(len(tracks), -1)
truth = np.repeat([0, 1, 2], n_points)

# %%
# The number of bodies is given.
found = {
    "k-means": KMeans(3, n_init=10, random_state=0).fit_predict(X),
    "SubspaceClustering": SubspaceClustering(3, random_state=0).fit_predict(X),
}

# %%
# The tracks, coloured by the body that suits the cluster best. A dot is where a track ends.
figure, axes = plt.subplots(1, 3, figsize=(9, 4.4), layout="constrained")
for ax, (name, labels) in zip(axes, {"truth": truth, **found}.items(), strict=True):
    body = linear_sum_assignment(-confusion_matrix(labels, truth))[1]
    for track, label in zip(tracks, body[labels], strict=True):
        ax.plot(*track.T, color=f"C{label}", lw=0.7, alpha=0.6)
        ax.plot(*track[-1], ".", color=f"C{label}", ms=6)
    wrong = "" if name == "truth" else f": {clustering_error(truth, labels):.0%} wrong"
    ax.set(title=name + wrong, xticks=[], yticks=[], aspect="equal")
plt.show()
