"""
Remove noise from a photograph
==============================

:func:`~polyspan.images.denoise_image` finds the strength of the noise, removes it, and says how far
off each pixel may be.
"""

# %%
# Part of a photograph that comes with Matplotlib, and white noise of 25 of 255 levels.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.signal import wiener

from polyspan.images import denoise_image, estimate_noise

with get_sample_data("grace_hopper.jpg") as file:
    truth = plt.imread(file, format="jpg")[75:255, 150:330] / 255
noisy = truth + 25 / 255 * np.random.default_rng(0).standard_normal(truth.shape)
print(f"noise: {255 * estimate_noise(noisy, channel_axis=-1):.1f} levels")

# %%
# A Wiener filter, as SciPy has it, and denoising by groups of similar patches.
denoised, std = denoise_image(noisy, channel_axis=-1, return_std=True)
pictures = {
    "with noise": noisy,
    "Wiener filter": wiener(noisy, (5, 5, 1), (25 / 255) ** 2),
    "denoise_image": denoised,
}


# %%
# PSNR is higher where the picture is nearer to the truth. The last picture is the error that
# ``denoise_image`` expects: edges are less sure than smooth parts.
def psnr(picture):
    return -10 * np.log10(np.mean((picture - truth) ** 2))


figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained")
for ax, (name, picture) in zip(axes, pictures.items(), strict=False):
    ax.imshow(picture.clip(0, 1))
    ax.set_title(f"{name}: {psnr(picture):.1f} dB")
shown = axes[3].imshow(255 * std.mean(axis=2), cmap="magma")
axes[3].set_title("expected error")
figure.colorbar(shown, ax=axes[3], label="levels of 255", shrink=0.85)
for ax in axes:
    ax.set_axis_off()
plt.show()
