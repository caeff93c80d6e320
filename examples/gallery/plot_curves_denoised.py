"""
Remove noise from curved data
=============================

:class:`~polyspan.MCKUSaL` looks for subspaces after a kernel has bent the space. There a curve is
nearly flat, and noisy samples can be moved back to it.
"""

# %%
# Two curves to learn from, and new samples with noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from polyspan import MCKUSaL
from polyspan.model_selection import choose_by_noise

train, _ = make_moons(300, noise=0.0, random_state=0)
clean, truth = make_moons(150, noise=0.0, random_state=1)
sigma = 0.15
noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)

# %%
# One subspace is kernel PCA; two are one for each curve. The dimension is the one that removes
# noise best from part of the training samples (:func:`~polyspan.model_selection.choose_by_noise`).
denoised = {"with noise": noisy}
for name, n_subspaces in (("kernel PCA", 1), ("MCKUSaL", 2)):
    model = MCKUSaL(n_subspaces, gamma=1.0, random_state=0)
    grid = {"subspace_dim": [2, 3, 4, 6, 8, 12, 16]}
    choice = choose_by_noise(model, train, 2 * sigma**2, grid, random_state=0)
    model.set_params(**choice.best_params).fit(train)
    denoised[f"{name}, {model.subspace_dim} dimensions"] = model.reconstruct(noisy)

# %%
# Gray curves are the truth. The error is the distance of a sample from its own clean place.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained", sharex=True, sharey=True)
for ax, (name, found) in zip(axes, denoised.items(), strict=True):
    for label in (0, 1):
        curve = clean[truth == label]
        ax.plot(*curve[np.argsort(curve[:, 0])].T, color="0.8", lw=3)
    ax.scatter(*found.T, c=truth, cmap="viridis", s=9, zorder=2)
    error = np.sqrt(np.mean(np.sum((found - clean) ** 2, axis=1)))
    ax.set(title=f"{name}\nerror {error:.3f}", xticks=[], yticks=[])
plt.show()
