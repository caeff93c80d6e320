"""
Two sensors of unknown noise
============================

:class:`~polyspan.SubspaceMixture` learns the noise of each group of samples by itself. It only has
to know which sample comes from which sensor.
"""

# %%
# Samples of two subspaces. Every third one comes from the new sensor, which is ten times better.
import matplotlib.pyplot as plt
import numpy as np

from polyspan import SubspaceMixture
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import average_subspace_distance

data = make_union_of_subspaces(
    (150, 150), n_features=30, subspace_dim=3, spread=0.5, noise=0.0, random_state=0
)
sensor = np.where(np.arange(300) % 3, "old", "new")
true_noise = {"new": 0.02, "old": 0.2}
rng = np.random.default_rng(0)
sigma = np.array([true_noise[name] for name in sensor])[:, None]
X = data.X + sigma * rng.standard_normal(data.X.shape)

# %%
# One noise for all, and one for each sensor. ``for_noise_group`` is the model for samples of one
# sensor: it shrinks noisy samples more.
model = SubspaceMixture(2, 3, affine=False, center=False, noise="shared", random_state=0)
results, clean = {}, {}
for name, groups in (("one noise", None), ("noise_groups", sensor)):
    model.fit(X, noise_groups=groups)
    results[name] = average_subspace_distance(model.bases_, data.bases)
    clean[name] = model.reconstruct(X)
levels = np.sqrt(model.noise_factors_ * model.noise_variances_[0])
for group in model.noise_groups_:
    rows = sensor == group
    clean["noise_groups"][rows] = model.for_noise_group(group).reconstruct(X[rows])

# %%
# Left: the learned noise beside the true one. Middle: how far the subspaces are from the truth.
# Right: what is left of the noise after denoising.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
place = np.arange(2)
truth = [true_noise[group] for group in model.noise_groups_]
axes[0].bar(place - 0.2, truth, 0.4, label="true", color="0.7")
axes[0].bar(place + 0.2, levels, 0.4, label="learned")
axes[0].set(xticks=place, xticklabels=model.noise_groups_, title="noise of each sensor")
axes[0].legend()
axes[1].bar_label(
    axes[1].bar(list(results), list(results.values()), color=["0.7", "C0"]), fmt="%.3f"
)
axes[1].set_title("distance to the true subspaces")
for shift, (name, found) in zip((-0.2, 0.2), clean.items(), strict=True):
    left = [np.sqrt(np.mean((found - data.X)[sensor == g] ** 2)) for g in model.noise_groups_]
    bars = axes[2].bar(place + shift, left, 0.4, label=name, color="0.7" if shift < 0 else "C0")
    axes[2].bar_label(bars, fmt="%.3f", fontsize=9)
axes[2].set(xticks=place, xticklabels=model.noise_groups_, title="noise left after denoising")
axes[2].legend(loc="upper left")
for ax in axes:
    ax.margins(y=0.15)
plt.show()
