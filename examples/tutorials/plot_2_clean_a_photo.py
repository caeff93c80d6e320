"""
Clean a photo
=============

A picture that was taken in the dark has *noise*: every pixel is a little too bright or too dark.
Other pictures have missing pixels, such as scratches. This tutorial mends both:

1. estimate how strong the noise is;
2. remove it;
3. ask how good the result is;
4. fill missing pixels;
5. save the result.

The idea: cut the picture into *patches*, small squares of pixels. Patches of one kind, such as
edges of one slant, are nearly weighted sums of a few basic patches. Noise is not. So both can be
told apart.
"""

# %%
# The picture
# -----------
# We take a part of a photo of Grace Hopper that comes with Matplotlib, in gray. Values are between
# 0 (black) and 1 (white). The picture is clean, so we add noise ourselves. We keep the clean
# picture to check the result. You do not have it for your own pictures.
#
# Your own picture is read by ``plt.imread("photo.png")``. If it is in colour, its shape has a third
# number: add ``channel_axis=-1`` to every call below. If that number is 4, the last channel is
# transparency: leave it out by ``[..., :3]``.
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
# :func:`~polyspan.images.estimate_noise` looks at the flat parts of the picture. It returns the
# *noise level*: the typical error of a pixel (its standard deviation). We added .1.
from polyspan.images import estimate_noise

print(f"estimated noise: {estimate_noise(noisy):.3f}")

# %%
# The unit is that of the picture: .1 is 10 % of the way from black to white. If the estimate is far
# below .008, which is 2 of 255 levels of gray, there is not much to clean. A JPEG is an exception:
# compression hides noise. Give the level yourself, such as ``denoise_image(noisy, 0.04)``.
#
# 2. Remove the noise
# -------------------
# :func:`~polyspan.images.denoise_image` needs no settings. It estimates the noise by itself.
# ``preset`` chooses between speed and quality.
from polyspan.images import denoise_image

presets = ("fast", "balanced", "best")
results = {preset: denoise_image(noisy, preset=preset) for preset in presets}
show(results)
plt.show()

# %%
# Look at the nose, which should be smooth, and at the glasses, which should stay sharp.
# How near are the results to the clean picture? We take the root of the mean squared error. It has
# the unit of the picture, so it can be compared with the noise level.


def error(picture):
    """Return the typical error of a pixel."""
    return np.sqrt(np.mean((picture - clean) ** 2))


print(f"noisy     {error(noisy):.3f}")
for preset, result in results.items():
    print(f"{preset:9s} {error(result):.3f}")

# %%
# The error is less than half of what it was, and the presets differ little. Take ``"fast"`` for
# many pictures. Otherwise keep the default, ``"balanced"``.
#
# 3. How good is the result, without the clean picture?
# -----------------------------------------------------
# Two checks help.
#
# **First check: what was removed.** Subtract the result from the noisy picture. The difference must
# look like noise: even, without edges or shapes. If you see shapes, detail was removed as well.
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
# Left, no shape of the face is visible. Right, the error is larger at the glasses than on the nose.
#
# Here we can compare the expected error with the true one. About two thirds of the pixels should be
# nearer to the truth than their expected error. Nearly all should be nearer than twice of it.
true = np.abs(denoised - clean)
print(f"expected error: {np.sqrt(np.mean(expected**2)):.3f}")
print(f"true error:     {error(denoised):.3f}")
print(f"pixels within the expected error: {np.mean(true < expected):.0%}")
print(f"pixels within twice of it:        {np.mean(true < 2 * expected):.0%}")

# %%
# So the expected error is honest for this noise. Two other kinds need a setting
# (:doc:`/guide/noise`):
#
# - Few photons (microscopes, telescopes): noise grows with brightness. Use ``noise="poisson"``.
# - Noise that was blurred or resized is soft, without fine grain. A warning tells you. Use
#   ``noise="correlated"``.
#
# 4. Fill missing pixels
# ----------------------
# Now a fifth of the pixels is missing, and there are two scratches. A *mask* is ``True`` for a
# missing pixel. :func:`~polyspan.images.inpaint_image` fills these pixels, red in the figure. All
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
# The scratches are gone, and the glasses are whole. How near is it? Only the missing pixels count.
# Compare with the simplest answer, the mean of the picture.
for name, found in {
    "mean of the picture": np.full(clean.shape, np.nanmean(scratched)),
    "inpaint_image": filled,
}.items():
    missed = np.sqrt(np.mean((found - clean)[mask] ** 2))
    print(f"error of missing pixels, {name}: {missed:.3f}")

# %%
# With your own picture, hide another tenth of the pixels, fill all, and compare.
hidden = ~mask & (rng.random(mask.shape) < 0.1)
again = inpaint_image(scratched, mask | hidden, preset="fast")
measured = np.sqrt(np.mean((again - clean)[hidden] ** 2))
print(f"error of hidden pixels: {measured:.3f}")

# %%
# The hidden pixels say nearly the same as the truth. A large missing part becomes smooth: nothing
# is invented.
#
# If a picture is noisy *and* has missing pixels, fill it first, then remove the noise.
#
# 5. Save
# -------
# Results can leave the range from 0 to 1 a little. Cut them off, and make them whole numbers from 0
# to 255. Pillow, which comes with Matplotlib, writes the file.
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
# The same from a shell: :doc:`/guide/cli-pictures`. All options: :doc:`/guide/denoise` and
# :doc:`/guide/inpaint`. How it works: :doc:`/how/pictures`.
