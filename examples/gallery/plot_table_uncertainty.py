"""
A mixed table, and how sure its filled cells are
================================================

:class:`~polyspan.SubspaceImputer` fills numbers and categories. It also draws several completed
tables: how much they differ says how sure a cell is.
"""

# %%
# A table of flats, made by a rule with chance in it. A fifth of all cells is then hidden.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from polyspan import SubspaceImputer

rng = np.random.default_rng(4)
n = 500
area = rng.gamma(9, 9, n).round()
town = rng.choice(["north", "south", "old town"], n, p=[0.4, 0.35, 0.25])
price = pd.Series(town).map({"north": 9.0, "south": 12.0, "old town": 16.0}).to_numpy()
truth = pd.DataFrame(
    {
        "area": area,
        "rooms": np.maximum(1, (area / 27 + rng.normal(0, 0.5, n)).round()).astype(int),
        "town": town,
        "lift": rng.random(n) < np.where(town == "old town", 0.2, 0.7),
        "rent": (100 + 8 * area + 30 * price + 80 * rng.standard_normal(n)).round(),
    }
)
hidden = pd.DataFrame(rng.random(truth.shape) < 0.2, columns=truth.columns)
table = truth.mask(hidden)

# %%
# The probabilities of each town, and 100 completed tables.
imputer = SubspaceImputer(random_state=0).fit(table)
filled = imputer.transform(table)
print(filled.head(3))
probabilities = imputer.impute_proba(table)["town"]
draws = imputer.sample_imputations(table, n_draws=100, random_state=0)

# %%
# Left: hidden rents, and the interval of 90 % of the draws. Of 16 tables made in this way, 86 % of
# the rents were inside on average: the intervals are a little too short here.
# Right: of the hidden towns, how many were filled right, in groups from less to more probable.
cells = np.flatnonzero(hidden["rent"])
values = np.array([draw["rent"].to_numpy()[cells] for draw in draws], dtype=float)
low, high = np.quantile(values, [0.05, 0.95], axis=0)
real = truth["rent"].to_numpy()[cells]
inside = (low <= real) & (real <= high)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=[2, 1])
order = np.argsort(filled["rent"].to_numpy()[cells])
place = np.arange(len(cells))
axes[0].vlines(place, low[order], high[order], color="0.75", lw=4, label="90 % of the draws")
axes[0].plot(place, filled["rent"].to_numpy()[cells][order], "k_", ms=4, label="filled")
for ok, color, name in ((True, "C0", "truth, inside"), (False, "C3", "truth, outside")):
    chosen = inside[order] == ok
    axes[0].plot(place[chosen], real[order][chosen], "o", ms=3, color=color, label=name)
axes[0].set(xlabel="hidden rents, sorted", ylabel="rent", title=f"{inside.mean():.0%} inside")
axes[0].legend(loc="upper left")
rows = np.flatnonzero(hidden["town"])
top = np.asarray(probabilities)[rows].max(axis=1)
right = filled["town"].to_numpy()[rows] == truth["town"].to_numpy()[rows]
groups = np.array_split(np.argsort(top), 4)
axes[1].plot([0.3, 1], [0.3, 1], color="0.8")
axes[1].plot([top[g].mean() for g in groups], [right[g].mean() for g in groups], "o")
axes[1].set(xlabel="probability of the filled town", ylabel="part that is right", title="towns")
plt.show()
