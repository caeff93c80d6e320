"""
How sure is a clustering?
=========================

:class:`~polyspan.SubspaceClustering` gives each label a confidence, and the whole partition a
certainty. Labels of high confidence are wrong less often, unless the partition itself is wrong.
"""

# %%
# Cluster the digits 0 to 6, and then all ten. Rows have norm 1. True labels are only used to count
# what is wrong: each cluster is named by the digit that suits it best.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix
from sklearn.preprocessing import normalize

from polyspan import SubspaceClustering

# %%
# A warning says that the certainty is low, which is what we want to look at here.
results = {}
for n in (7, 10):
    digits = load_digits(n_class=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SubspaceClustering(n, random_state=0).fit(normalize(digits.data))
    digit, cluster = linear_sum_assignment(-confusion_matrix(digits.target, model.labels_))
    names = digit[np.argsort(cluster)][model.labels_]
    results[n] = (digits, names, model.confidence_)
    wrong = np.mean(names != digits.target)
    print(f"{n} digits: certainty {model.certainty_:.2f}, {wrong:.1%} of the labels are wrong")

# %%
# Left: wrong labels by confidence. Of seven digits, nearly all wrong labels have a low confidence.
# Of ten digits, 1 and 8 came into one cluster. The graphs agree on it, so its labels look sure. The
# certainty warned of this: it is very low for both. Right: every fifth of the seven digits with a
# confidence below .5, and the name of its cluster, red where it is wrong.
figure = plt.figure(figsize=(10, 3.8), layout="constrained")
left, right = figure.subfigures(1, 2)
ax = left.subplots()
edges = [0, 0.5, 0.7, 0.9, 0.99]
for shift, (n, (digits, names, confidence)) in zip((-0.2, 0.2), results.items(), strict=True):
    group = np.digitize(confidence, edges) - 1
    wrong = names != digits.target
    parts = [100 * wrong[group == k].mean() for k in range(5)]
    bars = ax.bar(np.arange(5) + shift, parts, 0.4, label=f"{n} digits")
    ax.bar_label(bars, [str((group == k).sum()) for k in range(5)], fontsize=8)
ax.set_xticks(range(5), ["below .5", ".5 to .7", ".7 to .9", ".9 to .99", "above"])
ax.set(xlabel="confidence (on the bars: how many rows)", ylabel="wrong labels, %")
ax.legend()
digits, names, confidence = results[7]
unsure = np.flatnonzero(confidence < 0.5)[::5]
for ax, row in zip(right.subplots(3, 7).flat, unsure, strict=True):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(names[row], color="k" if names[row] == digits.target[row] else "C3", fontsize=10)
    ax.set_axis_off()
plt.show()
