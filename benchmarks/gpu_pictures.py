"""Measure pictures on an accelerator: `PYTHONPATH=src python benchmarks/gpu_pictures.py`.

A made colour picture of 12 megapixels; `denoise_image` by all presets, and the passes over groups
alone. Times of a pass between synchronisations, the first left
out. Each pass must give the same bits twice, and on a small picture what NumPy gives in float64.
Without an accelerator it says so and checks a tiny picture on the CPU.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import numpy as np
import torch

from polyspan.images import denoise_image
from polyspan.images.group_arrays import MEMORY, group_pass_arrays
from polyspan.images.groups import Pass

SIGMA = 25 / 255
PASSES = (Pass(8, 40, 0.8, 6), Pass(6, 34, 1.0, 4), Pass(6, 34, 1.0, 3), Pass(10, 60, 0.8, 6))
REPEATS = 3


def main() -> None:
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    if not has_gpu:
        print("There is no CUDA device here: a tiny picture is checked on the CPU.\n", flush=True)
    shape = (3, 3000, 4000) if has_gpu else (3, 40, 52)
    print(torch.cuda.get_device_name() if has_gpu else "CPU", "PyTorch", torch.__version__)
    clean, noisy, pilot = pictures(shape, device)
    print(f"noisy {psnr(noisy, clean):.3f} dB, pilot {psnr(pilot, clean):.3f} dB", flush=True)
    for preset in ("fast", "balanced", "best"):
        whole(clean, noisy, preset)
    rows = [row(clean, noisy, pilot, one) for one in PASSES]
    if not all(one["correct"] for one in rows):
        raise SystemExit("results differ from those of NumPy, or from one run to the next")


def pictures(shape: tuple[int, ...], device: torch.device) -> tuple[Any, Any, Any]:
    """Return a picture with smooth parts and edges at all scales, with noise, and an estimate."""
    generator = torch.Generator(device).manual_seed(0)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=generator, device=device)

    clean = torch.zeros(shape, device=device)
    for scale in range(2, 9):
        small = normal(1, shape[0], *(max(2, n >> scale) for n in shape[1:]))
        mode = "bicubic" if scale % 2 else "nearest"
        clean += 2 ** (scale / 2) * torch.nn.functional.interpolate(small, shape[1:], mode=mode)[0]
    clean = 0.5 + 0.2 * (clean - clean.mean()) / clean.std()
    return clean, clean + SIGMA * normal(*shape), clean + 0.3 * SIGMA * normal(*shape)


def whole(clean: Any, noisy: Any, preset: str) -> None:
    """Denoise the whole picture, as users do."""
    on_gpu = noisy.device.type == "cuda"
    for _ in range(2):
        before = torch.cuda.memory_allocated() if on_gpu else 0
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        found = denoise_image(noisy, SIGMA, preset, channel_axis=0)
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
    most = torch.cuda.max_memory_allocated() - before if on_gpu else 0
    print(
        f"denoise_image, {preset}: {seconds:.2f} s, {most / 1e9:.1f} GB beyond the picture, "
        f"{psnr(found, clean):.2f} dB",
        flush=True,
    )


def row(clean: Any, noisy: Any, pilot: Any, one: Pass) -> dict[str, Any]:
    """Run one pass a few times, and on a small part of the picture also in NumPy."""
    on_gpu = noisy.device.type == "cuda"
    before = torch.cuda.memory_allocated() if on_gpu else 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    expected, seconds, same = None, [], True
    for _ in range(REPEATS + 1):
        begin = time.perf_counter()
        found = group_pass_arrays(noisy, pilot, SIGMA, one)
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        same = same and (expected is None or torch.equal(found, expected))
        expected = found
    part = [a[:, :80, :90].contiguous() for a in (noisy, pilot)]
    plain = group_pass_arrays(*(a.cpu().double().numpy() for a in part), SIGMA, one)
    apart = group_pass_arrays(*part, SIGMA, one).cpu().numpy() - plain
    result = {
        "pass": str(one),
        "seconds": round(statistics.median(seconds[1:]), 3),
        "memory beyond the picture (GB)": round(
            (torch.cuda.max_memory_allocated() - before) / 1e9 if on_gpu else 0.0, 2
        ),
        "budget of a strip (GB)": MEMORY / 1e9,
        "PSNR (dB)": round(psnr(found, clean), 3),
        "same bits again": same,
        "difference from NumPy in float64 (root mean square)": float(np.sqrt(np.mean(apart**2))),
    }
    # Where distances nearly tie, float32 may choose another patch: a few pixels differ by more.
    result["correct"] = same and float(np.sqrt(np.mean(apart**2))) < 1e-4
    print(json.dumps(result), flush=True)
    return result


def psnr(a: Any, clean: Any) -> float:
    return float(-10 * torch.log10(torch.mean((a - clean) ** 2)))


if __name__ == "__main__":
    main()
