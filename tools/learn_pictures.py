"""Learn the prior of patches and the stages that `polyspan.images` comes with.

    python tools/picture_crops.py build/crops.npz
    python tools/learn_pictures.py build/crops.npz src/polyspan/images/learned.npz --device cuda

It needs PyTorch: a minute on a GPU, hours on a processor. The crops are laid out as one large
picture, several times with other turns and other noise; patches across two crops are left out.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learned_arrays import learned_arrays
from polyspan.images.cascade import Cascade, passed, rounds_for
from polyspan.images.groups import LEVELS, STRONG
from polyspan.images.patches import Grid
from polyspan.images.planes import halve, with_coarse_scale
from polyspan.images.stages import (
    UNSEEN,
    Classifier,
    Learned,
    PatchPrior,
    Stage,
    apply_stage,
    first_estimate,
    stage_inputs,
)

SIDE, AREA = 8, 64
N_CLASSES, N_PATCHES, N_STEPS = 96, 1_000_000, 60
FLOOR = 1.5**2
"""Least variance in any direction, in levels of 255."""
LEAVES = 0.1
"""Part of the patches of the prior that come from dead leaves; stages learn from photographs."""
NOISE_LEVELS = (7.0, 15.0, 30.0, 60.0)
N_DRAWS = 4
SHARPNESS = (0.15, 0.1, 0.1)
RIDGE, RIDGE_PATCHES, RIDGE_PART = 0.002, 3000.0, 0.1
ERROR_PRIOR, ERROR_PATCHES = 15.0, 300.0


class Crops:
    """Square crops of one size, as tiles of a large picture."""

    def __init__(self, file: Path, device: str) -> None:
        with np.load(file, allow_pickle=False) as arrays:
            self.tiles = {name: arrays[name].astype(np.float32) for name in arrays.files}
        self.size = max(max(tile.shape) for tile in self.tiles.values())
        self.columns = int(np.ceil(len(self.tiles) ** 0.5))
        rows = -(-len(self.tiles) // self.columns)
        self.used = torch.zeros((rows, self.columns), dtype=torch.bool, device=device)
        self.device = device
        for number, name in enumerate(self.tiles):
            self.used[divmod(number, self.columns)] = not name.startswith("leaves")

    def laid_out(self, seed: int) -> np.ndarray:
        """Return all crops beside each other, each turned or mirrored."""
        rng = np.random.default_rng(seed)
        out = np.zeros([n * self.size for n in self.used.shape], dtype=np.float32)
        for number, tile in enumerate(self.tiles.values()):
            tile = np.rot90(tile, int(rng.integers(4)))
            tile = tile[:, ::-1] if rng.random() < 0.5 else tile
            more = [(0, self.size - n) for n in tile.shape]
            top, left = (self.size * n for n in divmod(number, self.columns))
            whole = np.pad(tile, more, mode="symmetric")
            out[top : top + self.size, left : left + self.size] = whole
        return out

    def inside(self, corners: list[torch.Tensor]) -> torch.Tensor:
        """Return which patches, from their corners, lie in one tile of a photograph."""
        whole = [n % self.size <= self.size - SIDE for n in corners]
        tile = [
            (n // self.size).clamp(max=most - 1)
            for n, most in zip(corners, self.used.shape, strict=True)
        ]
        used = self.used[tile[0]][:, tile[1]]
        found: torch.Tensor = whole[0][:, None] & whole[1] & used
        return found.reshape(-1)

    def patches(self, seed: int = 0) -> torch.Tensor:
        """Return patches without their means, as rows, in all turns."""
        rng = np.random.default_rng(seed)
        found = []
        n_leaves = sum(name.startswith("leaves") for name in self.tiles)
        pixels = sum(t.size for name, t in self.tiles.items() if not name.startswith("leaves"))
        for name, tile in self.tiles.items():
            leaf = name.startswith("leaves")
            part = LEAVES / n_leaves if leaf else (1 - LEAVES) * tile.size / pixels
            n = round(part * N_PATCHES)
            corners = [rng.integers(0, size - SIDE + 1, n) for size in tile.shape]
            windows = np.lib.stride_tricks.sliding_window_view(tile, (SIDE, SIDE))[tuple(corners)]
            for turn, some in enumerate(np.array_split(windows, 8)):
                turned = np.rot90(some, turn % 4, axes=(1, 2))
                found.append((turned[:, :, ::-1] if turn > 3 else turned).reshape(-1, AREA))
        patches = np.concatenate(found)
        patches -= patches.mean(axis=1, keepdims=True)
        return torch.tensor(patches[rng.permutation(len(patches))], device=self.device)


def learn_prior(X: torch.Tensor) -> PatchPrior:
    """Return Gaussians with the mean 0, by expectation maximisation."""
    torch.manual_seed(0)
    eye = torch.eye(AREA, device=X.device, dtype=torch.float64)
    norms = X.norm(dim=1, keepdim=True)
    energy = torch.log(norms[:, 0] ** 2 + AREA * FLOOR)
    chosen = torch.randperm(len(X), device=X.device)[:N_CLASSES]
    # Patches that look alike, whatever their sign, with about the same contrast.
    alike = (X @ (X[chosen] / (norms[chosen] + 1e-6)).T).abs() / torch.exp(energy / 2)[:, None]
    alike -= 0.3 * (energy[:, None] - energy[chosen]).abs()
    labels = alike.argmax(dim=1)
    counts = torch.bincount(labels, minlength=N_CLASSES).double()
    sums = torch.stack([(X[labels == c].T @ X[labels == c]).double() for c in range(N_CLASSES)])
    extra = 50.0
    for _ in range(N_STEPS + 1):
        weights = (counts + 1) / (counts + 1).sum()
        covariances = (sums + extra * FLOOR * eye) / (counts[:, None, None] + extra)
        counts, sums = _expected(X, weights, covariances)
        extra = 20.0
    variances, directions = torch.linalg.eigh(covariances)
    variances = variances.flip(1)[:, : AREA - 1].clamp(min=FLOOR)
    directions = directions.flip(2)[:, :, : AREA - 1].transpose(1, 2).float()
    return PatchPrior(*(a.cpu().numpy() for a in (weights, variances, directions)))


def _expected(
    X: torch.Tensor, weights: torch.Tensor, covariances: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return expected numbers of members, and sums of their squares."""
    variances, directions = torch.linalg.eigh(covariances)
    variances = variances.clamp(min=FLOOR)
    filters = (directions / variances.sqrt()[:, None, :]).transpose(1, 2).float()
    bias = (torch.log(weights) - 0.5 * variances.log().sum(dim=1)).float()
    counts, sums = torch.zeros_like(weights), torch.zeros_like(covariances)
    for x in torch.split(X, 20000):
        found = (filters.reshape(-1, AREA) @ x.T).reshape(len(filters), AREA, -1)
        shares = torch.softmax(bias[:, None] - 0.5 * (found * found).sum(dim=1), dim=0)
        counts += shares.sum(dim=1).double()
        for some, total in zip(torch.split(shares, 32), torch.split(sums, 32), strict=True):
            total += (x.T @ (some[:, :, None] * x)).double()
    return counts, sums


