"""What comes with the package: its file, its levels of noise, and what happens without it."""

from importlib import resources

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import polyspan.images.stages as module
from polyspan.images import denoise_image
from polyspan.images.cascade import ROUNDS
from polyspan.images.stages import FILE, Learned, PatchPrior, Stage, learned
from support import noisy_picture
from tools.learned_arrays import learned_arrays


def made():
    """Return three levels with two stages each."""
    rng = np.random.default_rng(0)
    prior = PatchPrior(
        np.array([0.25, 0.75]), rng.random((2, 3)), np.linalg.qr(rng.random((2, 4, 3)))[0].mT
    )

    def stage(n_channels):
        maps = rng.standard_normal((2, 4, 4 * n_channels)) * 10 ** rng.uniform(-3, 1, (2, 4, 1))
        maps[0, 1] = 0.0
        return Stage(maps, rng.uniform(0.1, 1, (2, 4)), rng.random(), rng.random())

    levels = tuple((stage(2), stage(3)) for _ in range(3))
    return Learned(prior, (5.0, 20.0, 80.0), levels)


def test_arrays_hold_everything():
    before = made()
    after = Learned.of(learned_arrays(before))
    assert after.levels == before.levels
    assert_allclose(after.prior.weights, before.prior.weights, rtol=1e-6)
    assert_allclose(after.prior.variances, before.prior.variances, rtol=1e-6)
    assert_allclose(after.prior.directions, before.prior.directions, atol=1e-3)
    for old, new in zip(before.stages, after.stages, strict=True):
        assert len(old) == len(new) == 2
        for a, b in zip(old, new, strict=True):
            # Half a unit of the 127 that the largest entry of a row has.
            most = np.abs(a.maps).max(axis=-1, keepdims=True) / 254
            assert np.all(np.abs(a.maps - b.maps) <= 1.001 * most)
            assert_allclose(b.errors, a.errors, rtol=1e-6)
            assert (b.sharpness, b.calibration) == (a.sharpness, a.calibration)
    again = Learned.of(learned_arrays(after))
    assert_allclose(again.stages[1][1].maps, after.stages[1][1].maps, rtol=1e-6)


def test_stages_of_any_level():
    known = made()
    for level, stages in zip(known.levels, known.stages, strict=True):
        assert known.at(level) is stages
    assert known.at(0.1) is known.stages[0]
    assert known.at(1e6) is known.stages[-1]
    # Halfway between 5 and 20 by their ratio.
    assert_allclose(known.at(10.0)[0].maps, (known.stages[0][0].maps + known.stages[1][0].maps) / 2)


def test_stages_change_evenly_between_levels():
    known = made()
    between = [known.at(level)[1] for level in np.geomspace(20.0, 80.0, 9)]
    for values in (np.array([s.maps for s in between]), np.array([s.errors for s in between])):
        steps = np.diff(values, axis=0)
        assert np.all((steps >= -1e-12).all(axis=0) | (steps <= 1e-12).all(axis=0))
    near = known.at(20.0 * (1 - 1e-9))[1]
    assert_allclose(near.maps, known.at(20.0)[1].maps, atol=1e-6)


def test_the_file_of_the_package():
    source = resources.files("polyspan.images").joinpath(FILE)
    assert len(source.read_bytes()) <= 15e6
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fi" for name in arrays.files)
        assert all(np.isfinite(arrays[name]).all() for name in arrays.files)
    known = learned()
    assert learned() is known
    prior = known.prior
    assert prior.weights.sum() == pytest.approx(1.0, abs=1e-5)
    assert (prior.weights > 0).all()
    assert (prior.variances > 0).all()
    assert (np.diff(prior.variances, axis=1) <= 0).all()
    products = prior.directions @ np.swapaxes(prior.directions, 1, 2)
    assert_allclose(products, np.broadcast_to(np.eye(63), products.shape), atol=3e-3)
    # Patches have no mean, and so have their directions.
    assert np.abs(prior.directions.sum(axis=2)).max() < 0.02


def test_the_stages_of_the_package():
    known = learned()
    assert list(known.levels) == sorted(known.levels)
    n_channels = (2, *[3] * max(ROUNDS.values()))
    for stages in known.stages:
        assert [stage.maps.shape for stage in stages] == [
            (len(known.prior.weights), 64, 64 * n) for n in n_channels
        ]
        for stage in stages:
            assert stage.errors.shape == (len(known.prior.weights), 64)
            assert stage.errors.min() > 0
            assert 0 < stage.sharpness < 1
            assert 0.1 < stage.calibration < 10


@pytest.fixture
def missing(monkeypatch):
    """Take the file away, and what was read from it."""
    learned.cache_clear()
    monkeypatch.setattr(module, "FILE", "missing.npz")
    yield
    learned.cache_clear()


def test_without_the_file_a_picture_has_its_own_mixture(missing):
    _, noisy = noisy_picture(shape=(24, 28))
    with pytest.warns(UserWarning, match=r"missing.npz of polyspan.images is missing.*install"):
        found = denoise_image(noisy, 0.1)
    assert_array_equal(found, denoise_image(noisy, 0.1, model="own"))
    with pytest.raises(ValueError, match=r"return_std=True needs the file"):
        denoise_image(noisy, 0.1, return_std=True)
