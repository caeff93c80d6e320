"""
How many subspaces, and of which dimension?
===========================================

:func:`~polyspan.model_selection.choose_size` finds number and dimension from the data, given only
bounds on both. :func:`~polyspan.plotting.plot_size_choice` draws what it compared, and
:class:`~polyspan.MiCUSaL` is fitted with the choice.
"""

# %%
# Four subspaces of three dimensions that are close to each other, in 30 dimensions.
import matplotlib.pyplot as plt

from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.model_selection import choose_size
from polyspan.plotting import plot_size_choice

X = make_union_of_subspaces(
    (80, 80, 80, 80), n_features=30, subspace_dim=3, spread=0.3, noise=0.1, random_state=0
).X

# %%
# At most eight subspaces, of at most six dimensions.
choice = choose_size(X, max_subspaces=8, max_dim=6, n_seeds=1, random_state=0)
print(f"{choice.n_subspaces} subspaces of dimension {choice.subspace_dim}, lam={choice.lam}")
model = MiCUSaL(choice.n_subspaces, choice.subspace_dim, lam=choice.lam, random_state=0).fit(X)
print(model.summary(X))

# %%
# Left: the dimension with the lowest information criterion. Right: the number whose model predicts
# hidden entries best. The dotted lines are the choice.
plot_size_choice(choice)
plt.show()
