"""Mixtures of patches that are kept for other pictures; outputs that are pipes; holes of NaN."""

import os

import numpy as np
import pytest
import tifffile
from PIL import Image

from polyspan import MiCUSaL, SubspaceMixture, load_model, save_model
from polyspan.images import denoise_image, inpaint_image
from polyspan.images.mixtures import learn_mixture

RNG = np.random.default_rng(0)
WAVES = 120 + 60 * np.sin(np.arange(48) / 3) * np.cos(np.arange(40)[:, None] / 4)
COLOUR = np.dstack([WAVES, 0.8 * WAVES, WAVES[::-1]])
MASK = RNG.random(WAVES.shape) < 0.3


def saved(pixels, path):
    pixels = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def noisy(clean, seed=1):
    return clean + 15 * np.random.default_rng(seed).standard_normal(clean.shape)


def ran(run, *words):
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done.output


def loaded(path):
    return np.asarray(Image.open(path))


@pytest.mark.parametrize("clean", [WAVES, COLOUR])
def test_denoise_learns_once_and_applies_later(run, tmp_path, clean):
    pixels = saved(noisy(clean), "a.png")
    words = ("denoise", "a.png", "--sigma", 15, "--preset", "fast")
    said = ran(run, *words, "--model", "own", "--save-model", "m.skops")
    assert "mixture of patches saved: m.skops" in said
    assert isinstance(load_model("m.skops"), SubspaceMixture)
    ran(run, *words, "--model", "m.skops", "-o", "again.png")
    np.testing.assert_array_equal(loaded("again.png"), loaded("a-denoised.png"))
    axis = None if clean.ndim == 2 else -1
    model = load_model("m.skops")
    expected = denoise_image(pixels, 15 / 255, "fast", axis, model=model)
    np.testing.assert_array_equal(loaded("again.png"), np.rint(255 * expected.clip(0, 1)))
    # On a picture of the same kind that it has not seen.
    other = clean[:, ::-1]
    seen = saved(noisy(other, seed=2), "b.png")
    ran(run, "denoise", "b.png", "--model", "m.skops", "--sigma", 15)
    after = loaded("b-denoised.png").astype(float)
    assert np.square(after - other).mean() < 0.3 * np.square(seen - other).mean()


def test_a_mixture_knows_patches_without_the_noise_that_it_was_learned_from():
    pixels = noisy(WAVES) / 255
    model = learn_mixture(pixels, 15 / 255, "fast")
    assert model.noise_variances_.max() < 1e-3 * (15 / 255) ** 2
    large = learn_mixture(1e9 * pixels, 1e9 * 15 / 255, "fast")
    np.testing.assert_allclose(large.variances_ / 1e18, model.variances_, rtol=0.05)


@pytest.mark.parametrize("clean", [WAVES, COLOUR])
def test_inpaint_learns_once_and_applies_later(run, tmp_path, clean):
    holes = MASK if clean.ndim == 2 else MASK[..., None]
    saved(np.where(holes, 0, clean), "a.png")
    saved(255 * MASK, "mask.png")
    words = ("inpaint", "a.png", "--mask", "mask.png")
    said = ran(run, *words, "--save-model", "m.skops")
    assert "mixture of patches saved: m.skops" in said
    ran(run, *words, "--model", "m.skops", "-o", "again.png")
    np.testing.assert_array_equal(loaded("again.png"), loaded("a-inpainted.png"))
    assert np.abs(loaded("again.png") - clean)[MASK].mean() < 3


