"""One call of `denoise_image` shows one bar, which ends at its end."""

from contextlib import contextmanager

import numpy as np
import pytest

from polyspan.base.progress import Share
from polyspan.images import denoise_image
from support import made_picture

RNG = np.random.default_rng(0)
CLEAN = made_picture(40, 40)
NOISY = CLEAN + 0.1 * RNG.standard_normal(CLEAN.shape)
STACK = np.stack([NOISY] * 4) + 0.1 * RNG.standard_normal((4, 40, 40))
ROUGH = 0.05 + 0.2 * RNG.random(CLEAN.shape)
MANY = np.stack([np.roll(CLEAN, 5 * k) for k in range(7)]) + 0.1 * RNG.random((7, 40, 40))
BOARD = np.indices((40, 40)).sum(axis=0) % 2 + 0.1 * RNG.standard_normal((40, 40))
CASES = {
    "gray": (NOISY, {"sigma": 0.1}),
    "best": (NOISY, {"sigma": 0.3, "preset": "best"}),
    "own": (NOISY, {"sigma": 0.1, "model": "own", "return_std": True}),
    "unlike": (BOARD, {"sigma": 0.1}),
    "rough map": (NOISY, {"sigma": ROUGH, "preset": "fast"}),
    "rough map of its own": (NOISY, {"sigma": ROUGH, "preset": "fast", "model": "own"}),
    "colours": (MANY[:3], {"sigma": 0.1, "preset": "fast", "channel_axis": 0}),
    "many channels": (MANY, {"sigma": 0.1, "preset": "fast", "channel_axis": 0}),
    "volume": (STACK, {"sigma": 0.2, "stack_axis": 0}),
    "unrelated slices": (RNG.random((3, 24, 24)), {"sigma": 0.02, "stack_axis": 0}),
    "list": ([NOISY, BOARD], {"sigma": 0.1, "preset": "fast"}),
    "counts": (RNG.poisson(50 * CLEAN), {"noise": "poisson", "gain": 1.0, "offset": 0.0}),
    "correlated": (NOISY, {"noise": "correlated"}),
    "correlated with errors": (
        MANY[:2],
        {"noise": "correlated", "channel_axis": 0, "return_std": True},
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_one_bar_that_ends_at_its_end(case, monkeypatch):
    bars = []

    @contextmanager
    def spy(shown, total, title):
        assert shown
        bars.append([total])
        yield lambda title=None, advance=1.0: bars[-1].append(advance)

    monkeypatch.setattr("polyspan.images.denoise.progress_bar", spy)
    image, options = CASES[case]
    denoise_image(image, progress=True, **options)
    ((total, *parts),) = bars
    assert len(parts) > 1
    assert sum(parts) == pytest.approx(total)


def test_shares_of_shares():
    done = []
    share = Share(done.append)
    for tick in (share.of(2).ticks(1), *[share.of(2).of(4).ticks(2)] * 8):
        tick()
    assert done == [0.5, *[0.0625] * 8]
    Share().ticks(3)()
