"""
From one machine to a cluster and a GPU
=======================================

A table grows. First it fits in memory, then only on the disk, then only on several machines. The
code stays nearly the same: *the table that you pass decides where the work is done*. This tutorial
fits the same model to

1. an array in memory;
2. a file on the disk;
3. a dask array, in threads or on a cluster of machines;
4. batches that come one after the other;
5. a tensor on a GPU;

and checks that the results agree. At the end the model is saved and loaded.

Do you want *clusters of real data*? Then fit :class:`~polyspan.SubspaceClustering` to 1000 to
20 000 rows, and predict the rest (:doc:`/guide/dask`). The model of this page is for many rows near
close subspaces of known size. On digits and faces its labels are often wrong
(:doc:`/evidence/clustering`).
"""

# %%
# The data
# --------
# We make 4500 rows with 40 columns. They lie near three *subspaces* of 4 dimensions, in random
# order. A subspace is a line, a plane, or the same in more dimensions.
import matplotlib.pyplot as plt
import numpy as np

from polyspan.datasets import make_union_of_subspaces

data = make_union_of_subspaces(
    (1500, 1500, 1500), n_features=40, subspace_dim=4, spread=0.3, noise=0.05, random_state=0
)
X = np.random.default_rng(0).permutation(data.X)

# %%
# 1. An array in memory
# ---------------------
# :class:`~polyspan.MiCUSaL` learns subspaces of a given number and dimension. It makes a number as
# small as possible, the *objective*. Two fits with the same objective are equally good.
from polyspan import MiCUSaL

model = MiCUSaL(n_subspaces=3, subspace_dim=4, random_state=0).fit(X)
print(f"objective: {model.objective_:.6f}")

# %%
# This fit had one start, which is *annealed* (:doc:`/how/annealing`). With ``n_init=4`` there are
# four, from other random numbers, and the best is kept. ``n_jobs=-1`` runs them on all processors
# at once. ``MiCUSaL(3, 4)`` is short for the same number and dimension.
more = MiCUSaL(3, 4, n_init=4, n_jobs=-1, random_state=0).fit(X)
print(f"objective: {more.objective_:.6f}")

# %%
# Four starts end at the same objective as one. We compare each further fit with the first one, by
# two numbers: the part of the rows with another cluster, and the mean distance between the
# subspaces.
from polyspan.metrics import average_subspace_distance, clustering_error


def compare(other):
    """Print how far another fit is from the first one."""
    rows = clustering_error(model.labels_, other.predict(X))
    distance = average_subspace_distance(other.bases_, model.bases_)
    print(f"rows with another cluster: {rows:.1%}")
    print(f"distance of the subspaces: {distance:.0e}")


compare(more)

# %%
# 2. A file on the disk
# ---------------------
# ``np.load`` with ``mmap_mode="r"`` does not read the file. It *maps* it: parts are read when they
# are needed, and dropped again. We measure the memory of fits to files with 1 to 54 copies of the
# table.
import tempfile
import tracemalloc
from pathlib import Path

fits, sizes, peaks = [], [], []
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    for copies in (1, 7, 14, 27, 54):
        path = Path(folder) / f"{copies}.npy"
        np.save(path, np.tile(X, (copies, 1)))
        mapped = np.load(path, mmap_mode="r")
        tracemalloc.start()
        fits.append(MiCUSaL(3, 4, random_state=0).fit(mapped))
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
        sizes.append(mapped.nbytes / 1e6)
compare(fits[0])

