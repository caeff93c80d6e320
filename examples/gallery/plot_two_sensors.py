"""
Samples of a good and a bad sensor
==================================

Half of the samples are ten times as noisy as the others. Weights 1/σ² make the best of both halves
with :class:`~polyspan.MiCUSaL`.
"""

# %%
# The paper's five subspaces. Every second sample comes from the bad sensor.
import matplotlib.pyplot as plt
import numpy as np

from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import average_subspace_distance

data = make_union_of_subspaces(noise=0.0, random_state=0)
n, m = data.X.shape
sigma = np.where(np.arange(n) % 2, 0.5, 0.05)
noise = np.random.default_rng(0).standard_normal((n, m)) / np.sqrt(m)
X = data.X + sigma[:, None] * noise

# %%
# Fit the good half alone, all samples, and all samples with weights. Half of the samples weigh
# little then, so that ``lam`` is larger than its default 4.
model = MiCUSaL(5, 13, lam=16.0, random_state=0)
weights = (0.05 / sigma) ** 2
errors = {}
for name, rows, own in (
    ("good half alone", sigma < 0.1, None),
    ("all, no weights", slice(None), None),
    ("all, weights 1/σ²", slice(None), weights),
):
    fitted = model.fit(X[rows], sample_weight=own)
    errors[name] = average_subspace_distance(fitted.bases_, data.bases)

# %%
# The distance of the learned from the true subspaces: 0 is perfect.
figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(list(errors), list(errors.values()))
ax.bar_label(bars, fmt="%.3f", padding=3)
ax.set_xlabel("mean distance to the true subspaces")
ax.margins(x=0.15)
plt.show()
