"""
Clusters that are planes
========================

Points near three planes that all go through the origin. k-means looks for compact groups and cuts
across the planes. :class:`~polyspan.MiCUSaL` finds the planes.
"""

# %%
# Draw 150 points on each of three planes in space, and add a little noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from polyspan import MiCUSaL
from polyspan.metrics import clustering_error

rng = np.random.default_rng(0)
planes = [np.linalg.qr(rng.standard_normal((3, 2)))[0] for _ in range(3)]
X = np.concatenate([rng.standard_normal((150, 2)) @ plane.T for plane in planes])
X += 0.03 * rng.standard_normal(X.shape)
truth = np.repeat([0, 1, 2], 150)

# %%
# Cluster them twice. The planes go through the origin, so nothing is subtracted (``center=False``);
# they need not be close to each other (``lam`` is infinite).
model = MiCUSaL(3, 2, lam=float("inf"), center=False, n_init=5, random_state=0)
found = {
    "k-means": KMeans(3, n_init=10, random_state=0).fit_predict(X),
    "MiCUSaL": model.fit_predict(X),
}

# %%
# Colours are labels. The titles say how many labels are wrong.
figure = plt.figure(figsize=(9, 4.2), layout="constrained")
for k, (name, labels) in enumerate(found.items()):
    ax = figure.add_subplot(1, 2, k + 1, projection="3d")
    ax.scatter(*X.T, c=labels, cmap="viridis", s=8)
    ax.set_title(f"{name}: {clustering_error(truth, labels):.0%} wrong")
plt.show()
