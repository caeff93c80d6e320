"""
Which rows do not belong, and why?
==================================

:class:`~polyspan.SubspaceOutlierDetector` finds unusual rows of a table and says which columns make
them unusual.
"""

# %%
# Measurements of wines. One row gets a value that is usual for other wines, but does not go with
# the other columns of this row.
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from polyspan import SubspaceOutlierDetector

table = load_wine(as_frame=True).data
odd = 20
table.loc[odd, "flavanoids"] = table["flavanoids"].quantile(0.02)

# %%
# Lower scores are less usual.
detector = SubspaceOutlierDetector(contamination=0.05).fit(table)
scores = detector.score_samples(table)
print("place of the odd row:", int((scores < scores[odd]).sum()) + 1, "of", len(table))

# %%
# The contributions of the columns add up to minus the score.
why = detector.set_output(transform="pandas").contributions(table).loc[odd].sort_values()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].hist(scores, bins=40)
axes[0].axvline(scores[odd], color="C3", label="odd row")
axes[0].set_xlabel("score")
axes[0].legend()
axes[1].barh(why.index, why)
axes[1].set_xlabel("contribution to the score of the odd row")
plt.show()
