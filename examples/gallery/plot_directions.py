"""
What does a subspace mean?
==========================

The directions of a subspace of pictures are pictures. :func:`~polyspan.plotting.plot_basis_images`
draws them for a :class:`~polyspan.MiCUSaL` of digits.
"""

# %%
# Digits 0, 4 and 6, each of norm 1, near affine subspaces of four dimensions.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from polyspan import MiCUSaL
from polyspan.plotting import plot_basis_images

digits = load_digits()
X = normalize(digits.data[np.isin(digits.target, (0, 4, 6))])
model = MiCUSaL(n_subspaces=3, subspace_dim=4, affine=True, random_state=0).fit(X)
print(model.summary(X))

# %%
# Each row is one subspace: its centre, and what each direction adds (red) or takes away (blue).
plot_basis_images(model, (8, 8), X)
plt.show()
