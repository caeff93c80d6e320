"""
Remove letters from a photograph
================================

:func:`~polyspan.images.inpaint_image` fills the pixels of a mask from what is around them. All
other pixels stay as they are.
"""

# %%
# Part of a photograph that comes with scikit-learn (by danielbuechele, CC BY 2.0), covered by
# letters and scratches.
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy.interpolate import griddata
from sklearn.datasets import load_sample_image

from polyspan.images import inpaint_image

truth = load_sample_image("china.jpg")[60:190, 180:340] / 255
cover = Image.new("1", truth.shape[1::-1])
pen = ImageDraw.Draw(cover)
for line in range(4):
    pen.text((4, 2 + 32 * line), "covered by letters", True, ImageFont.load_default(18))
pen.line([(0, 120), (100, 15), (159, 50)], True, 3)
mask = np.array(cover)
print(f"covered: {mask.mean():.0%} of the pixels")

# %%
# For comparison, linear interpolation between the pixels around.
at = np.argwhere(~mask)
linear = truth.copy()
linear[mask] = griddata(at, truth[~mask], np.argwhere(mask), method="linear")
nearest = griddata(at, truth[~mask], np.argwhere(mask), method="nearest")
linear[mask] = np.where(np.isnan(linear[mask]), nearest, linear[mask])
pictures = {
    "linear interpolation": linear,
    "inpaint_image": inpaint_image(truth, mask, channel_axis=-1),
}

# %%
# PSNR of the covered pixels: higher is nearer to the truth.
figure, axes = plt.subplots(2, 2, figsize=(9, 7.2), layout="constrained")
axes[0, 0].imshow(truth)
axes[0, 0].set_title("truth")
axes[0, 1].imshow(np.where(mask[..., None], [1.0, 0.9, 0.2], truth))
axes[0, 1].set_title("covered")
for ax, (name, picture) in zip(axes[1], pictures.items(), strict=True):
    error = -10 * np.log10(np.mean((picture - truth)[mask] ** 2))
    ax.imshow(picture.clip(0, 1))
    ax.set_title(f"{name}: {error:.1f} dB")
for ax in axes.flat:
    ax.set_axis_off()
plt.show()
