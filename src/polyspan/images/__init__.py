"""Remove noise from pictures, and fill their missing pixels."""

from polyspan.images.denoise import denoise_image
from polyspan.images.inpaint import inpaint_image
from polyspan.images.noise import estimate_noise

__all__ = ["denoise_image", "estimate_noise", "inpaint_image"]


def __dir__() -> list[str]:
    return __all__
