"""Denoising: patches are shrunk towards subspaces that patches like them lie in."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from polyspan.base.arrays import limit_threads
from polyspan.base.inputs import require_numpy
from polyspan.base.private_sklearn import StrOptions, check_parameters
from polyspan.base.progress import Share, progress_bar
from polyspan.images.job import Job
from polyspan.images.own import PRESETS
from polyspan.images.planes import check_image
from polyspan.images.poisson import denoise_poisson
from polyspan.images.presets import n_threads
from polyspan.images.units import check_alpha, check_units
from polyspan.mixture import SubspaceMixture


def denoise_image(
    image: Any,
    sigma: Any = None,
    preset: str = "balanced",
    channel_axis: int | None = None,
    *,
    noise: str = "gaussian",
    gain: float | None = None,
    offset: float | None = None,
    read_noise: float | None = None,
    stack_axis: int | None = None,
    model: SubspaceMixture | str | None = None,
    return_std: bool = False,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Any:
    """Remove noise from a picture.

    The picture is cut into overlapping patches of 8×8 pixels. Each is compared with a mixture of
    Gaussians that was learned from photographs, and shrunk towards the likeliest of them. Then
    patches that look alike are gathered; those of one group lie near a subspace of their own, and
    are shrunk towards it. After both steps a linear map per kind of patch, which was learned too,
    corrects what they do wrong.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels; or a list of such pictures
        The picture, of 16×16 pixels or more. Integers are divided by the largest value of their
        type, as in scikit-image, and refused where all of them would be black then, as levels of 8
        bits in int64; floats are not changed. Leave an alpha channel out: one that is opaque
        everywhere is refused, and any other is taken for a colour. Tensors of PyTorch and
        arrays of CuPy are denoised on their device.
    sigma : float or array-like, default=None
        Standard deviation of the noise, in the units of the result: 25 levels of an 8-bit picture
        are 25 / 255. One number; or one per channel; or a map of the size of the picture. None:
        estimated, as by `estimate_noise`. For a JPEG that is often too low: give it if noise is
        left.
    preset : {"fast", "balanced", "best"}, default="balanced"
        "fast" leaves out groups of similar patches and takes a third of the time. "best" repeats
        the groups with better estimates and takes twice as long.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture. Brightness and
        differences of channels are denoised; similar patches are found by brightness. With more
        than four channels the subspace of their spectra is found first.
    noise : {"gaussian", "poisson", "correlated"}, default="gaussian"
        "gaussian": independent from pixel to pixel. Where `sigma` is None, a warning is given if it
        does not look so. "correlated": as after a blur, demosaicing or resizing; its spectrum is
        estimated from flat parts of the picture, and `sigma` and `model` must be None. All presets
        do the same then. Single pictures only. After JPEG "gaussian" with a given `sigma` is
        better. "poisson": it grows with the signal, as counts do. The picture is transformed so
        that its noise is even, and back without bias; integers are not divided by anything, and
        `sigma` must be None.
    gain, offset, read_noise : float, default=None
        For `noise="poisson"`: the value of one count, that of a pixel without signal, and the
        standard deviation of the noise of reading out, 0 if there is none; in the units of the
        picture. None: estimated; but with a gain and a read noise the offset is 0.
    stack_axis : int or None, default=None
        Which axis holds the slices of a volume, or the frames of a film. Similar patches are looked
        for in neighbouring slices too. `preset` and `model` are not used then, but for slices that
        have nothing in common. None: there is one picture.
    model : SubspaceMixture, "own" or None, default=None
        What patches are compared with. A mixture fitted to patches of one plane without noise, as
        `extract_patches` returns them, in the units of the picture: it needs noise that is equally
        strong everywhere, and at most four channels. "own": a mixture that is learned from the
        picture. None: what was learned from photographs; but a mixture of its own for a picture
        that is unlike them, as patterns of two colours are, or that has less noise than they were
        learned with.
    return_std : bool, default=False
        Whether to return the expected error of each pixel as well. Not for volumes. Pictures with
        correlated noise, or with a mixture of their own, are denoised twice for it.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of patches to learn from, and of the starts, for `model="own"`.
    n_jobs : int or None, default=None
        Number of threads; None means 1, -1 all. The result does not depend on it.
    progress : bool, default=False
        Whether to show a progress bar; needs the package rich.

    Returns
    -------
    denoised : array of the same shape
        The picture without noise; float32 where the picture is float16 or float32, else float64.
    std : array of the same shape
        Square root of the expected squared error of each pixel. Only with `return_std`.

    Notes
    -----
    Memory beyond the picture: about six float32 copies of it.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.images import denoise_image
    >>> rng = np.random.default_rng(0)
    >>> clean = (np.indices((48, 48)).sum(axis=0) % 16 < 8) * 1.0
    >>> noisy = clean + 0.3 * rng.standard_normal(clean.shape)
    >>> denoised = denoise_image(noisy, sigma=0.3)
    >>> bool(np.abs(denoised - clean).mean() < 0.5 * np.abs(noisy - clean).mean())
    True
    """
    check_parameters(
        "denoise_image",
        preset=(preset, [StrOptions(set(PRESETS))]),
        channel_axis=(channel_axis, [Integral, None]),
        model=(model, [SubspaceMixture, StrOptions({"own"}), None]),
        return_std=(return_std, ["boolean"]),
        random_state=(random_state, ["random_state"]),
        noise=(noise, [StrOptions({"gaussian", "poisson", "correlated"})]),
        gain=(gain, [Real, None]),
        offset=(offset, [Real, None]),
        read_noise=(read_noise, [Real, None]),
        stack_axis=(stack_axis, [Integral, None]),
        n_jobs=(n_jobs, [Integral, None]),
        progress=(progress, ["boolean"]),
    )
    _check_together(
        noise, sigma, (gain, offset, read_noise), stack_axis, model, return_std=return_std
    )
    threads = n_threads(n_jobs)
    job = Job(preset, noise, model, return_std, random_state, threads)

    def one(picture: Any, share: Share) -> Any:
        pixels = check_image(picture, channel_axis, stack_axis)
        check_alpha(pixels, channel_axis)
        if noise != "poisson":
            check_units(pixels, sigma)
            return job.denoise(picture, sigma, channel_axis, stack_axis, share)
        require_numpy('denoise_image with noise="poisson"', image=picture)
        return denoise_poisson(
            picture,
            lambda even, sigma: job.denoise(even, sigma, channel_axis, stack_axis, share),
            gain,
            offset,
            read_noise=read_noise,
            channel_axis=channel_axis,
            stack_axis=stack_axis,
            return_std=return_std,
        )

    with limit_threads(0.0, 2), progress_bar(progress, 1, "denoise") as advance:
        share = Share(lambda part: advance(advance=part))
        if not is_list_of_pictures(image):
            return one(image, share)
        found = [one(picture, share.of(len(image))) for picture in image]
        return tuple(map(list, zip(*found, strict=True))) if return_std else found


def _check_together(
    noise: str,
    sigma: Any,
    counts: tuple[float | None, ...],
    stack_axis: int | None,
    model: Any,
    *,
    return_std: bool,
) -> None:
    """Raise an error where parameters do not go together."""
    if noise != "gaussian" and sigma is not None:
        raise ValueError(
            f"sigma={sigma!r} with noise={noise!r}: the noise is estimated, leave it out"
        )
    if noise != "poisson" and any(one is not None for one in counts):
        raise ValueError(
            f'gain, offset and read_noise with noise={noise!r}: they need noise="poisson"'
        )
    if noise == "poisson" and isinstance(model, SubspaceMixture):
        raise ValueError(
            'model= a mixture with noise="poisson": counts are transformed to other units than '
            'those of its patches; leave model out, or use model="own"'
        )
    if noise == "correlated" and model is not None:
        raise ValueError(
            'model= with noise="correlated": a mixture of its own is learned from patches whose '
            "noise was made white; leave model out"
        )
    if noise == "correlated" and stack_axis is not None:
        raise ValueError(
            f'noise="correlated" with stack_axis={stack_axis}: it is known for single pictures '
            "only; give a list of slices, or leave one of the two out"
        )
    if return_std and stack_axis is not None:
        raise ValueError(
            f"return_std=True with stack_axis={stack_axis}: expected errors are known for single "
            "pictures only, leave one of the two out"
        )


def is_list_of_pictures(image: Any) -> bool:
    """Tell a list of arrays from a picture that is written as a list of numbers."""
    return (
        isinstance(image, list | tuple)
        and len(image) > 0
        and all(getattr(one, "ndim", 0) >= 2 for one in image)
    )
