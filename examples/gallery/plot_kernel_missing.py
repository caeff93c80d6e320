"""
Cluster pictures with missing pixels
====================================

:class:`~polyspan.RobustMCKUSaL` compares two samples by the entries that both have. No entry is
filled before, and yet the clusters stay right until more than half of the pixels are missing.
"""

# %%
# Pictures of the digits 0 and 9. Rows have norm 1, so that brightness does not matter.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.preprocessing import normalize

from polyspan import MCKUSaL, RobustMCKUSaL
from polyspan.datasets import mask_entries
from polyspan.metrics import clustering_error

digits = load_digits()
used = np.isin(digits.target, (0, 9))
X, truth = normalize(digits.data[used]), digits.target[used]

# %%
# We hide more and more pixels, and compare with filling first and clustering then.
settings = {"n_subspaces": 2, "subspace_dim": 10, "gamma": 1.0, "random_state": 0}
parts = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
wrong = {"column means, then MCKUSaL": [], "KNNImputer, then MCKUSaL": [], "RobustMCKUSaL": []}
for part in parts:
    seen = mask_entries(X, part, random_state=0)
    filled = [SimpleImputer().fit_transform(seen), KNNImputer().fit_transform(seen)]
    labels = [MCKUSaL(**settings).fit_predict(table) for table in filled]
    labels.append(RobustMCKUSaL(**settings).fit_predict(seen))
    for errors, found in zip(wrong.values(), labels, strict=True):
        errors.append(clustering_error(truth, found))

# %%
# Filling with column means makes all digits more alike. ``KNNImputer`` does as well as
# ``RobustMCKUSaL`` here, and better where 70 % are missing (not shown): try both on your data.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[1, 1.6]
)
left.imshow(
    np.block([[mask_entries(X[:16], part, random_state=0)[k].reshape(8, 8) for k in (0, 1, 4)]
              for part in (0.2, 0.4, 0.6)]),
    cmap="gray_r",
)  # fmt: skip
left.set(title="20, 40 and 60 % missing", xticks=[], yticks=[], facecolor="#d8b4b4")
for (name, errors), mark in zip(wrong.items(), "v^o", strict=True):
    right.plot(parts, errors, marker=mark, label=name)
right.set(xlabel="part of the pixels that is missing", ylabel="part of the labels that is wrong")
right.legend(fontsize=9)
plt.show()
