"""
Is my data a union of subspaces?
================================

A *subspace* is a line, a plane, or the same in more dimensions. With ``SubspaceClustering``, as
here, it goes through the origin, with ``MiCUSaL`` through the mean. A *union of subspaces* is
several of them: every row of the table lies near one. Rows of the same kind often do. Pictures of
one digit, for example, are nearly weighted sums of a few basic pictures.

This tutorial asks in five steps whether your table is like that:

1. scale the rows;
2. look at them;
3. find clusters, which are groups of rows;
4. ask how sure the clusters are;
5. read the subspaces.

At the end we do the same with a table where the answer is no.
"""

# %%
# The data
# --------
# The pictures of the digits 0, 4 and 6 come with scikit-learn. Each row is a picture of 8 × 8
# pixels, so the table has 64 columns. The method never sees the true digits.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

pixels, digits = load_digits(return_X_y=True, as_frame=True)
chosen = digits.isin([0, 4, 6])
pixels, digits = pixels[chosen], digits[chosen]
print(pixels.shape)

# %%
# 1. Scale
# --------
# The *length* of a row is the root of the sum of its squares. A dark and a pale picture of the same
# digit differ in length, but not in direction. Only the direction matters here, so we scale every
# row to length 1. Do the same with spectra and with counts of words.
#
# If your columns have different units, such as age and income, scale the *columns*
# (``StandardScaler``). More: :doc:`/guide/scaling`.
from sklearn.preprocessing import Normalizer

X = Normalizer().set_output(transform="pandas").fit_transform(pixels)

# %%
# 2. Look
# -------
# We draw some rows as pictures, and all rows as points. The points need two directions in which
# rows differ. The first direction is what all digits share, so we take the second and the third.
from sklearn.decomposition import TruncatedSVD

flat = TruncatedSVD(3, random_state=0).fit_transform(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.imshow(np.hstack(X.to_numpy()[:6].reshape(6, 8, 8)), cmap="gray_r")
left.set(title="the first 6 rows", xticks=[], yticks=[])
right.scatter(flat[:, 1], flat[:, 2], s=6)
right.set(title="all 540 rows", xlabel="second direction", ylabel="third direction")
plt.show()

# %%
# Three clouds are visible, so clusters are likely. Two directions are too few to show whether each
# cloud lies near a subspace.
#
# 3. Find clusters
# ----------------
# :class:`~polyspan.SubspaceClustering` needs no settings. It makes several *graphs*: networks that
# join similar rows. It cuts each graph into clusters, and keeps what the graphs agree on. It also
# finds the number of clusters. ``random_state`` makes the result repeatable.
from polyspan import SubspaceClustering

model = SubspaceClustering(random_state=0).fit(X)
print(model.summary())

# %%
# Read the summary line by line:
#
# - **The number.** There are three clusters. The *evidence* says how clearly graphs fall apart into
#   so many parts. The next best number has much less evidence, so 3 is clear.
# - **The certainty** of the whole result, from 0 to 1. From .8 on you can use labels of pictures.
# - **Confidence** is how sure the label of *one row* is. No row is doubtful here.
# - **The table.** Each cluster has its own subspace, with 2 to 4 dimensions.
#
# 4. How sure?
# ------------
# ``certainty_`` belongs to the whole result, and ``confidence_`` has one value for each row. A
# figure shows where both come from.
from polyspan.plotting import plot_partition

print(f"certainty: {model.certainty_:.2f}")
print(f"lowest confidence of a row: {model.confidence_.min():.2f}")
plot_partition(model, X)
plt.show()

# %%
# - Top left: each line is a graph. A steep fall in the gray band means that it falls apart into
#   this number of clusters.
# - Top right: bright cells are graphs that agree. All cells should be bright.
# - Bottom left: the confidence of the rows. It should be near 1.
# - Bottom right: the rows in the colours of their clusters.
#
# Here we can check the labels. With your own data the certainty takes the place of this check.
from polyspan.metrics import clustering_error

print(f"wrong labels: {clustering_error(digits, model.labels_):.1%}")

# %%
# No label is wrong.
#
# 5. Read the subspaces
# ---------------------
# A subspace is given by a few directions. Each line of the figure is one subspace, and each
# direction is a picture. Red pixels are added, blue pixels are taken away.
from polyspan.plotting import plot_basis_images

plot_basis_images(model, (8, 8), X)
plt.show()

# %%
# The first direction is the typical digit. The others say how it varies. If your columns are no
# pixels, :func:`~polyspan.plotting.plot_loadings` shows which of them matter in each direction.
#
# Do the rows lie near their subspace? The left panel shows their distances to it. The right panel
# compares each distance with that to the nearest other subspace. Rows near the line lie between two
# subspaces. Rows far to the right fit no subspace.
from polyspan.plotting import plot_residuals

plot_residuals(model, X)
plt.show()

# %%
# All rows have length 1, and the typical distance is .27. So a subspace explains 1 − .27² = 93 % of
# the squared length of a row. Nearly all points lie far above the line.
#
# The answer is **yes**: three clear clusters, each near a subspace with few dimensions.
#
# A table where the answer is no
# ------------------------------
# The wine table has 13 measurements of 178 wines of three sorts. The units differ, so we scale the
# columns.
import warnings

from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

wine, sorts = load_wine(return_X_y=True, as_frame=True)
wine = StandardScaler().set_output(transform="pandas").fit_transform(wine)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    doubtful = SubspaceClustering(random_state=0).fit(wine)
for warning in caught:
    print("Warning:", warning.message)
print(doubtful.summary())
plot_partition(doubtful, wine)
plt.show()

# %%
# Four signs say no:
#
# - The certainty is very low.
# - Another number of clusters has nearly the same evidence.
# - Graphs contradict the result. Only graphs of near neighbours (3 to 6, top right) agree with
#   each other. So rows of a cluster are near each other, but not near a subspace.
# - The subspaces have 7 to 9 dimensions, with 13 columns in all.
#
# What to do then
# ---------------
# The summary says it: compare with k-means or a Gaussian mixture.
# The rows of this table lie around *centres*, which k-means finds.
from sklearn.cluster import KMeans

compact = KMeans(3, n_init=10, random_state=0).fit_predict(wine)
for name, labels in {"subspaces": doubtful.labels_, "k-means": compact}.items():
    print(f"wrong labels, {name}: {clustering_error(sorts, labels):.0%}")

# %%
# So the low certainty was a good warning. Keep this rule:
#
# ============== ===========================================================
# certainty      what to do
# ============== ===========================================================
# .8 or more     Use the labels of pictures. Else compare with k-means.
# .6 to .8       If the number is settled, use labels of high confidence.
# .3 to .6       Try another scaling or number of clusters, and k-means.
# less than .3   Use another method.
# ============== ===========================================================
#
# All options: :doc:`/guide/cluster`. How it works: :doc:`/how/clustering`.
