"""Where the estimate of the noise of a JPEG cannot be right, `denoise` says so."""

import io

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from polyspan.cli.jpeg import Compression, hidden_noise, warning_about
from polyspan.images import estimate_noise

Y, X = np.mgrid[:160, :200]
SMOOTH = 128 + 50 * np.sin(X / 25) * np.cos(Y / 31) + 25 * (X > 100)
COLOUR = np.dstack([SMOOTH, SMOOTH[::-1], 255 - SMOOTH])


def noisy(clean, sigma):
    values = clean + sigma * np.random.default_rng(1).standard_normal(clean.shape)
    return Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8))


def as_jpeg(image, **options):
    content = io.BytesIO()
    image.save(content, "JPEG", **options)
    return Image.open(content)


@pytest.mark.parametrize(
    ("clean", "sigma", "options", "warned"),
    [
        # Colours that are halved in both directions hide all noise, at every quality.
        (COLOUR, 13, {"quality": 95}, True),
        (COLOUR, 13, {"quality": 75}, True),
        (COLOUR, 13, {"quality": 95, "subsampling": 0}, False),
        (COLOUR, 5, {"quality": 75, "subsampling": 0}, True),
        (COLOUR, 3, {"quality": 100, "subsampling": 0}, False),
        # Of gray pictures the steps of the table decide.
        (SMOOTH, 10, {"quality": 50}, True),
        (SMOOTH, 10, {"quality": 75}, True),
        (SMOOTH, 10, {"quality": 95}, False),
        (SMOOTH, 25, {"quality": 75}, False),
        (SMOOTH, 2, {"quality": 90}, True),
        (SMOOTH, 2, {"quality": 100}, False),
        (SMOOTH, 0, {"quality": 75}, True),
        (SMOOTH, 0, {"quality": 100}, False),
    ],
)
def test_it_warns_where_the_estimate_is_wrong(clean, sigma, options, warned):
    image = as_jpeg(noisy(clean, sigma), **options)
    estimate = 255 * estimate_noise(np.asarray(image), None if clean.ndim == 2 else -1)
    assert (warning_about(Compression.of(image), estimate) is not None) == warned
    # The reason: too low by a quarter or more, or of a clean picture not to be told from that.
    if sigma:
        assert (estimate < 0.75 * sigma) == warned


def test_what_is_hidden_is_what_would_be_estimated_alike():
    image = as_jpeg(noisy(SMOOTH, 10), quality=75)
    estimate = 255 * estimate_noise(np.asarray(image))
    assert estimate < 7.5
    assert 7 < hidden_noise(Compression.of(image), estimate) < 12
    # Coarser tables hide more.
    hidden = [
        hidden_noise(Compression.of(as_jpeg(noisy(SMOOTH, 0), quality=quality)), 0.5)
        for quality in (30, 50, 75, 90, 98)
    ]
    assert hidden == sorted(hidden, reverse=True)
    assert hidden[-1] < 1 < 5 < hidden[0]


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_a_compression_is_repeated_as_it_was(mode):
    image = as_jpeg(noisy(COLOUR, 5).convert(mode), quality=83)
    compression = Compression.of(image)
    again = as_jpeg(image, qtables=compression.tables, subsampling=compression.sampling)
    assert list(again.quantization.values()) == compression.tables
    assert JpegImagePlugin.get_sampling(again) == compression.sampling
    assert compression.apply(np.asarray(image)).shape == np.asarray(image).shape
    assert Compression.of(noisy(COLOUR, 5)) is None


def test_denoise_warns(run, tmp_path):
    noisy(COLOUR, 13).save("photo.jpg", quality=95)
    done = run("denoise", "photo.jpg", "-q")
    assert done.exit_code == 0, done.output
    assert "warning: photo.jpg is a JPEG, whose compression removes fine noise" in done.output
    assert "give --sigma" in done.output
    assert "warning" not in run("denoise", "photo.jpg", "--sigma", 13, "--force").output
    noisy(COLOUR, 13).save("photo.png")
    assert "warning" not in run("denoise", "photo.png").output
    noisy(COLOUR, 13).save("fine.jpg", quality=95, subsampling=0)
    assert "warning" not in run("denoise", "fine.jpg").output
