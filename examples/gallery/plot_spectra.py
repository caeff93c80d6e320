"""
Spectra of mixed materials
==========================

Every place mixes a few materials in changing shares. The spectra of one kind of place lie near a
subspace, which :class:`~polyspan.SubspaceClustering` finds. k-means looks for one typical spectrum
per kind, and there is none.
"""

# %%
# Six materials, each a smooth curve with five bands. Each of three kinds of ground mixes three of
# them, and two kinds have one material in common. Only the shape of a spectrum matters, not how
# bright it is: rows have norm 1.
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import confusion_matrix
from sklearn.preprocessing import normalize

from polyspan import SubspaceClustering
from polyspan.metrics import clustering_error

rng = np.random.default_rng(0)
wave = np.linspace(0.4, 2.5, 120)  # micrometres
centres, widths = rng.uniform(0.4, 2.5, (6, 5, 1)), rng.uniform(0.05, 0.3, (6, 5, 1))
bands = rng.uniform(0.1, 0.5, (6, 5, 1)) * np.exp(-(((wave - centres) / widths) ** 2) / 2)
materials = 0.6 * np.exp(-bands.sum(axis=1))
truth = np.repeat([0, 1, 2], 150)
shares = np.zeros((450, 6))
for kind, mixed in enumerate([[0, 1, 2], [2, 3, 4], [4, 5, 0]]):
    shares[np.ix_(truth == kind, mixed)] = rng.dirichlet([1, 1, 1], 150)
clean = normalize(shares @ materials)
X = normalize(clean + 0.003 * rng.standard_normal(clean.shape))

# %%
# The number of kinds is given.
model = SubspaceClustering(3, random_state=0).fit(X)
found = {
    "truth": truth,
    "KMeans": KMeans(3, n_init=10, random_state=0).fit_predict(X),
    "SubspaceClustering": model.labels_,
}
print("dimensions:", model.subspace_dims_, f"certainty: {model.certainty_:.2f}")

# %%
# Left: two spectra of each kind. Right: all spectra, along their two main directions. Mixtures of
# three materials fill a triangle, and neighbouring triangles share a corner.
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
flat = PCA(2).fit_transform(X)
for kind in range(3):
    axes[0].plot(wave, X[truth == kind][:2].T, color=plt.get_cmap("viridis")(kind / 2), lw=1)
axes[0].set(title="spectra", xlabel="wavelength, µm", yticks=[])
for ax, (name, labels) in zip(axes[1:], found.items(), strict=True):
    kinds = linear_sum_assignment(-confusion_matrix(labels, truth))[1]
    ax.scatter(*flat.T, c=kinds[labels], cmap="viridis", s=6)
    wrong = "" if name == "truth" else f": {clustering_error(truth, labels):.0%} wrong"
    ax.set(title=name + wrong, xticks=[], yticks=[])
plt.show()
