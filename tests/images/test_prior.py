"""Classes of patches are the likeliest ones, and pictures unlike the prior are told apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import device, to_numpy
from polyspan.images.stages import LEAST_VARIANCE, Classifier, PatchPrior, learned, misfit

SHIPPED = learned().prior
# As the file holds them, directions are orthonormal to the precision of float16 only.
TURNED = np.linalg.qr(np.swapaxes(SHIPPED.directions.astype(np.float64), 1, 2))[0]
EXACT = PatchPrior(SHIPPED.weights, SHIPPED.variances, np.swapaxes(TURNED, 1, 2))


def drawn(prior, noise, n, seed=0):
    """Return patches of a prior with noise, as columns, and their classes."""
    rng = np.random.default_rng(seed)
    weights = prior.weights / prior.weights.sum(dtype=np.float64)
    labels = rng.choice(len(weights), n, p=weights)
    factors = rng.standard_normal((n, prior.variances.shape[1])) * np.sqrt(prior.variances[labels])
    patches = np.einsum("nk,nkm->mn", factors, prior.directions[labels])
    return patches + np.sqrt(noise) * rng.standard_normal(patches.shape), labels


def log_likelihoods(prior, noise, patches):
    """Return log p(class, patch) up to a constant, from the whole covariances of all classes."""
    variances = np.where(prior.variances > LEAST_VARIANCE * noise, prior.variances, 0.0)
    scores = []
    for weight, own, directions in zip(
        prior.weights, variances, prior.directions.astype(np.float64), strict=True
    ):
        covariance = directions.T @ (own[:, None] * directions) + noise * np.eye(len(patches))
        _, logdet = np.linalg.slogdet(covariance)
        distances = (patches * np.linalg.solve(covariance, patches)).sum(axis=0)
        scores.append(np.log(weight) - 0.5 * (logdet + distances))
    return np.array(scores)


@pytest.mark.parametrize("noise", [1.0, 15.0**2, 60.0**2, 1e5, 1e9])
def test_the_class_found_is_the_likeliest(noise):
    patches, _ = drawn(EXACT, noise, 60)
    patches -= patches.mean(axis=0)
    scores = log_likelihoods(EXACT, noise, patches)
    found = Classifier(EXACT, noise, patches.astype(np.float32))(patches.astype(np.float32))
    best = scores.max(axis=0)
    assert_allclose(scores[found, np.arange(60)], best, rtol=1e-5, atol=1e-3)


def test_classes_are_the_same_everywhere(place):
    patches = drawn(SHIPPED, 100.0, 300)[0].astype(np.float32)
    here = Classifier(SHIPPED, 100.0, patches)(patches)
    moved = place.asarray(patches)
    found = Classifier(SHIPPED, 100.0, moved)(moved)
    assert device(found) == device(moved)
    assert np.mean(to_numpy(found) == here) > 0.99
    assert len(np.unique(here)) > 20


def test_every_class_can_be_found():
    """Classes with any number of directions, from none to all, are in one of the lots."""
    n, rng = 17, np.random.default_rng(0)
    directions = np.stack([np.linalg.qr(rng.standard_normal((64, 63)))[0].T for _ in range(n)])
    variances = np.zeros((n, 63))
    counts = [0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 24, 25, 32, 33, 48, 49, 63]
    for c, count in enumerate(counts):
        variances[c, :count] = 1e4
    prior = PatchPrior(np.full(n, 1 / n), variances, directions)
    patches, labels = [], []
    for c, count in enumerate(counts):
        factors = 100 * rng.standard_normal((count, 20))
        noise = rng.standard_normal((64, 20))
        patches.append(directions[c, :count].T @ factors + noise)
        labels += [c] * 20
    patches = np.concatenate(patches, axis=1).astype(np.float32)
    assert_array_equal(Classifier(prior, 1.0, patches)(patches), labels)


def test_units_of_the_picture_do_not_matter():
    patches = drawn(SHIPPED, 400.0, 200)[0].astype(np.float32)
    found = Classifier(SHIPPED, 400.0, patches)(patches)
    for unit in (2.0**-8, 2.0**8, 2.0**-60, 2.0**60):
        scaled = np.float32(unit) * patches
        other = Classifier(SHIPPED.scaled(unit), 400.0 * unit**2, scaled)(scaled)
        assert_array_equal(other, found)
        assert misfit(scaled, 400.0 * unit**2, SHIPPED.scaled(unit)) == pytest.approx(
            misfit(patches, 400.0, SHIPPED), rel=1e-4
        )


def test_the_misfit_is_the_mean_distance():
    patches, _ = drawn(SHIPPED, 100.0, 50)
    centred = patches - patches.mean(axis=0)
    labels = Classifier(SHIPPED, 100.0, centred.astype(np.float32))(centred.astype(np.float32))
    total = 0.0
    for label, patch in zip(labels, centred.T, strict=True):
        factors = SHIPPED.directions[label] @ patch
        total += np.sum(factors**2 / (SHIPPED.variances[label] + 100.0))
    found = misfit(patches.astype(np.float32), 100.0, SHIPPED)
    assert_allclose(found, total / (50 * 63), rtol=1e-3)


def test_patches_of_the_prior_fit_and_others_do_not():
    patches, _ = drawn(SHIPPED, 100.0, 2000)
    assert misfit(patches.astype(np.float32), 100.0, SHIPPED) == pytest.approx(1.0, abs=0.1)
    stronger = np.random.default_rng(0).standard_normal((64, 500)).astype(np.float32) * 100
    assert misfit(stronger, 100.0, SHIPPED) > 1.3