figure, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
ax.plot(sizes, peaks, "o-", label="memory of the fit")
ax.plot(sizes, sizes, "k--", lw=1, label="the whole file")
ax.set(xlabel="size of the file (MB)", ylabel="memory (MB)", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The file with one copy gives the result of the array. From 10 MB on, the memory hardly grows with
# the file. The fit works in parts of limited size, and keeps a label and a length per row.
#
# 3. A dask array
# ---------------
# A dask array is a large table in *chunks*, here of 900 rows. Each chunk is worked on by itself,
# and only small sums are brought together. Keep all columns of a row in one chunk.
import dask.array as da

chunked = da.from_array(X, chunks=(900, 40))
with_dask = MiCUSaL(3, 4, random_state=0).fit(chunked)
print(with_dask.labels_)

# %%
# The labels are *lazy*: they are computed when you ask for them.
print(with_dask.labels_.compute()[:10])
compare(with_dask)

# %%
# These lines ran in threads of this machine. With a cluster of machines, connect first:
#
# .. code-block:: python
#
#     from dask.distributed import Client
#
#     client = Client("scheduler-address:8786")  # your cluster
#     X = da.from_zarr("table.zarr").persist()  # read once; needs zarr
#     model = MiCUSaL(3, 4, random_state=0).fit(X)
#
# The fit goes through the table about a hundred times. ``persist`` keeps it in the memory of all
# machines together. Leave this out if the table does not fit: it is then read each time. Compute
# the labels before the client closes.
#
# 4. Batches, one after the other
# -------------------------------
# ``partial_fit`` learns from a batch of rows and then forgets them. We keep the distance to the
# first fit after each batch.
stream = MiCUSaL(3, 4, random_state=0)
seen, distances = [], []
for batch in np.array_split(X, 45):
    stream.partial_fit(batch)
    seen.append(stream.n_samples_seen_)
    distances.append(average_subspace_distance(stream.bases_, model.bases_))
compare(stream)

figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.semilogy(seen, distances, ".-")
ax.set(xlabel="rows seen", ylabel="distance to the fit of all rows")
plt.show()

# %%
# The more rows it has seen, the nearer it is. After the last batch both fits have seen the same
# rows. Two things to know:
#
# - Mix the rows. With the rows of this page in the order of their clusters, half of the labels were
#   wrong.
# - If the data change with time, set ``forget_factor=0.9``. Old batches then count less and less.
#
# 5. A tensor on a GPU
# --------------------
# A *tensor* is an array of PyTorch. The work is done where the tensor is, and the results stay
# there. SciPy and scikit-learn need a setting each. This page was made without a GPU:
#
# .. code-block:: python
#
#     import os
#
#     os.environ["SCIPY_ARRAY_API"] = "1"  # before the first import of SciPy
#
#     import sklearn
#     import torch
#     from polyspan import MiCUSaL
#
#     tensor = torch.asarray(X, device="cuda")
#     with sklearn.config_context(array_api_dispatch=True):
#         model = MiCUSaL(3, 4, random_state=0).fit(tensor)
#     labels = model.labels_.cpu().numpy()
#
# The random numbers are the same as with NumPy, so results agree up to rounding. A GPU is for large
# tables (:doc:`/evidence/gpu`).
#
# Save and load
# -------------
# A saved model holds numbers and names, but no code: loading a file runs nothing from it. (This
# needs ``pip install skops``.)
from polyspan import load_model, save_model

with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    path = Path(folder) / "model.skops"
    save_model(stream, path)
    loaded = load_model(path)
print((loaded.predict(X) == stream.predict(X)).all())

# %%
# Which one do I need?
# --------------------
#
# =============================== ================================ ==========================
# your table                      pass                             memory on top of it
# =============================== ================================ ==========================
# fits in memory                  an array or a data frame         small parts
# fits on one disk                ``np.load(path, mmap_mode="r")`` small parts
# is spread over several machines a dask array                     a few chunks per machine
# comes in pieces                 batches, to ``partial_fit``      does not grow
# fits in the memory of a GPU     a tensor                         small parts, on the GPU
# =============================== ================================ ==========================
#
# ``MiCUSaL`` and ``RobustMiCUSaL``, for missing entries, take all of these. Other models say so if
# they do not. More: :doc:`/guide/large`, :doc:`/guide/dask`, :doc:`/guide/streams`,
# :doc:`/guide/gpu`, :doc:`/guide/save`.
