"""
From one machine to a cluster and a GPU
=======================================

A table grows. First it fits in memory, then only on the disk, then only on several machines. Or it
comes in pieces, day by day. The code stays nearly the same: *the table that you pass decides where
the work is done*. This tutorial fits the same model to

1. an array in memory;
2. a file on the disk;
3. a dask array, in threads or on a cluster;
4. batches that come one after the other;
5. a tensor on a GPU;

and checks that the results agree. At the end the model is saved and loaded.
"""

# %%
# The data
# --------
# We make 4500 rows with 40 columns near three subspaces of 4 dimensions, in random order. That is
# small, so that this page runs in seconds. The steps are the same for large tables.
import matplotlib.pyplot as plt
import numpy as np

from polyspan.datasets import make_union_of_subspaces

data = make_union_of_subspaces(
    (1500, 1500, 1500),
    n_features=40,
    subspace_dim=4,
    spread=0.3,
    noise=0.05,
    random_state=0,
)
rng = np.random.default_rng(0)
X = data.X[rng.permutation(4500)]

# %%
# 1. An array in memory
# ---------------------
# :class:`~polyspan.MiCUSaL` learns subspaces of a given number and dimension. Its *objective* is
# the number that it makes as small as possible. Two fits that end at the same objective are equally
# good.
from polyspan import MiCUSaL

model = MiCUSaL(n_subspaces=3, subspace_dim=4, random_state=0).fit(X)
print(f"objective: {model.objective_:.6f}")

# %%
# A fit begins with random starts, and keeps the best. ``n_init`` is the number of starts. For a
# large table ``n_jobs=-1`` runs them at the same time, on all processors. The result does not
# depend on ``n_jobs``. From here on we write ``MiCUSaL(3, 4)`` for the same number and dimension.
more = MiCUSaL(3, 4, n_init=4, n_jobs=-1, random_state=0).fit(X)
print(f"objective: {more.objective_:.6f}")

# %%
# We compare each of the following fits with the first one. Two numbers tell whether they agree:
# the part of the rows with another cluster, and the mean distance between the subspaces. The names
# of the clusters (0, 1, 2) do not matter.
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
# are needed, and are dropped again.
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    path = Path(folder) / "table.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    from_file = MiCUSaL(3, 4, random_state=0).fit(mapped)
compare(from_file)

# %%
# How much memory does this need? Let us measure it for files of growing size. We count what the fit
# asks for, without the parts of the file that the system keeps for a while.
import tracemalloc

block = X.astype(np.float32)
sizes, peaks = [], []
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    for copies in (13, 27, 54, 107):
        path = Path(folder) / f"{copies}.npy"
        shape = (copies * len(block), 40)
        file = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        for k in range(copies):
            file[k * len(block) : (k + 1) * len(block)] = block
        mapped = np.load(path, mmap_mode="r")
        tracemalloc.start()
        MiCUSaL(3, 4, random_state=0).fit(mapped)
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
        sizes.append(mapped.nbytes / 1e6)

figure, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
ax.plot(sizes, peaks, "o-", label="memory of the fit")
ax.plot(sizes, sizes, "k--", lw=1, label="the whole file")
ax.set(xlabel="size of the file (MB)", ylabel="memory (MB)", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The memory hardly grows with the file. The fit works in parts of limited size, and keeps only a
# label and a length for each row.
#
# 3. A dask array
# ---------------
# A dask array is a large table in *chunks*. Here the chunks have 900 rows each. Each chunk is
# worked on by itself, and only small sums are brought together. Keep all columns of a row in one
# chunk.
import dask.array as da

chunked = da.from_array(X, chunks=(900, 40))
with_dask = MiCUSaL(3, 4, random_state=0).fit(chunked)
print(with_dask.labels_)

# %%
# The labels are *lazy*: they are computed when you ask for them. So a table that does not fit in
# memory never has to.
labels = with_dask.labels_.compute()
print(labels[:10])
compare(with_dask)

# %%
# These lines ran in threads of this machine. With a cluster add two lines, and nothing else
# changes:
#
# .. code-block:: python
#
#     from dask.distributed import Client
#
#     client = Client("scheduler-address:8786")  # your cluster
#     X = da.from_zarr("table.zarr").persist()  # read once
#     model = MiCUSaL(3, 4, random_state=0).fit(X)
#
# The fit goes through the table about a hundred times. So call ``persist`` if the table fits in the
# memory of all workers together. Otherwise it is read again each time.
#
# 4. Batches, one after the other
# -------------------------------
# ``partial_fit`` learns from a batch and then forgets its rows. Memory does not grow. We keep the
# distance to the first fit after each batch.
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
# The more rows it has seen, the nearer it is. After the last batch it has seen the same rows as the
# first fit, and both are the same for all purposes. Two things to know:
#
# - Mix the rows. If the first batches hold one cluster only, the start is bad. With the rows of
#   this page in the order of their clusters, half of the labels were wrong.
# - If the data change with time, set ``forget_factor=0.9``. Old batches then count less and less.
#
# 5. A tensor on a GPU
# --------------------
# PyTorch tensors need one setting of scikit-learn. The work is done where the tensor is, and
# the results stay there. This page was made without a GPU, so the lines are only shown:
#
# .. code-block:: python
#
#     import os
#
#     os.environ["SCIPY_ARRAY_API"] = "1"  # before the first import of SciPy
#
#     import sklearn
#     import torch
#
#     from polyspan import MiCUSaL
#
#     tensor = torch.asarray(X, device="cuda")
#     with sklearn.config_context(array_api_dispatch=True):
#         model = MiCUSaL(3, 4, random_state=0).fit(tensor)
#     labels = model.labels_.cpu().numpy()
#
# The random starts are the same as with NumPy, so the results agree up to rounding. A GPU is for
# large tables. With 60 000 rows and 784 columns, one iteration took 1.3 to 1.9 milliseconds on an
# H200. One processor core took over 170 times as long.
#
# Save and load
# -------------
# A saved model holds numbers and names, but no code. So you can load a file without running what
# somebody has put into it. (This needs ``pip install skops``.)
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
# =============================== ================================ ==============================
# your table                      pass                             memory on top of it
# =============================== ================================ ==============================
# fits in memory                  an array or a data frame         small parts, a label per row
# fits on one disk                ``np.load(path, mmap_mode="r")`` small parts, a label per row
# is spread over several machines a dask array                     a few chunks in each worker
# comes in pieces                 batches, to ``partial_fit``      does not grow
# fits in the memory of a GPU     a tensor                         as for an array, on the GPU
# =============================== ================================ ==============================
#
# Not every model takes all of these. ``MiCUSaL`` and ``RobustMiCUSaL``, which also takes missing
# entries, do. Other models say so if they cannot use what you pass.
