"""
Subspaces of different dimension
================================

Clusters may differ in dimension. ``subspace_dim`` takes one number for each subspace, and
:class:`~polyspan.SubspaceMixture` can find them itself.
"""

# %%
# A line, a plane and a space of three dimensions in 12 dimensions, with a little noise.
import matplotlib.pyplot as plt
import numpy as np

from polyspan import MiCUSaL, SubspaceMixture
from polyspan.metrics import clustering_error

rng = np.random.default_rng(0)
dims, n = (1, 2, 3), 100
bases = [np.linalg.qr(rng.standard_normal((12, dim)))[0] for dim in dims]
X = np.concatenate([rng.standard_normal((n, b.shape[1])) @ b.T for b in bases])
X += 0.1 * rng.standard_normal(X.shape)
truth = np.repeat([0, 1, 2], n)

# %%
# The same dimension for all, the true ones in any order, and dimensions that are found.
common = {"random_state": 0, "center": False, "n_init": 10}
models = {f"MiCUSaL, all {dim}": MiCUSaL(3, dim, lam=np.inf, **common) for dim in (1, 2, 3)} | {
    "MiCUSaL, 1, 2 and 3": MiCUSaL(3, (3, 2, 1), lam=np.inf, **common),
    'SubspaceMixture, "auto"': SubspaceMixture(3, "auto", affine=False, **common),
}
errors = {}
for name, model in models.items():
    errors[name] = 100 * clustering_error(truth, model.fit(X).labels_)
print("found:", sorted(models['SubspaceMixture, "auto"'].subspace_dims_.tolist()))

# %%
# A common dimension is too small for one cluster or too large for another.
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
bars = ax.barh(list(errors), list(errors.values()), color=["0.7"] * 3 + ["C0"] * 2)
ax.bar_label(bars, fmt="%.1f %%", padding=3)
ax.invert_yaxis()
ax.set_xlabel("wrong labels, %")
ax.margins(x=0.15)
plt.show()
