"""
Cluster samples with missing entries
====================================

:class:`~polyspan.RobustMiCUSaL` clusters samples of which many entries are missing. It fits the
subspaces to what is there, in place of filling the holes first.
"""

# %%
# The paper's five subspaces, of 13 dimensions in 180, and more and more holes.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.metrics import clustering_error

data = make_union_of_subspaces(random_state=0)
fractions = [0.0, 0.1, 0.3, 0.5, 0.7]

# %%
# Fill the holes and cluster, or cluster what is there.
methods = {
    "SimpleImputer, MiCUSaL": make_pipeline(SimpleImputer(), MiCUSaL(5, 13, random_state=0)),
    "KNNImputer, MiCUSaL": make_pipeline(KNNImputer(), MiCUSaL(5, 13, random_state=0)),
    "RobustMiCUSaL": RobustMiCUSaL(5, 13, random_state=0),
}
errors = {name: [] for name in methods}
for fraction in fractions:
    X = mask_entries(data.X, fraction, random_state=0) if fraction else data.X
    for name, method in methods.items():
        errors[name].append(100 * clustering_error(data.labels, method.fit_predict(X)))

# %%
# Wrong labels, in percent.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, marker in zip(methods, "svo", strict=True):
    ax.plot(100 * np.array(fractions), errors[name], marker=marker, label=name)
ax.set(xlabel="missing entries, %", ylabel="wrong labels, %")
ax.legend()
plt.show()