class Moments:
    """Sums for the regressions of all classes."""

    def __init__(self, n_inputs: int, device: str) -> None:
        make: dict[str, Any] = {"device": device, "dtype": torch.float64}
        self.inputs = torch.zeros((N_CLASSES, n_inputs, n_inputs), **make)
        self.both = torch.zeros((N_CLASSES, n_inputs, AREA), **make)
        self.targets = torch.zeros((N_CLASSES, AREA), **make)
        self.counts = torch.zeros(N_CLASSES, **make)

    def add(self, u: torch.Tensor, t: torch.Tensor, labels: torch.Tensor) -> None:
        """Add inputs and targets, as columns."""
        order = torch.argsort(labels, stable=True)
        counts = torch.bincount(labels, minlength=N_CLASSES).tolist()
        inputs, targets = (torch.split(a[:, order], counts, 1) for a in (u, t))
        parts = zip(inputs, targets, strict=True)
        for c, (some, target) in enumerate(parts):
            self.inputs[c] += (some @ some.T).double()
            self.both[c] += (some @ target.T).double()
            self.targets[c] += (target * target).sum(dim=1).double()
            self.counts[c] += counts[c]

    def stage(self, sharpness: float) -> Stage:
        """Return ridge regressions, and their errors."""
        ridge = RIDGE * (RIDGE_PATCHES + RIDGE_PART * self.counts)
        eye = torch.eye(self.inputs.shape[1], device=ridge.device, dtype=torch.float64)
        maps = torch.linalg.solve(self.inputs + ridge[:, None, None] * eye, self.both)
        left = self.targets - 2 * (maps * self.both).sum(dim=1)
        left += (maps * (self.inputs @ maps)).sum(dim=1)
        errors = (left.clamp(min=0) + ERROR_PRIOR) / (self.counts[:, None] + ERROR_PATCHES)
        return Stage(maps.transpose(1, 2).float().cpu().numpy(), errors.cpu().numpy(), sharpness)


