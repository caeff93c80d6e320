"""
A stream whose subspaces move
=============================

Samples come in batches and are not kept. ``partial_fit`` of :class:`~polyspan.MiCUSaL` learns from
each batch, and ``forget_factor`` says how fast the past fades.
"""

# %%
# Three planes in 20 dimensions. After 30 batches the first one starts to turn.
import matplotlib.pyplot as plt
import numpy as np

from polyspan import MiCUSaL
from polyspan.metrics import average_subspace_distance

rng = np.random.default_rng(0)
frame = np.linalg.qr(rng.standard_normal((20, 7)))[0]


def true_bases(batch):
    angle = np.deg2rad(1.0) * max(0, batch - 30)
    turned = np.cos(angle) * frame[:, 0] + np.sin(angle) * frame[:, 6]
    return np.stack([np.column_stack([turned, frame[:, 1]]), frame[:, 2:4], frame[:, 4:6]])


def samples(batch, n=20):
    X = np.concatenate([rng.standard_normal((n, 2)) @ basis.T for basis in true_bases(batch)])
    return X + 0.1 * rng.standard_normal(X.shape)


# %%
# Each batch has 60 samples. With a factor of 0.8, a batch counts 0.8 of the next one.
errors = {1.0: [], 0.8: []}
models = {
    factor: MiCUSaL(3, 2, center=False, forget_factor=factor, n_init=10, random_state=0)
    for factor in errors
}
for batch in range(90):
    X = samples(batch)
    for factor, model in models.items():
        model.partial_fit(X)
        errors[factor].append(average_subspace_distance(model.bases_, true_bases(batch)))

# %%
# The distance to the truth of the moment, after each batch.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for factor, name in ((1.0, "forgets nothing (1.0)"), (0.8, "forgets (0.8)")):
    ax.plot(np.arange(1, 91), errors[factor], label=name)
ax.axvline(30, color="0.7", ls="--")
ax.text(
    31, 0.97, "a plane starts to turn", transform=ax.get_xaxis_transform(), va="top", color="0.4"
)
ax.set(xlabel="batches seen", ylabel="mean distance to the true subspaces", ylim=0)
ax.legend(title="forget_factor", loc="upper left")
plt.show()
