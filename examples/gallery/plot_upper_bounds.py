"""
Only upper bounds are known
===========================

:class:`~polyspan.AdaptiveMiCUSaL` is the paper's way to find the number of subspaces. It starts
with too many, and merges subspaces that are nearer to each other than a threshold. The answer
depends on that threshold, as this figure shows.
"""

# %%
# Four subspaces of dimension 4, three draws. The distance of neighbours is the same in all draws.
import warnings

import matplotlib.pyplot as plt

from polyspan import AdaptiveMiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.model_selection import choose_size

draws = [
    make_union_of_subspaces(
        (80, 80, 80, 80), n_features=40, subspace_dim=4, spread=0.3, noise=0.02, random_state=seed
    ).X
    for seed in range(3)
]

# %%
# We allow at most 7 subspaces of dimension at most 6, and try several thresholds.
# :func:`~polyspan.model_selection.choose_size` gets the same bounds and needs no threshold. It
# hides entries and looks how well they are predicted, which takes longer.
thresholds = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
merged, chosen = [], []
for X in draws:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small subspaces, and a large λ
        merged.append(
            [
                AdaptiveMiCUSaL(7, 6, merge_threshold=threshold, random_state=0).fit(X).n_subspaces_
                for threshold in thresholds
            ]
        )
        chosen.append(choose_size(X, 7, 6, n_seeds=1, random_state=0).n_subspaces)
print("choose_size:", chosen)

# %%
# A low threshold keeps too many subspaces and a high one merges different ones. Between them is a
# window in which the answer is right. If you do not know the distances of your subspaces, take
# ``choose_size``.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.axhline(4, color="0.8", lw=6, label="truth")
for number, (found, size) in enumerate(zip(merged, chosen, strict=True)):
    line = ax.plot(thresholds, found, "o-", label=f"AdaptiveMiCUSaL, draw {number + 1}")[0]
    ax.plot(0.62 + 0.04 * number, size, "s", color=line.get_color(), ms=9, clip_on=False)
ax.text(0.66, 1.1, "squares:\nchoose_size", ha="center", va="bottom", fontsize=9)
ax.set(xlabel="merge_threshold", ylabel="number of subspaces found", ylim=(0.5, 7.5))
ax.legend(loc="upper right", fontsize=9)
plt.show()
