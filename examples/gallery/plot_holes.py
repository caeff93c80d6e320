"""
Fill missing entries of samples
===============================

Half of the pixels of each digit are missing. :class:`~polyspan.SubspaceImputer` learns from the
pixels that are there, and fills the others.
"""

# %%
# Hide half of the pixels of the digits 0 to 4.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer

from polyspan import SubspaceImputer
from polyspan.datasets import mask_entries

truth = load_digits(n_class=5).data / 16
X = mask_entries(truth, 0.5, random_state=0)
hidden = np.isnan(X)

# %%
# Fill them by subspaces, and by the mean of near neighbours.
filled = {
    "KNNImputer": KNNImputer().fit_transform(X),
    "SubspaceImputer": SubspaceImputer(method="subspaces", random_state=0).fit_transform(X),
}
errors = {name: np.sqrt(np.mean((found - truth)[hidden] ** 2)) for name, found in filled.items()}

# %%
# Eight digits, and the error of the hidden pixels in the titles.
rows = {"truth": truth, "half is missing": X, **filled}
figure, axes = plt.subplots(len(rows), 1, figsize=(7, 5), layout="constrained")
for ax, (name, found) in zip(axes, rows.items(), strict=True):
    ax.imshow(np.hstack(found[:8].reshape(-1, 8, 8)), cmap="gray", vmin=0, vmax=1)
    ax.set_title(name + (f": error {errors[name]:.3f}" if name in errors else ""), fontsize=10)
    ax.set_axis_off()
plt.show()
