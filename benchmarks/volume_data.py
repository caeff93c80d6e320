"""Volumes, panned frames and hyperspectral cubes that are made, with values from 0 to 1."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter, gaussian_filter1d, shift


def _soft_edge(inside: np.ndarray, width: float = 0.8) -> np.ndarray:
    """Return one inside, zero outside, and a smooth step over about two voxels between."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(inside / width, -40, 40))))


def ellipsoid(grid: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return one shaded ellipsoid: its brightness falls off smoothly from one side to the other."""
    shape = np.array(grid.shape[1:])
    centre = rng.uniform(0.1, 0.9, 3) * shape
    radii = rng.uniform(0.05, 0.22, 3) * shape.mean()
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    local = np.tensordot(turn, grid - centre[:, None, None, None], axes=1)
    distance = np.sqrt(((local / radii[:, None, None, None]) ** 2).sum(axis=0))
    shade = 1.0 + 0.4 * local[0] / radii[0]
    return np.asarray(_soft_edge((1 - distance) * radii.min()) * np.clip(shade, 0.2, 1.8))


def tube(grid: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return one tube along a smooth curve from one face of the volume to another."""
    shape = np.array(grid.shape[1:])
    steps = gaussian_filter1d(rng.standard_normal((200, 3)), 25, axis=0)
    curve = np.cumsum(steps, axis=0)
    curve -= curve.min(axis=0)
    curve = curve / np.maximum(curve.max(axis=0), 1e-9) * (shape - 1)
    radius = rng.uniform(1.5, 4.0)
    nearest = np.full(grid.shape[1:], np.inf)
    for point in curve:
        nearest = np.minimum(nearest, ((grid - point[:, None, None, None]) ** 2).sum(axis=0))
    return _soft_edge(radius - np.sqrt(nearest))


def make_volume(
    shape: tuple[int, int, int] = (64, 128, 128), n_ellipsoids: int = 24, n_tubes: int = 6,
    random_state: int = 0,
) -> np.ndarray:  # fmt: skip
    """Return a volume of shaded ellipsoids and tubes on a smooth background, as after a CT."""
    rng = np.random.default_rng(random_state)
    grid = np.indices(shape).astype(np.float32)
    background = gaussian_filter(rng.standard_normal(shape), min(shape) / 6)
    volume = 0.25 + 0.08 * background / background.std()
    for number in range(n_ellipsoids + n_tubes):
        one = ellipsoid(grid, rng) if number < n_ellipsoids else tube(grid, rng)
        level = rng.uniform(-0.25, 0.45)
        volume = volume + level * one
    return np.asarray(np.clip(volume, 0, 1), dtype=np.float32)


def pan(
    picture: np.ndarray, n_frames: int, size: tuple[int, int], speed: tuple[float, float]
) -> np.ndarray:
    """Return frames of a camera that moves over a picture, in pixels per frame."""
    height, width = size
    frames = []
    for number in range(n_frames):
        y, x = (number * v for v in speed)
        top, left = int(np.floor(y)), int(np.floor(x))
        part = picture[top : top + height + 1, left : left + width + 1]
        moved = shift(part.astype(float), (top - y, left - x), order=3, mode="nearest")
        frames.append(moved[:height, :width])
    return np.stack(frames).astype(np.float32)


def make_cube(
    n_bands: int = 100, size: int = 128, n_materials: int = 6, random_state: int = 0
) -> np.ndarray:
    """Return a hyperspectral cube (n_bands, size, size): materials with smooth spectra.

    Fields with straight and bent borders hold one material each, mixed with a little of the others;
    the light and a fine texture change from pixel to pixel. Texture differs by material.
    """
    rng = np.random.default_rng(random_state)
    sites = rng.uniform(0, size, (40, 2))
    pixels = np.indices((size, size)).reshape(2, -1).T
    bend = gaussian_filter(rng.standard_normal((2, size, size)), (0, 8, 8))
    bent = pixels + 6 * (bend / bend.std()).reshape(2, -1).T
    owner = ((bent[:, None] - sites) ** 2).sum(axis=2).argmin(axis=1)
    material = rng.integers(n_materials, size=len(sites))[owner].reshape(size, size)
    abundances = np.stack([(material == m) * 1.0 for m in range(n_materials)])
    for m in range(n_materials):
        grain = gaussian_filter(rng.standard_normal((size, size)), rng.uniform(0.7, 3.0))
        abundances[m] = gaussian_filter(abundances[m], 0.6) + 0.05
        abundances[m] *= 1 + 0.25 * grain / grain.std()
    abundances = np.clip(abundances, 0.01, None)
    light = gaussian_filter(rng.standard_normal((size, size)), 20)
    abundances *= (1 + 0.1 * light / light.std()) / abundances.sum(axis=0) ** 0.7
    place = np.arange(n_bands) / n_bands
    spectra = np.empty((n_materials, n_bands))
    for m in range(n_materials):
        bumps = [
            rng.uniform(-1, 1) * np.exp(-(((place - rng.uniform()) / rng.uniform(0.05, 0.4)) ** 2))
            for _ in range(6)
        ]
        one = np.sum(bumps, axis=0)
        spectra[m] = 0.1 + (one - one.min()) / np.ptp(one) * rng.uniform(0.4, 0.9)
    # Water takes the light of two ranges, as in pictures taken from the air.
    water = (
        1
        - 0.7 * np.exp(-(((place - 0.45) / 0.03) ** 2))
        - 0.8 * np.exp(-(((place - 0.7) / 0.03) ** 2))
    )
    cube = np.einsum("mb,mij->bij", spectra * water, abundances)
    return np.asarray(cube / cube.max(), dtype=np.float32)
