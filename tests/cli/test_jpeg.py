"""The noise of a JPEG: what its tables and its sampling tell, and where `denoise` warns."""

import io

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from polyspan.cli.jpeg import Compression, hidden_noise, measured_noise
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
    level, doubt = measured_noise(Compression.of(image), np.asarray(image))
    # Where colours are whole, the level is the estimate.
    assert level == 255 * estimate_noise(np.asarray(image), None if clean.ndim == 2 else -1)
    assert (doubt is not None) == warned
    # The reason: too low by a quarter or more, or of a clean picture not to be told from that.
    if sigma:
        assert (level < 0.75 * sigma) == warned


@pytest.mark.parametrize("subsampling", [1, 2])
@pytest.mark.parametrize("quality", [60, 75, 90, 95, 100])
@pytest.mark.parametrize("sigma", [10, 13, 20, 50])
def test_the_tables_tell_the_noise_where_colours_are_halved(sigma, quality, subsampling):
    image = as_jpeg(noisy(COLOUR, sigma), quality=quality, subsampling=subsampling)
    level, _ = measured_noise(Compression.of(image), np.asarray(image))
    assert 0.7 * sigma < level < 1.3 * sigma


def test_faint_noise_of_halved_colours_is_warned_of():
    for sigma, quality, warned in ((2, 60, True), (5, 75, True), (13, 95, False), (3, 100, False)):
        image = as_jpeg(noisy(COLOUR, sigma), quality=quality)
        level, doubt = measured_noise(Compression.of(image), np.asarray(image))
        assert (doubt is not None) == warned
        assert level > 0.7 * sigma


def test_tables_that_cannot_be_written_leave_the_estimate(monkeypatch):
    image = as_jpeg(noisy(COLOUR, 10), quality=90)

    def refuse(*_):
        raise ValueError

    monkeypatch.setattr(Compression, "apply", refuse)
    level, doubt = measured_noise(Compression.of(image), np.asarray(image))
    assert 7 < level < 13
    assert doubt is None


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
    noisy(SMOOTH, 2).save("gray.jpg", quality=75)
    said = " ".join(run("denoise", "gray.jpg", "-q").output.split())
    assert "warning: gray.jpg: the noise of this JPEG cannot be measured well" in said
    assert "Little is removed. Give --sigma: try 5, 10, 20" in said
    noisy(SMOOTH, 10).save("gray.jpg", quality=75)
    said = " ".join(run("denoise", "gray.jpg", "-q", "--force").output.split())
    assert "levels are removed. If noise is left, give --sigma" in said
    noisy(COLOUR, 5).save("photo.jpg", quality=75)
    said = " ".join(run("denoise", "photo.jpg", "-q").output.split())
    assert "So much is removed. If detail is lost, give --sigma" in said
    assert "warning" not in run("denoise", "photo.jpg", "--sigma", 5, "--force").output
    noisy(COLOUR, 13).save("photo.png")
    assert "warning" not in run("denoise", "photo.png").output
    noisy(COLOUR, 13).save("fine.jpg", quality=95, subsampling=0)
    assert "warning" not in run("denoise", "fine.jpg").output


@pytest.mark.parametrize("quality", [75, 95])
def test_denoise_cleans_a_jpeg_with_halved_colours(run, tmp_path, quality):
    noisy(COLOUR, 20).save("photo.jpg", quality=quality)
    done = run("denoise", "photo.jpg", "-o", "out.png", "--preset", "fast")
    assert done.exit_code == 0, done.output
    before, after = (np.asarray(Image.open(name)) - COLOUR for name in ("photo.jpg", "out.png"))
    assert np.sqrt(np.mean(after**2)) < 0.45 * np.sqrt(np.mean(before**2))
