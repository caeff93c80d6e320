"""
Fit a model to a dask array
===========================

:class:`~polyspan.MiCUSaL` takes dask arrays. Each chunk sends back small sums and stays where it
is, and the subspaces are the same as in memory.
"""

# %%
# Samples of three subspaces in chunks of different size. A real array would come from files.
import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import subspace_distance

data = make_union_of_subspaces((2000,) * 3, n_features=40, subspace_dim=4, random_state=0)
order = np.random.default_rng(0).permutation(6000)
X = da.from_array(data.X[order], chunks=((500, 1500, 1000, 2000, 1000), 40))

# %%
# The same call for both. Labels of the dask array are lazy: nothing is computed until it is asked
# for.
model = MiCUSaL(3, 4, random_state=0)
in_memory = model.fit(X.compute()).bases_
with dask.config.set(scheduler="threads"):
    chunked = model.fit(X).bases_
    labels = model.labels_
    print(type(labels), labels.chunks)
    counts = np.array([np.bincount(labels.blocks[k].compute(), minlength=3) for k in range(5)])

# %%
# Left: the subspaces that were found in each chunk. Right: the distance of every subspace of the
# one fit from every subspace of the other. Each has its twin, at a distance of rounding.
between = np.array([[subspace_distance(a, b) for b in chunked] for a in in_memory])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", width_ratios=[3, 2])
bottom = np.zeros(5)
for k in range(3):
    axes[0].bar(range(1, 6), counts[:, k], bottom=bottom, label=f"subspace {k}")
    bottom += counts[:, k]
axes[0].set(xlabel="chunk", ylabel="samples")
axes[0].legend(loc="upper left")
axes[1].imshow(between, cmap="Blues", vmin=0)
for row, column in np.ndindex(3, 3):
    value = between[row, column]
    text = f"{value:.2f}" if value > 1e-3 else f"{value:.0e}"
    axes[1].text(column, row, text, ha="center", va="center", color="w" if value > 0.2 else "k")
axes[1].set(
    xticks=range(3), yticks=range(3), xlabel="subspace, chunks", ylabel="subspace, in memory"
)
plt.show()
