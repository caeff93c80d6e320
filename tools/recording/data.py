"""Small data for recorded cases, each with a name that the cases use."""

# Most names of data say what they are.
# ruff: noqa: D102

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases


class Chunked:
    """A file in chunks, as Zarr and HDF5 show it."""

    def __init__(self, values: np.ndarray, chunk: int) -> None:
        self.values, self.chunks = values, (chunk, values.shape[1])
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, place: Any) -> np.ndarray:
        return self.values[place]


class Data:
    """Data by name, each made when it is first asked for.

    With `change`, every number is changed by about that fraction of itself: what then changes much
    more tells nothing on another machine, where rounding differs.
    """

    def __init__(self, folder: Path, change: float = 0.0) -> None:
        self._folder, self._change = folder, change

    def named(self, names: Iterable[str]) -> dict[str, Any]:
        """Return what there is of those names."""
        return {name: getattr(self, name) for name in names if hasattr(type(self), name)}

    def _changed(self, values: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng(99).standard_normal(values.shape)
        return (values * (1 + self._change * noise)).astype(values.dtype)

    # Rows near three planes, complete and not.

    @cached_property
    def _union(self) -> Any:
        return make_union_of_subspaces(
            (30, 30, 30), n_features=10, subspace_dim=2, spread=0.6, noise=0.05,
            test_sizes=(4, 4, 4), random_state=0,
        )  # fmt: skip

    @cached_property
    def rows(self) -> np.ndarray:
        return self._changed(self._union.X[np.random.default_rng(1).permutation(90)])

    @cached_property
    def truth(self) -> np.ndarray:
        return self._union.labels[np.random.default_rng(1).permutation(90)]

    @cached_property
    def true_bases(self) -> np.ndarray:
        return self._union.bases

    @cached_property
    def clean_rows(self) -> np.ndarray:
        return self._union.X_clean[np.random.default_rng(1).permutation(90)]

    @cached_property
    def new_rows(self) -> np.ndarray:
        return self._changed(self._union.X_test)

    @cached_property
    def holes(self) -> np.ndarray:
        return mask_entries(self.rows, 0.15, random_state=0)

    @cached_property
    def new_holes(self) -> np.ndarray:
        return mask_entries(self.new_rows, 0.15, random_state=1)

    @cached_property
    def far_rows(self) -> np.ndarray:
        """Rows that are far from the origin, on planes with points of their own."""
        return self.rows + np.repeat(np.eye(3, 10) * 2, 30, axis=0) + 50.0

    @cached_property
    def outlying(self) -> np.ndarray:
        return np.concatenate([self.rows, self._changed(far_points(6, 10))])

    @cached_property
    def outlying_holes(self) -> np.ndarray:
        return mask_entries(self.outlying, 0.1, random_state=2)

    @cached_property
    def rows32(self) -> np.ndarray:
        return self.rows.astype(np.float32)

    @cached_property
    def holes32(self) -> np.ndarray:
        return self.holes.astype(np.float32)

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of rows, of which some are 0."""
        weights = np.random.default_rng(2).uniform(0.2, 2.0, 90)
        weights[::11] = 0.0
        return weights

    @cached_property
    def sensors(self) -> np.ndarray:
        return np.where(np.arange(90) % 3 == 0, "rough", "fine")

    @cached_property
    def rough_rows(self) -> np.ndarray:
        """Rows of two sensors, of which one is rough."""
        noise = np.random.default_rng(3).standard_normal((90, 10))
        return self.rows + 0.3 * noise * (self.sensors == "rough")[:, None]

    @cached_property
    def batches(self) -> list[np.ndarray]:
        return list(np.split(self.rows, 3))

    @cached_property
    def hole_batches(self) -> list[np.ndarray]:
        return list(np.split(self.holes, 3))

    @cached_property
    def weight_batches(self) -> list[np.ndarray]:
        return list(np.split(self.weights, 3))

    @cached_property
    def start(self) -> np.ndarray:
        return draw_bases((3, 10, 2), np.random.RandomState(5))

    @cached_property
    def many(self) -> np.ndarray:
        """Eight small problems."""
        return self._changed(
            np.stack([
                make_union_of_subspaces(
                    (15, 15), n_features=6, subspace_dim=1, spread=0.8, random_state=k
                ).X
                for k in range(8)
            ])
        )  # fmt: skip

    # The same rows where they do not lie in memory.

    @cached_property
    def mapped_rows(self) -> np.ndarray:
        return self._mapped("rows")

    @cached_property
    def mapped_holes(self) -> np.ndarray:
        return self._mapped("holes")

    def _mapped(self, name: str) -> Any:
        path = self._folder / f"{name}.npy"
        np.save(path, getattr(self, name))
        return np.load(path, mmap_mode="r")

    @cached_property
    def chunked_rows(self) -> Chunked:
        return Chunked(self.rows, 8)

    @cached_property
    def chunked_holes(self) -> Chunked:
        return Chunked(self.holes, 8)

    @cached_property
    def dask_rows(self) -> Any:
        return self._lazy("rows")

    @cached_property
    def dask_holes(self) -> Any:
        return self._lazy("holes")

    @cached_property
    def dask_weights(self) -> Any:
        return self._lazy("weights")

    def _lazy(self, name: str) -> Any:
        import dask.array as da

        values = getattr(self, name)
        return da.from_array(values, chunks=(32, -1)[: values.ndim])

    @cached_property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.holes, columns=[f"x{k}" for k in range(10)])

    # Matrices of a kernel.

    @cached_property
    def gram(self) -> np.ndarray:
        return self.rows @ self.rows.T

    @cached_property
    def new_gram(self) -> np.ndarray:
        return self.new_rows @ self.rows.T

    # Tables.

    @cached_property
    def table(self) -> pd.DataFrame:
        """A table of several types, in which every column follows one number."""
        rng = np.random.RandomState(0)
        x = rng.standard_normal(80)
        kinds = np.where(x > 0.5, "a", np.where(x > -0.5, "b", "c"))
        complete = pd.DataFrame({
            "size": self._changed(x + 0.1 * rng.standard_normal(80)),
            "cost": self._changed(np.exp(x)),
            "age": np.rint(40 + 10 * x),
            "day": pd.Timestamp("2020-06-01") + pd.to_timedelta(np.rint(30 * x), unit="D"),
            "kind": pd.Categorical(kinds),
            "grade": pd.Categorical(kinds, categories=list("cba"), ordered=True),
            "open": x > 0,
        })  # fmt: skip
        return complete.mask(rng.random_sample(complete.shape) < 0.12)

    @cached_property
    def new_table(self) -> pd.DataFrame:
        return self.table[:15]

    @cached_property
    def numbers(self) -> np.ndarray:
        """A table of numbers in which columns bend, with holes."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal((70, 2))
        columns = [x[:, 0], x[:, 1], x[:, 0] ** 2, np.exp(x[:, 1]), x.sum(axis=1)]
        values = self._changed(np.column_stack(columns) + 0.1 * rng.standard_normal((70, 5)))
        values[rng.random(values.shape) < 0.15] = np.nan
        return values

    # Pictures between 0 and 1, and with noise.

    @cached_property
    def clean(self) -> np.ndarray:
        return self._changed(drawn((40, 44)))

    @cached_property
    def noisy(self) -> np.ndarray:
        return self.clean + 0.1 * np.random.default_rng(0).standard_normal(self.clean.shape)

    @cached_property
    def levels(self) -> np.ndarray:
        return np.clip(np.rint(255 * self.noisy), 0, 255).astype(np.uint8)

    @cached_property
    def clean_levels(self) -> np.ndarray:
        return 255 * self.clean

    @cached_property
    def counts(self) -> np.ndarray:
        return np.random.default_rng(0).poisson(np.rint(20 * drawn((40, 44)))).astype(float)

    @cached_property
    def clean_counts(self) -> np.ndarray:
        return 20 * drawn((40, 44))

    @cached_property
    def correlated(self) -> np.ndarray:
        noise = np.random.default_rng(0).standard_normal((42, 46))
        noise = noise[:-2, :-2] + noise[1:-1, :-2] + noise[:-2, 1:-1] + noise[1:-1, 1:-1]
        return self.clean + 0.05 * noise

    @cached_property
    def clean_colour(self) -> np.ndarray:
        return np.stack([self.clean, 0.8 * self.clean + 0.1, 1 - self.clean], axis=-1)

    @cached_property
    def colour(self) -> np.ndarray:
        noise = np.random.default_rng(0).standard_normal(self.clean_colour.shape)
        return self.clean_colour + 0.1 * noise

    @cached_property
    def clean_bands(self) -> np.ndarray:
        return self.clean[:24, :28, None] * np.linspace(0.2, 1, 12) + np.linspace(0, 0.2, 12)

    @cached_property
    def bands(self) -> np.ndarray:
        noise = np.random.default_rng(0).standard_normal(self.clean_bands.shape)
        return self.clean_bands + 0.1 * noise

    @cached_property
    def clean_volume(self) -> np.ndarray:
        s, i, j = np.indices((8, 24, 26))
        return self._changed(0.5 + 0.4 * np.sin(i / 4 + s / 6) * np.cos(j / 5 - s / 8))

    @cached_property
    def volume(self) -> np.ndarray:
        noise = np.random.default_rng(0).standard_normal(self.clean_volume.shape)
        return self.clean_volume + 0.1 * noise

    @cached_property
    def mask(self) -> np.ndarray:
        return np.random.default_rng(1).random(self.clean.shape) < 0.4

    @cached_property
    def spoilt(self) -> np.ndarray:
        return np.where(self.mask, 0.0, self.clean)

    @cached_property
    def spoilt_colour(self) -> np.ndarray:
        return np.where(self.mask[..., None], 0.0, self.clean_colour)

    @cached_property
    def patches(self) -> Any:
        """A mixture of patches of the clean picture."""
        from polyspan import SubspaceMixture
        from polyspan.datasets import extract_patches

        return SubspaceMixture(3, 4, random_state=0).fit(
            extract_patches(self.clean, (6, 6), step=2)
        )


def far_points(n: int, n_features: int) -> np.ndarray:
    """Return points that belong to no subspace."""
    return 6.0 * np.random.default_rng(4).standard_normal((n, n_features))


def drawn(shape: tuple[int, int]) -> np.ndarray:
    """Return a picture between 0 and 1: shading, a disc, an edge and stripes."""
    i, j = np.indices(shape) / min(shape)
    picture = 0.25 + 0.3 * j + 0.1 * np.sin(3 * i)
    picture[(i - 0.4) ** 2 + (j - 0.35) ** 2 < 0.06] = 0.85
    picture[i + 0.4 * j > 1.05] -= 0.2
    stripes = (i < 0.3) & (j > 0.7)
    picture[stripes] += 0.1 * np.sin(25 * (i + j)[stripes])
    return picture
