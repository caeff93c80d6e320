"""Inpainting of crops of photographs: PSNR of the missing pixels, six kinds of holes.

`python benchmarks/inpainting_table.py --data pictures.npz`, or the file in POLYSPAN_DATA: gray
pictures of 8 bits, one array each. Every second of them, in the order of their names, from the
second on is measured; the others chose the settings. Needs scikit-image and Pillow.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage.restoration import inpaint_biharmonic

from polyspan.images import inpaint_image

TEXT = "The quick brown fox jumps over the lazy dog. " * 8


def crops(data: Path, count: int, side: int) -> dict[str, np.ndarray]:
    """Return the middle of pictures that chose nothing, evenly spread over their list."""
    pictures = np.load(data)
    names = sorted(pictures)[1::2]
    found = {}
    for number in np.linspace(0, len(names) - 1, count).round().astype(int):
        picture = pictures[names[number]] / 255
        top, left = (n // 2 - side // 2 for n in picture.shape)
        found[names[number]] = picture[top : top + side, left : left + side].astype(np.float32)
    return found


def masks(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Return the holes of each kind."""
    rng = np.random.default_rng(0)
    found = {f"{part:.0%} at random": rng.random(shape) < part for part in (0.2, 0.5, 0.8)}
    paper = Image.new("L", shape[::-1])
    font = ImageFont.load_default(14)
    for row in range(2, shape[0], 20):
        ImageDraw.Draw(paper).text((3 - row * 7 % 11, row), TEXT, fill=255, font=font)
    found["text"] = np.asarray(paper) > 96
    paper = Image.new("L", shape[::-1])
    for _ in range(round(10 * shape[0] / 128)):
        ends = rng.random(4) * np.tile(shape[::-1], 2)
        ImageDraw.Draw(paper).line(list(ends), fill=255, width=int(rng.integers(2, 5)))
    found["scratches"] = np.asarray(paper) > 0
    rows, columns = ((np.arange(n) % 20 >= 4) & (np.arange(n) % 20 < 12) for n in shape)
    found["8×8 blocks"] = rows[:, None] & columns
    return found


def psnr(filled: np.ndarray, truth: np.ndarray, missing: np.ndarray) -> float:
    """Return the PSNR of the missing pixels."""
    return float(-10 * np.log10(np.mean((filled - truth)[missing].astype(float) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("POLYSPAN_DATA"))
    parser.add_argument("--presets", nargs="+", default=["fast", "balanced", "best"])
    parser.add_argument("--pictures", type=int, default=8)
    parser.add_argument("--side", type=int, default=128)
    options = parser.parse_args()
    if options.data is None:
        parser.error("give the file of pictures: --data, or the variable POLYSPAN_DATA")
    table: dict[str, list[list[float]]] = {}
    seconds = np.zeros(len(options.presets))
    print("picture, holes, biharmonic,", *options.presets)
    for name, truth in crops(options.data, options.pictures, options.side).items():
        for kind, missing in masks(truth.shape).items():
            holed = np.where(missing, np.float32(0), truth)
            row = [psnr(inpaint_biharmonic(holed, missing), truth, missing)]
            for number, preset in enumerate(options.presets):
                begin = time.process_time()
                row.append(psnr(inpaint_image(holed, missing, preset), truth, missing))
                seconds[number] += time.process_time() - begin
            table.setdefault(kind, []).append(row)
            print(name, kind, *(f"{one:.2f}" for one in row), sep=", ", flush=True)
    for kind, rows in table.items():
        print(f"| {kind} |", " | ".join(f"{one:.2f}" for one in np.mean(rows, axis=0)), "|")
    every = np.concatenate(list(table.values()))
    print("| mean |", " | ".join(f"{one:.2f}" for one in every.mean(axis=0)), "|")
    print("least gain over biharmonic:", (every[:, 1:] - every[:, :1]).min(axis=0).round(2))
    print("processor time of one crop, in seconds:", (seconds / len(every)).round(1))


if __name__ == "__main__":
    main()
