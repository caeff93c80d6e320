"""Faces under changing light: the Extended Yale Face Database B, cropped and downsampled."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyspan.datasets.arguments import whole_numbers
from polyspan.datasets.files import DataFile, find_file
from polyspan.datasets.pixels import unit_rows

YALE_B = DataFile(
    name="extended_yaleb_48x42.npz",
    sha256="03feddc22d49d339f0da76de12a74b0b70feffb07c2d258403317508fe021087",
    how=(
        "It is made from the cropped images of the Extended Yale Face Database B, which UCSD "
        "publishes (vision.ucsd.edu): polyspan.datasets.build_extended_yale_b(folder, out) makes "
        "such a file, to be loaded with verify=False."
    ),
)
DOWNSAMPLINGS = ("nearest", "bicubic")


@dataclass(frozen=True)
class Faces:
    """Images of faces as samples."""

    X: np.ndarray
    """Samples, shape (n_samples, 2016): the pixels of an image row by row."""
    target: np.ndarray
    """Whose face it is: the number NN of the directory yaleBNN."""
    lighting: np.ndarray
    """Where the light comes from, such as "A+035E-20": azimuth and elevation in degrees."""
    bad: np.ndarray
    """True where the original image is corrupt."""

    @property
    def images(self) -> np.ndarray:
        """The samples as images, shape (n_samples, 48, 42); a view of `X`."""
        return self.to_images(self.X)

    @staticmethod
    def to_images(rows: np.ndarray) -> np.ndarray:
        """Return rows in the order of `X`, such as denoised samples, as images."""
        return np.asarray(rows).reshape(-1, 48, 42)


def load_extended_yale_b(
    subjects: int | Sequence[int] | None = None,
    *,
    by: str = "row",
    downsampling: str = "nearest",
    normalize: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    verify: bool = True,
) -> Faces:
    """Load faces of 38 subjects under 64 lightings each, 48x42 pixels.

    The file `extended_yaleb_48x42.npz` is taken from `data_home`, or else from the folder that the
    environment variable POLYSPAN_DATA names, or from the cache folder. It is made from larger
    images, and cannot be downloaded: see `build_extended_yale_b`.

    Parameters
    ----------
    subjects : int or sequence of int, default=None
        Which subjects, in which order; None: all.
    by : {"row", "directory"}, default="row"
        What `subjects` means. "row": positions in the file, from 0 to 37; "directory": the numbers
        NN of the directories yaleBNN, from 1 to 39 without 14. The paper's subjects 5, 6, 8 are
        rows 4, 5, 7 either way. Its 22, 28, 30 can be the directories of these numbers, or the
        22nd, 28th and 30th subject: rows 21, 27, 29.
    downsampling : {"nearest", "bicubic"}, default="nearest"
        How the originals of 192x168 pixels were made smaller. The paper does not say.
    normalize : bool, default=True
        Whether to scale every sample to norm 1, as in the paper; else values are 0 to 255.
    data_home : path, default=None
        Folder of the file. Without the file in it, nothing else is tried.
    verify : bool, default=True
        Whether to compare the SHA-256 of the file. False for a file that you have built.

    Returns
    -------
    data : Faces
        `X`, `target`, `lighting`, `bad`, `images`. Eighteen images are corrupt and one of
        them is black: `data.X[~data.bad]` leaves them out.

    Examples
    --------
    >>> from polyspan.datasets import load_extended_yale_b
    >>> data = load_extended_yale_b((22, 28, 30), by="directory")
    >>> data.X.shape, data.images.shape, data.target[::64].tolist()
    ((192, 2016), (192, 48, 42), [22, 28, 30])
    """
    if downsampling not in DOWNSAMPLINGS:
        raise ValueError(f"downsampling={downsampling!r} must be one of {DOWNSAMPLINGS}")
    if by not in ("row", "directory"):
        raise ValueError(f'by={by!r} must be "row" or "directory"')
    path = find_file(YALE_B, data_home, verify=verify)
    arrays = _read(path, downsampling)
    rows = _find_subjects(subjects, by, arrays["subject_id"])
    images = arrays[downsampling][rows]
    n, lightings = images.shape[:2]
    X = images.reshape(n * lightings, -1).astype(float)
    return Faces(
        X=unit_rows(X) if normalize else X,
        target=np.repeat(arrays["subject_id"][rows].astype(int), lightings),
        lighting=np.tile(arrays["lighting"], n),
        bad=arrays["bad"][rows].reshape(-1),
    )


def _read(path: os.PathLike[str], downsampling: str) -> dict[str, np.ndarray]:
    """Read what a load needs, and say what the file must hold where it is another one."""
    try:
        with np.load(path) as stored:
            arrays = {key: stored[key] for key in (downsampling, "subject_id", "lighting", "bad")}
        n, lightings = arrays["bad"].shape
        shapes = {
            downsampling: (n, lightings, 48, 42),
            "subject_id": (n,),
            "lighting": (lightings,),
        }
        found = {key: arrays[key].shape for key in shapes}
        if found != shapes:
            raise ValueError(f"found the shapes {found}")
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} must be an npz file with `nearest` and `bicubic` of shape (subjects, "
            f"lightings, 48, 42), `subject_id` (subjects,), `lighting` (lightings,) and `bad` "
            f"(subjects, lightings): {error}. {YALE_B.how}"
        ) from error
    return arrays


def _find_subjects(
    subjects: int | Sequence[int] | None, by: str, subject_id: np.ndarray
) -> np.ndarray:
    if subjects is None:
        return np.arange(len(subject_id))
    chosen = whole_numbers(subjects)
    known = list(range(len(subject_id))) if by == "row" else subject_id.tolist()
    if not chosen or not set(chosen) <= set(known):
        raise ValueError(
            f"subjects={subjects!r} with by={by!r} must be whole numbers, at least one, each of "
            f"them one of {known}"
        )
    return np.array([known.index(subject) for subject in chosen])
