"""
Clean a photo
=============

A photo that was taken in the dark has *noise*: every pixel is a little too bright or too dark.
Other photos have missing pixels, such as scratches or dead spots. This tutorial mends both:

1. estimate how strong the noise is;
2. remove it;
3. ask how good the result is;
4. fill missing pixels;
5. save the result.

Pictures are made of small patches. Patches of one kind, such as edges of one slant, lie near a
subspace with few dimensions. Noise does not. This is how both can be told apart.
"""

# %%
# The photo
# ---------
# We take a small part of a photo that comes with Matplotlib, in gray. It shows Grace Hopper, a
# pioneer of programming. Values are between 0 (black) and 1 (white). The photo is clean, so we add
# noise ourselves. We also keep the clean photo, to check the result. With your own photo you do not
# have it.
#
# Your own photo is read by ``plt.imread("photo.png")``.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

with get_sample_data("grace_hopper.jpg") as file:
    photo = plt.imread(file, format="jpg")
clean = photo[135:263, 165:293].mean(axis=2) / 255
rng = np.random.default_rng(0)
noisy = clean + 0.1 * rng.standard_normal(clean.shape)


def show(pictures):
    """Draw pictures side by side, missing pixels in red."""
    colours = plt.colormaps["gray"].with_extremes(bad="tab:red")
    n = len(pictures)
    _, axes = plt.subplots(1, n, figsize=(3 * n, 3.3), layout="constrained")
    for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(picture, cmap=colours, vmin=0, vmax=1)
        ax.set_title(title)
        ax.set_axis_off()


show({"clean (not known)": clean, "noisy (what we have)": noisy})
plt.show()

# %%
# 1. How strong is the noise?
# ---------------------------
# :func:`~polyspan.images.estimate_noise` looks at the flat parts of the photo. It returns the
# typical error of a pixel (the standard deviation of the noise). We added .1.
from polyspan.images import estimate_noise

print(f"estimated noise: {estimate_noise(noisy):.3f}")

# %%
# The unit is that of the picture. An estimate of .1 means 10 % of the way from black to white. If
# the estimate is far below 2 of 255 levels (.008), there is not much to clean.
#
# 2. Remove the noise
# -------------------
# :func:`~polyspan.images.denoise_image` needs no settings. It estimates the noise by itself.
# ``preset`` chooses between speed and quality. For a photo in colour add ``channel_axis=-1``.
from polyspan.images import denoise_image

presets = ("fast", "balanced", "best")
results = {preset: denoise_image(noisy, preset=preset) for preset in presets}
show(results)
plt.show()

# %%
# How near are they to the clean photo? We use the root of the mean squared error, in the unit of
# the picture. So these numbers can be compared with the noise.


def error(picture):
    """Return the typical error of a pixel."""
    return np.sqrt(np.mean((picture - clean) ** 2))


print(f"noisy     {error(noisy):.3f}")
for preset, result in results.items():
    print(f"{preset:9s} {error(result):.3f}")

# %%
# The error is less than half of what it was. The presets differ little. Take ``"fast"`` for many
# photos or a first look. Keep the default, ``"balanced"``, for the rest. ``"best"`` takes the
# longest time, and is hardly better.
#
# 3. How good is the result, without the clean photo?
# ---------------------------------------------------
# In practice there is no clean photo. Two checks help.
#
# **First check: what was removed.** Subtract the result from the noisy photo. The difference must
# look like noise: even, without edges or shapes of the photo. If you see shapes, then detail was
# removed as well.
#
# **Second check: the expected error.** ``return_std=True`` also returns how large the error of each
# pixel is expected to be. It is larger in fine detail than in flat parts.
denoised, expected = denoise_image(noisy, return_std=True)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
removed = left.imshow(noisy - denoised, cmap="gray", vmin=-0.3, vmax=0.3)
left.set_title("what was removed")
figure.colorbar(removed, ax=left)
spread = right.imshow(expected, cmap="viridis", vmin=0)
right.set_title("expected error of each pixel")
figure.colorbar(spread, ax=right)
for ax in (left, right):
    ax.set_axis_off()
plt.show()

# %%
# The expected error can be compared with the true one here, because we have the clean photo. About
# two thirds of the pixels should be nearer to the truth than their expected error. Nearly all
# should be nearer than twice of it.
true = np.abs(denoised - clean)
print(f"expected error: {np.sqrt(np.mean(expected**2)):.3f}")
print(f"true error:     {error(denoised):.3f}")
print(f"pixels within the expected error: {np.mean(true < expected):.0%}")
print(f"pixels within twice of it:        {np.mean(true < 2 * expected):.0%}")

# %%
# The expected error is honest for noise of this kind. Two other kinds need a setting:
#
# - Few photons (microscopes, telescopes): noise grows with brightness. Use ``noise="poisson"``.
# - Noise that was blurred or resized is soft, without fine grain. A warning tells you. Use
#   ``noise="correlated"``.
#
# 4. Fill missing pixels
# ----------------------
# Now a fifth of the pixels is missing, and there are two scratches. A *mask* says where:
# it is ``True`` for a missing pixel. :func:`~polyspan.images.inpaint_image` fills these pixels. All
# others stay as they are.
from polyspan.images import inpaint_image

rows, columns = np.indices(clean.shape)
mask = rng.random(clean.shape) < 0.2
mask |= (np.abs(rows - columns) < 2) | (np.abs(rows + columns - 128) < 2)
scratched = np.where(mask, np.nan, clean)
filled = inpaint_image(scratched, mask, preset="fast")

show({"scratched": scratched, "filled": filled, "clean (not known)": clean})
plt.show()

# %%
# Does it work? Only the missing pixels count. Compare with the simplest answer, the mean of the
# photo.
for name, found in {
    "mean of the photo": np.full(clean.shape, np.nanmean(scratched)),
    "inpaint_image": filled,
}.items():
    missed = np.sqrt(np.mean((found - clean)[mask] ** 2))
    print(f"error of missing pixels, {name}: {missed:.3f}")

# %%
# With your own photo you can measure the same. Hide some more pixels that you do have, fill them
# all, and compare. Here we hide another tenth.
hidden = ~mask & (rng.random(mask.shape) < 0.1)
again = inpaint_image(scratched, mask | hidden, preset="fast")
measured = np.sqrt(np.mean((again - clean)[hidden] ** 2))
print(f"error of hidden pixels: {measured:.3f}")

# %%
# The hidden pixels tell nearly the same as the truth. A large hole, such as a whole object, becomes
# smooth: the function does not invent what nobody has seen.
#
# If a photo is noisy *and* has missing pixels, fill it first, and then remove the noise.
#
# 5. Save
# -------
# Results can leave the range from 0 to 1 a little. Cut them off, and turn them into whole numbers
# from 0 to 255. Pillow, which comes with Matplotlib, writes the file.
import tempfile
from pathlib import Path

from PIL import Image

cut = np.clip(denoised, 0, 1)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "denoised.png"
    Image.fromarray(np.round(255 * cut).astype(np.uint8)).save(path)
    saved = plt.imread(path)
print(f"largest change by saving: {np.abs(saved - cut).max():.4f}")

# %%
# The file has 256 levels of gray, so values change by at most .002. Use ``np.save`` if you compute
# with the result later.
#
# The same from a shell, without Python: ``polyspan denoise photo.png`` and
# ``polyspan inpaint photo.png --mask mask.png``.
