"""
Remove noise from a hyperspectral picture
=========================================

A hyperspectral picture has a hundred channels instead of three. Most of them show the same fields,
so that the spectra of all pixels lie near a subspace.
:func:`~polyspan.images.denoise_image` uses both: similar places, and similar channels.
"""

# %%
# Indian Pines shows farmland from the air. The package tensorly brings it. We take every second of
# its 200 channels, and add noise of which we know the level.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from tensorly.datasets import load_indian_pines

from polyspan.images import denoise_image

cube = np.asarray(load_indian_pines().tensor, dtype=float)[:, :, ::2]
clean = (cube - cube.min()) / (cube.max() - cube.min())
sigma = 0.1
noisy = clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)


def psnr(picture):
    return -10 * np.log10(np.mean((picture - clean) ** 2))


# %%
# The usual tool is PCA of the spectra. Its best rank is not known in practice. Here it is chosen
# with the clean picture in sight, which favours PCA. The noise level is given to ``denoise_image``.
flat = noisy.reshape(-1, clean.shape[2])
by_rank = {}
for rank in range(1, 9):
    pca = PCA(rank, random_state=0)
    by_rank[rank] = pca.inverse_transform(pca.fit_transform(flat)).reshape(clean.shape)
best = max(by_rank, key=lambda rank: psnr(by_rank[rank]))
results = {
    "clean": clean,
    "with noise": noisy,
    f"PCA, best rank ({best})": by_rank[best],
    "denoise_image": denoise_image(noisy, sigma, channel_axis=-1),
}

# %%
# One of the channels. More decibels (dB) mean less error, over all channels.
figure, axes = plt.subplots(1, 4, figsize=(11, 3.3), layout="constrained")
low, high = np.percentile(clean[:, :, 12], [1, 99])
for ax, (name, picture) in zip(axes, results.items(), strict=True):
    ax.imshow(picture[:, :, 12], cmap="gray", vmin=low, vmax=high)
    error = "" if name == "clean" else f"\n{psnr(picture):.1f} dB"
    ax.set(title=name + error, xticks=[], yticks=[])
plt.show()
