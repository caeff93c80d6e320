"""The options of `polyspan denoise`: strength and kind of the noise, errors, stacks, folders."""

import os

import numpy as np
import pytest
import tifffile
from PIL import Image

from polyspan.images import denoise_image

RNG = np.random.default_rng(0)
CLEAN = 60 + np.add.outer(np.arange(32) * 3, (np.arange(40) // 8) * 10).astype(float)
COLOUR = np.dstack([CLEAN, CLEAN[::-1], CLEAN[:, ::-1]])


def levels(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def noisy(clean, sigma):
    return levels(clean + sigma * np.random.default_rng(1).standard_normal(clean.shape))


def saved(pixels, path):
    Image.fromarray(pixels).save(path)
    return pixels


def loaded(path):
    return np.asarray(Image.open(path))


def ran(run, *words):
    done = run("denoise", *words)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def seen(monkeypatch):
    """What the command asks of `denoise_image`."""
    calls = []

    def spy(*args, **options):
        calls.append((args, options))
        return denoise_image(*args, **options)

    monkeypatch.setattr("polyspan.images.denoise_image", spy)
    return calls


def test_what_is_written_is_what_python_returns(run, tmp_path, seen):
    pixels = saved(noisy(CLEAN, 15), "photo.png")
    for preset in ("fast", "balanced", "best"):
        ran(run, "photo.png", "--sigma", 15, "--preset", preset, "--force")
        expected = levels(255 * denoise_image(pixels, 15 / 255, preset))
        np.testing.assert_array_equal(loaded("photo-denoised.png"), expected)
    ran(run, "photo.png", "-o", "b.png")
    (*_, preset, _), asked = seen[-1]
    assert (preset, asked["n_jobs"]) == ("balanced", -1)
    ran(run, "photo.png", "-o", "c.png", "--jobs", 1)
    assert seen[-1][1]["n_jobs"] == 1
    np.testing.assert_array_equal(loaded("b.png"), loaded("c.png"))


@pytest.mark.parametrize("words", [("--sigma", "4,30,8"), ("--sigma", 4, "--sigma", "30, 8")])
def test_one_sigma_per_channel(run, tmp_path, seen, words):
    saved(noisy(COLOUR, [4, 30, 8]), "photo.png")
    assert "noise of 4, 30, 8 levels removed" in ran(run, "photo.png", *words)
    np.testing.assert_allclose(seen[0][0][1], np.array([4, 30, 8]) / 255)


def test_a_map_of_sigma(run, tmp_path, seen):
    sigma = np.where(np.arange(40) < 20, 5.0, 25.0) * np.ones((32, 1))
    pixels = saved(noisy(CLEAN, sigma), "photo.png")
    saved(levels(sigma), "eight.png")
    tifffile.imwrite("floats.tif", sigma.astype(np.float32))
    np.save("array.npy", sigma)
    for name in ("eight.png", "floats.tif", "array.npy"):
        said = ran(run, "photo.png", "--sigma", name, "-o", f"out-{name}.png")
        assert "noise of 5 to 25 levels removed" in said
    expected = levels(255 * denoise_image(pixels, sigma / 255))
    for name in ("eight.png", "floats.tif", "array.npy"):
        np.testing.assert_array_equal(loaded(f"out-{name}.png"), expected)
    # Levels of the picture, not of the map.
    Image.fromarray(pixels.astype(np.uint16) * 257).save("deep.png")
    np.save("deep.npy", sigma * 257)
    ran(run, "deep.png", "--sigma", "deep.npy")
    np.testing.assert_allclose(seen[-1][0][1], sigma / 255)


def test_counts(run, tmp_path):
    rate = 4 + 40 * (np.add.outer(np.arange(64), np.arange(64)) % 32 < 16)
    counts = RNG.poisson(rate).astype(np.uint16)
    Image.fromarray(counts).save("counts.png")
    said = ran(run, "counts.png", "--noise", "poisson", "--gain", 1, "--offset", 0)
    assert "noise removed: counts-denoised.png" in said
    after = loaded("counts-denoised.png")
    assert after.dtype == np.uint16
    expected = denoise_image(counts, noise="poisson", gain=1.0, offset=0.0)
    np.testing.assert_allclose(after, expected, atol=0.51)
    assert np.abs(after - rate).mean() < 0.6 * np.abs(counts - rate.astype(float)).mean()


def test_correlated_noise(run, tmp_path, seen):
    saved(noisy(CLEAN, 10), "photo.png")
    ran(run, "photo.png", "--noise", "correlated")
    (_, sigma, *_), asked = seen[0]
    assert (sigma, asked["noise"]) == (None, "correlated")


def test_the_expected_error(run, tmp_path):
    pixels = saved(noisy(COLOUR, 15), "photo.png")
    _, std = denoise_image(pixels, 15 / 255, channel_axis=-1, return_std=True)
    for name in ("std.npy", "std.tif", "std.png"):
        said = ran(run, "photo.png", "--sigma", 15, "--std", name, "--force")
        assert f"at most {255 * std.max():.3g} levels: {name}" in said
    np.testing.assert_allclose(np.load("std.npy"), 255 * std, rtol=1e-4)
    np.testing.assert_array_equal(tifffile.imread("std.tif"), np.load("std.npy"))
    shades = loaded("std.png")
    assert shades.shape == CLEAN.shape
    shape = np.sqrt((std**2).mean(axis=-1)) / std.max()
    np.testing.assert_allclose(shades, 255 * shape, atol=0.6)


def volume(n=6):
    shift = np.arange(n)[:, None, None]
    rows, columns = np.ogrid[:24, :28]
    return 120 + 60 * np.sin((rows + shift) / 6) * np.cos(columns / 7)


def test_a_stack(run, tmp_path, seen):
    clean = volume()
    pixels = noisy(clean, 20)
    tifffile.imwrite("stack.tif", pixels, photometric="minisblack")
    assert "levels removed: stack-denoised.tif" in ran(run, "stack.tif", "--stack")
    assert seen[-1][1]["stack_axis"] == 0
    with tifffile.TiffFile("stack-denoised.tif") as file:
        assert len(file.pages) == 6
        after = file.asarray()
    assert (after.shape, after.dtype) == (pixels.shape, np.uint8)
    assert np.abs(after - clean).mean() < 0.5 * np.abs(pixels - clean).mean()
    np.save("sigma.npy", np.full(clean.shape[1:], 20.0))
    assert "noise of 20 to 20 levels" in ran(
        run, "stack.tif", "--stack", "--force", "--sigma", "sigma.npy"
    )


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_colours_and_transparency_of_a_stack_stay(run, tmp_path, kind):
    unit = {np.uint8: 1, np.uint16: 257, np.float32: 1 / 255}[kind]
    one = noisy(volume(3), 15)
    alpha = RNG.integers(0, 255, one.shape)
    pixels = (np.stack([one, one[:, ::-1], one, alpha], axis=-1) * unit).astype(kind)
    tifffile.imwrite("s.tif", pixels, photometric="rgb", extrasamples=["unassalpha"])
    ran(run, "s.tif", "--stack", "--sigma", 15 * unit, "-o", "o.tiff", "--preset", "fast")
    with tifffile.TiffFile("o.tiff") as file:
        assert [page.axes for page in file.pages] == ["YXS"] * 3
        after = file.asarray()
    assert (after.shape, after.dtype) == (pixels.shape, kind)
    np.testing.assert_array_equal(after[..., 3], pixels[..., 3])
    assert not np.array_equal(after[..., :3], pixels[..., :3])


def test_several_pictures(run, tmp_path, seen):
    for name in ("a.png", "b.png"):
        saved(noisy(CLEAN, 10), name)
    said = ran(run, "a.png", "b.png", "--preset", "fast")
    assert said.count("removed: ") == 2
    (tmp_path / "out").mkdir()
    ran(run, "a.png", "b.png", "-o", "out", "--preset", "fast", "-q")
    assert sorted(os.listdir("out")) == ["a-denoised.png", "b-denoised.png"]
    ran(run, "a.png", "-o", "out", "--force", "--preset", "fast")
    np.testing.assert_array_equal(loaded("out/a-denoised.png"), loaded("a-denoised.png"))


def test_a_picture_that_fails_does_not_stop_the_others(run, tmp_path):
    for name in ("a.png", "d.png"):
        saved(noisy(CLEAN, 10), name)
    saved(noisy(CLEAN, 10)[:8, :8], "b.png")
    (tmp_path / "c.png").write_bytes(b"no picture")
    done = run("denoise", "b.png", "a.png", "c.png", "d.png", "--preset", "fast", "--sigma", "10")
    assert done.exit_code == 1
    said = done.output.replace("\n", " ")
    assert "error: b.png: the image has 8 rows and 8 columns" in said
    assert "error: c.png is not a picture" in said
    assert "error: 2 of 4 pictures were not denoised" in said
    for name in ("a", "d"):
        assert f"removed: {name}-denoised.png" in said
        assert loaded(f"{name}-denoised.png").shape == CLEAN.shape
    assert not (tmp_path / "b-denoised.png").exists()
    assert run("denoise", "c.png", "b.png").exit_code == 3
    done = run("denoise", "b.png", "a.png", "--sigma", "10", "--force", "--debug")
    assert "Traceback" in done.output
    assert "1 of 2 pictures" in done.output


def test_an_interrupt_stops_all(run, tmp_path, monkeypatch):
    for name in ("a.png", "b.png"):
        saved(noisy(CLEAN, 10), name)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("polyspan.images.denoise_image", interrupted)
    done = run("denoise", "a.png", "b.png", "--sigma", "10")
    assert done.exit_code == 130
    assert done.output.count("error") == 1


def test_the_noise_of_reading_out(run, tmp_path, seen):
    saved(noisy(CLEAN, 10), "photo.png")
    words = ("photo.png", "--noise", "poisson", "--gain", "2", "--offset", "3", "--force")
    ran(run, *words, "--read-noise", "0")
    assert seen[-1][1]["read_noise"] == 0
    ran(run, *words)
    assert seen[-1][1]["read_noise"] is None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("photo.png", "--sigma", "-3"), 2, "-3 is not in the range x>=0"),
        (("photo.png", "--sigma", "nan"), 2, "nan is not in the range"),
        (("photo.png", "--sigma", "3", "--sigma", "map.npy"), 2, "or one file"),
        (("photo.png", "--sigma", "none.png"), 3, "none.png does not exist"),
        (("photo.png", "--sigma", "small.npy"), 1, "sigma has the shape (3, 4)"),
        (("photo.png", "--sigma", "1,2,3"), 1, "sigma has the shape (3,): need one number"),
        (("photo.png", "--sigma", "words.npy"), 3, "need real numbers"),
        (("photo.png", "--sigma", "objects.npy"), 3, "cannot read objects.npy"),
        (("photo.png", "--sigma", "map.png", "-o", "map.png", "--force"), 1, "map of sigma itself"),
        (("photo.png", "--sigma", "3", "--noise", "poisson"), 1, "do not go together"),
        (("photo.png", "--gain", "3"), 1, "they need --noise "),
        (("photo.png", "--read-noise", "3"), 1, "--read-noise with --noise "),
        (("photo.png", "--noise", "poisson", "--read-noise", "-1"), 2, "'--read-noise'"),
        (
            ("stack.tif", "--stack", "--noise", "correlated"),
            1,
            '"correlated" with --stack: it is known',
        ),
        (("photo.png", "--sigma", "1,2,3"), 1, "photo.png: sigma has the shape (3,)"),
        (
            ("holes.tif",),
            1,
            "NaN or infinite: fill them first, or mark them in the mask of polyspan inpaint",
        ),
        (("photo.png", "--noise", "poisson", "--gain", "0"), 1, "--gain 0: need"),
        (("photo.png", "--noise", "pink"), 2, "is not one of"),
        (("photo.png", "--jobs", "0"), 2, "'--jobs'"),
        (("photo.png", "--std", "std.jpg"), 1, "must end in .npy, .tif, .tiff, .png"),
        (("photo.png", "--std", "map.npy"), 4, "map.npy exists already"),
        (("photo.png", "--std", "o.png", "-o", "o.png"), 1, "the denoised picture itself"),
        (("photo.png", "two.png", "--std", "std.npy"), 1, "--std takes one picture"),
        (("photo.png", "two.png", "-o", "o.png"), 1, "2 pictures need a folder"),
        (("photo.png", "none.png"), 3, "none.png does not exist"),
        (("photo.png", "photo.png"), 1, "would both be written"),
        (("photo.png", "--stack"), 1, "a stack needs a name in .tif"),
        (("photo.png", "--stack", "-o", "o.tif"), 3, "is no TIFF"),
        (("one.tif", "--stack"), 1, "one picture, not a stack"),
        (("mixed.tif", "--stack"), 3, "2 kinds (20×20 and 30×20)"),
        (("stack.tif", "--stack", "-o", "o.png"), 1, "a stack needs a name in .tif"),
        (
            ("stack.tif", "--stack", "--std", "std.npy"),
            1,
            "--std takes one picture, not several and no --stack",
        ),
        (("whole.tif", "--stack"), 3, "type uint32"),
    ],
)
def test_options_that_do_not_fit(run, tmp_path, words, code, message):
    for name in ("photo.png", "two.png", "map.png"):
        saved(noisy(CLEAN, 10), name)
    np.save("map.npy", np.ones(CLEAN.shape))
    np.save("small.npy", np.ones((3, 4)))
    np.save("words.npy", np.array(["a"]))
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    tifffile.imwrite("one.tif", noisy(CLEAN, 10))
    holes = CLEAN.astype(np.float32)
    holes[3, 4:6] = np.nan
    tifffile.imwrite("holes.tif", holes)
    tifffile.imwrite("stack.tif", noisy(volume(2), 10), photometric="minisblack")
    tifffile.imwrite("whole.tif", np.ones((2, 20, 20), np.uint32), photometric="minisblack")
    with tifffile.TiffWriter("mixed.tif") as file:
        file.write(np.ones((20, 20), np.uint8))
        file.write(np.ones((30, 20), np.uint8))
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    done = run("denoise", *words)
    assert done.exit_code == code, done.output
    assert message in " ".join(done.output.replace("│", " ").split())
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
