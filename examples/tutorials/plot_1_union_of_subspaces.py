"""
Is my data a union of subspaces?
================================

A *subspace* is a line, a plane, or the same thing in more dimensions. Here it goes through the
origin. A *union of subspaces* is a set of several subspaces: every row of the table lies near one
of them. Rows of the same kind often do. Pictures of one digit, for example, are nearly weighted
sums of a few basic pictures.

This tutorial asks whether your table is like that. There are five steps:

1. scale the rows;
2. look at them;
3. cluster them;
4. ask how sure the clusters are;
5. read the subspaces.

At the end we do the same with a table where the answer is no.
"""

# %%
# The data
# --------
# The pictures of the digits 0, 4 and 6 come with scikit-learn. Each row is a picture of 8 × 8
# pixels, so the table has 64 columns. We also keep the true digits, but only to check the result
# at the end. The method never sees them.
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
# One writer presses hard, another one does not. Dark and pale pictures of the same digit differ in
# length only, not in direction. Only the direction matters here, so we scale every row to length 1.
#
# Use the same rule for spectra and for counts of words. If your columns have different units, such
# as age and income, scale the *columns* instead (``StandardScaler``). Do not subtract the mean if
# you do not have to: a subspace through the origin then no longer goes through the origin.
from sklearn.preprocessing import Normalizer

X = Normalizer().set_output(transform="pandas").fit_transform(pixels)

# %%
# 2. Look
# -------
# Look at some rows as pictures, and at all rows as points. For the points we need two directions in
# which the rows spread much. The leading direction is what all digits have in common, so we take
# the second and the third.
from sklearn.decomposition import TruncatedSVD

flat = TruncatedSVD(3, random_state=0).fit_transform(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
some = X.to_numpy()[:18].reshape(3, 6, 8, 8)
tiles = np.pad(some, ((0, 0), (0, 0), (1, 1), (1, 1)))
left.imshow(tiles.transpose(0, 2, 1, 3).reshape(30, 60), cmap="gray_r")
left.set_title("the first 18 rows")
left.set_axis_off()
right.scatter(flat[:, 1], flat[:, 2], s=6)
right.set_title("all 540 rows")
right.set(xlabel="second direction", ylabel="third direction")
plt.show()

# %%
# Three clouds are visible, so groups are likely. A flat picture cannot show whether each of them
# lies near a subspace: two directions are too few for that.
#
# 3. Cluster
# ----------
# :class:`~polyspan.SubspaceClustering` needs no settings. It draws several *graphs*: networks in
# which similar rows are joined. Each graph is cut into clusters. The result is what the graphs
# agree on. It also finds the number of clusters. ``random_state`` makes the result repeatable.
from polyspan import SubspaceClustering

model = SubspaceClustering(random_state=0).fit(X)
print(model.summary())

# %%
# Read the summary line by line:
#
# - **Clusters.** There are three, and they have nearly the same size. Each has a subspace with a
#   dimension of its own.
# - **The number.** The next best number has much less evidence. So the number 3 is clear.
# - **The certainty.** It tells how sure the whole result is, from 0 to 1. From .8 on you can use
#   the labels.
# - **Agreement.** All graphs give this result.
# - **Confidence.** This is how sure the label of *one row* is. No row is doubtful here.
# - **Next.** The last line says what to do now.
#
# 4. How sure?
# ------------
# Two numbers answer this question. ``certainty_`` belongs to the whole result, ``confidence_`` has
# one value for each row.
print(f"certainty: {model.certainty_:.2f}")
print(f"lowest confidence of a row: {model.confidence_.min():.2f}")

# %%
# The following figure shows where both come from.
from polyspan.plotting import plot_partition

plot_partition(model, X)
plt.show()

# %%
# - Top left: each line belongs to a graph. A large fall within the gray band means that the graph
#   falls apart into this number of clusters.
# - Top right: bright cells are graphs that agree with each other. All cells should be bright.
# - Bottom left: the confidence of the rows of each cluster. It should be near 1.
# - Bottom right: the rows again, now in the colours of their clusters.
#
# We know the true digits, so we can check the labels. In practice you cannot do this, and the
# certainty takes the place of this check.
from polyspan.metrics import clustering_error

print(f"wrong labels: {clustering_error(digits, model.labels_):.1%}")

# %%
# 5. Read the subspaces
# ---------------------
# Each cluster has its own subspace. Directions of a subspace can be drawn as pictures. Each row of
# the figure is one subspace. Red pixels are added, blue pixels are taken away.
from polyspan.plotting import plot_basis_images

plot_basis_images(model, (8, 8), X)
plt.show()

# %%
# The first direction is the typical digit. The others say how it varies, for example by its slant.
#
# If your columns have names instead of places, use
# :func:`~polyspan.plotting.plot_loadings`. It shows which columns matter most in each direction.
# Blue bars are added, red bars are taken away.
from polyspan.plotting import plot_loadings

plot_loadings(model, 0, X, n_features=6)
plt.show()

# %%
# Do the rows lie near their subspace? The left panel shows their distances to it. The right panel
# compares them with the distance to the nearest other subspace. Rows near the line lie between two
# subspaces. Rows far to the right fit no subspace.
from polyspan.plotting import plot_residuals

plot_residuals(model, X)
plt.show()

# %%
# All rows have the length 1, and the typical distance is .27. So a subspace explains about 93 % of
# a row (1 − .27² = .93). Nearly all points lie far above the line. The figure counts each row to
# the subspace that is nearest to it. A few rows lie nearer to the subspace of another cluster.
#
# The answer for this table is **yes**: three clear clusters, each near a subspace with few
# dimensions.
#
# A table where the answer is no
# ------------------------------
# The wine table has 13 measurements of 178 wines of three sorts. The units differ, so we scale the
# columns.
import warnings

from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

wine, sorts = load_wine(return_X_y=True, as_frame=True)
scaler = StandardScaler().set_output(transform="pandas")
wine = scaler.fit_transform(wine)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    doubtful = SubspaceClustering(random_state=0).fit(wine)
for warning in caught:
    print("Warning:", warning.message)
print(doubtful.summary())

# %%
# Four signs say no:
#
# - the certainty is low;
# - another number of clusters has nearly the same evidence;
# - no graph agrees with the result;
# - the subspaces have many dimensions, with 13 columns in all.
plot_partition(doubtful, wine)
plt.show()

# %%
# The graphs disagree, and many rows have a low confidence. Only graphs of near neighbours, numbers
# 3 to 6, agree with each other. This is a hint: rows of one group are near each other, but they do
# not lie near a subspace.
#
# What to do then
# ---------------
# Try what the last line of the summary says. If this does not help, the groups are probably of
# another kind. The rows of this table lie around *centres*. k-means looks for such groups.
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
# .8 or more     Use the labels.
# .6 to .8       Use labels with a high confidence, look at the other rows.
# .3 to .6       Try another scaling or number of clusters, and k-means.
# less than .3   This is no union of subspaces. Use another method.
# ============== ===========================================================