def learn_stage(
    draws: list[tuple[list[torch.Tensor], torch.Tensor]],
    level: float,
    prior: PatchPrior,
    sharpness: float,
    step: int,
    crops: Crops,
) -> tuple[Stage, list[torch.Tensor]]:
    """Return a stage, and the first channels after it."""
    moments = Moments(AREA * len(draws[0][0]), crops.device)
    for channels, truth in draws:
        classify = Classifier(prior, sharpness * level**2, truth)
        grid = Grid(truth.shape[0], truth.shape[1], SIDE, 2)
        padded = [grid.padded(a) for a in (*channels, truth)]
        corners = [2 * torch.arange(n, device=crops.device) for n in grid.shape]
        for first in range(0, grid.shape[0], 100):
            rows = slice(first, min(first + 100, grid.shape[0]))
            *patches, target = (grid.patches(a, rows) for a in padded)
            chosen = crops.inside([corners[0][rows], corners[1]])
            u = stage_inputs(patches)[:, chosen]
            t = (target - patches[0])[:, chosen]
            moments.add(u / level, t / level, classify(u[:AREA]))
    stage = moments.stage(sharpness)
    found = [apply_stage(channels, level, stage, prior, step) for channels, _ in draws]
    tiles = crops.used.repeat_interleave(crops.size, 0).repeat_interleave(crops.size, 1)
    squares = [
        ((one - x)[tiles] ** 2).mean() for (one, _), (_, x) in zip(found, draws, strict=True)
    ]
    said = [variance[tiles].mean() for _, variance in found]
    calibration = UNSEEN * float(sum(squares) / sum(said))
    return replace(stage, calibration=calibration), [one for one, _ in found]


def learn_level(level: float, learned: Learned, crops: Crops) -> tuple[Stage, ...]:
    """Return all stages for one level; those of the lower ones are in `learned`."""
    prior = learned.prior
    truths = [torch.tensor(crops.laid_out(n), device=crops.device) for n in range(N_DRAWS)]
    noisy, estimates = [], []
    for number, x in enumerate(truths):
        noise = np.random.default_rng(1000 + number).standard_normal(x.shape)
        y = x + level * torch.tensor(noise, device=crops.device, dtype=torch.float32)
        estimate = first_estimate(y, level, prior)
        if level >= STRONG:
            half = Cascade(learned, 1).denoise(halve(y[None]), level / 2, [1.0])[0]
            estimate = with_coarse_scale(estimate[None], half)[0]
        noisy.append(y)
        estimates.append(estimate)
    rounds = rounds_for(level)
    draws = [([e, y], x) for e, y, x in zip(estimates, noisy, truths, strict=True)]
    stages = []
    for number, sharpness in enumerate(SHARPNESS):
        step = rounds[number - 1][1] if number else 2
        stage, estimates = learn_stage(draws, level, prior, sharpness, step, crops)
        stages.append(stage)
        if number < len(SHARPNESS) - 1:
            passes, _ = rounds[number]
            draws = []
            for y, e, x in zip(noisy, estimates, truths, strict=True):
                grouped = passed(y[None], e[None], level, passes)[0]
                draws.append(([grouped, y, e], x))
    return tuple(stages)


def main() -> None:
    """Learn everything, and write it to one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("crops", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    assert LEVELS == 255
    crops = Crops(arguments.crops, arguments.device)
    learned = Learned(learn_prior(crops.patches()), (), ())
    for level in NOISE_LEVELS:
        stages = learn_level(level, learned, crops)
        learned = Learned(learned.prior, (*learned.levels, level), (*learned.stages, stages))
        print(level, [round(stage.calibration, 3) for stage in stages], flush=True)
    arrays: dict[str, Any] = learned_arrays(learned)
    np.savez_compressed(arguments.out, **arrays)
    print(f"{arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
