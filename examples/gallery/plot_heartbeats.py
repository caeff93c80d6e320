"""
Odd heartbeats
==============

:class:`~polyspan.SubspaceOutlierDetector` learns what usual heartbeats look like, and finds odd
ones in a new recording. It also says at which moments a beat is odd.
"""

# %%
# Simulated beats of two kinds of people. Height, width and place of each of the five waves (P, Q,
# R, S, T) vary. An odd beat has no P wave, an early T wave, or a T wave that points down.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from polyspan import SubspaceOutlierDetector

rng = np.random.default_rng(0)
time = np.linspace(0, 0.8, 80)  # seconds
heights = np.array([0.15, -0.15, 1.0, -0.25, 0.3])
places = np.array([0.12, 0.22, 0.25, 0.29, 0.5])
widths = np.array([0.025, 0.01, 0.012, 0.012, 0.045])


def beat(odd=""):
    height = heights * rng.normal(1, 0.12, 5)
    place = places * rng.normal(1, 0.01, 5)
    width = widths * rng.normal(1, 0.08, 5)
    height[4] *= rng.choice([1, 2])
    if odd == "no P wave":
        height[0] = 0
    elif odd == "early T wave":
        place[4] -= 0.07
    elif odd == "T wave down":
        height[4] *= -0.6
    waves = height * np.exp(-(((time[:, None] - place) / width) ** 2) / 2)
    return waves.sum(axis=1) + 0.02 * rng.standard_normal(len(time))


kinds = ["no P wave", "early T wave", "T wave down"]
usual = np.array([beat() for _ in range(600)])
what = np.array([""] * 300 + kinds * 6)
new = np.array([beat(odd) for odd in what])

# %%
# Learn from usual beats, and judge the new ones. The area under the curve is 1 if every odd beat
# scores below every usual one.
detectors = {
    "SubspaceOutlierDetector": SubspaceOutlierDetector(),
    "IsolationForest": IsolationForest(random_state=0),
    "LocalOutlierFactor": LocalOutlierFactor(novelty=True),
}
scores = {name: model.fit(usual).score_samples(new) for name, model in detectors.items()}
for name, score in scores.items():
    for kind in kinds:
        rows = (what == "") | (what == kind)
        print(f"{name}, {kind}: {roc_auc_score(what[rows] != '', -score[rows]):.3f}")

# %%
# 18 of the new beats are odd. One of each kind is drawn over usual ones, and below it what each
# moment adds to its score.
detector = detectors["SubspaceOutlierDetector"]
why = detector.contributions(new)
figure, axes = plt.subplots(
    2, 3, figsize=(11, 4.6), layout="constrained", sharex=True, height_ratios=[2, 1]
)
for (top, below), kind in zip(axes.T, kinds, strict=True):
    row = np.flatnonzero(what == kind)[0]
    top.plot(time, usual[:60].T, color="0.85", lw=0.6)
    top.plot(time, new[row], "C3", lw=1.5)
    rank = int((scores["SubspaceOutlierDetector"] < scores["SubspaceOutlierDetector"][row]).sum())
    top.set_title(f"{kind}: place {rank + 1} of {len(new)}")
    below.bar(time, why[row], width=0.01, color="C3")
    below.set_xlabel("seconds")
axes[0, 0].set_ylabel("signal")
axes[1, 0].set_ylabel("contribution")
plt.show()