@pytest.mark.parametrize("clean", [WAVES, COLOUR])
def test_without_a_mask_nan_are_filled(run, tmp_path, clean):
    holes = np.random.default_rng(3).random(clean.shape) < 0.2
    values = np.where(holes, np.nan, clean).astype(np.float32)
    kind = "minisblack" if clean.ndim == 2 else "rgb"
    tifffile.imwrite("holes.tif", values, photometric=kind)
    said = ran(run, "inpaint", "holes.tif", "--preset", "fast")
    assert f"{holes.sum()} of {holes.size} {'pixels' if clean.ndim == 2 else 'values'}" in said
    expected = inpaint_image(values, None, "fast", None if clean.ndim == 2 else -1)
    np.testing.assert_array_equal(tifffile.imread("holes-inpainted.tif"), expected)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("denoise", "a.png", "--save-model", "m.skops"), 1, "add --model own, which learns"),
        (("denoise", "a.png", "--model", "k.skops", "--save-model", "m.skops"), 1, "already"),
        (("denoise", "a.png", "--model", "none.skops"), 3, "does not exist"),
        (("denoise", "a.png", "--model", "a.png"), 3, "a.png is not"),
        (("denoise", "a.png", "--model", "flat.skops"), 1, "holds a MiCUSaL: need"),
        (
            ("denoise", "a.png", "--model", "own", "--noise", "correlated"),
            1,
            '--model with --noise "correlated"',
        ),
        (
            ("denoise", "a.png", "b.png", "--model", "own", "--save-model", "m.skops"),
            1,
            "--save-model takes one picture",
        ),
        (
            ("denoise", "a.png", "--model", "own", "--save-model", "m.skops", "--sigma", "a.png"),
            1,
            "need",
        ),
        (("denoise", "a.png", "--model", "own", "--save-model", "k.skops"), 4, "exists already"),
        (
            ("denoise", "a.png", "--model", "own", "--save-model", "a.png", "--force"),
            1,
            "the picture itself",
        ),
        (
            ("inpaint", "a.png", "--mask", "b.png", "--preset", "fast", "--save-model", "m.skops"),
            1,
            "a mixture is learned by --preset balanced and best",
        ),
        (("inpaint", "a.png", "--mask", "b.png", "--model", "flat.skops"), 1, "need a Subspace"),
    ],
)
def test_models_that_do_not_fit(run, tmp_path, words, code, message):
    saved(noisy(WAVES), "a.png")
    saved(255 * MASK, "b.png")
    save_model(SubspaceMixture(1, 1).fit(RNG.standard_normal((30, 4))), "k.skops")
    save_model(MiCUSaL(1, 1).fit(RNG.standard_normal((30, 4))), "flat.skops")
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    done = run(*words)
    assert done.exit_code == code, done.output
    assert message in " ".join(done.output.split())
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("a.png", "-o", "pipe.png", "--force"), 5),
        (("a.png", "--std", "pipe.npy", "--force"), 5),
        (("a.png", "--model", "own", "--save-model", "pipe.npy", "--force"), 5),
        (("pipe.png", "-o", "o.png"), 3),
    ],
)
def test_a_pipe_is_neither_read_nor_replaced(run, tmp_path, words, code):
    saved(noisy(WAVES), "a.png")
    for name in ("pipe.png", "pipe.npy"):
        os.mkfifo(name)
    done = run("denoise", *words)
    assert done.exit_code == code, done.output
    assert "is a pipe or a device" in done.output
    for name in ("pipe.png", "pipe.npy"):
        assert (tmp_path / name).is_fifo()
    assert not (tmp_path / "o.png").exists()


@pytest.mark.parametrize("ending", [".png", ".tif"])
def test_a_colour_profile_of_deep_colours_is_kept_or_missed(run, tmp_path, ending):
    deep = (257 * noisy(COLOUR).clip(0, 255)).astype(np.uint16)
    tifffile.imwrite("deep.tif", deep, photometric="rgb", iccprofile=b"a profile")
    said = ran(run, "denoise", "deep.tif", "-o", f"o{ending}", "--preset", "fast")
    assert ("gets no colour profile" in said) == (ending == ".png")
    if ending == ".tif":
        with tifffile.TiffFile("o.tif") as file:
            assert file.pages[0].tags[34675].value == b"a profile"
