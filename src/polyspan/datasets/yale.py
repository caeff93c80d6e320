"""Faces under changing light: the Extended Yale Face Database B, cropped and downsampled."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyspan.base.arrays import unit_rows
from polyspan.base.files import atomic_write
from polyspan.datasets.files import DataFile, find_file, read_gray, whole_numbers

YALE_B = DataFile(
    name="extended_yaleb_48x42.npz",
    sha256="03feddc22d49d339f0da76de12a74b0b70feffb07c2d258403317508fe021087",
    advice=(
        "It is made from the cropped images of the Extended Yale Face Database B, which UCSD "
        "publishes (vision.ucsd.edu): polyspan.datasets.build_extended_yale_b(folder, out) makes "
        "such a file, to be loaded with verify=False."
    ),
)
DOWNSAMPLINGS = ("nearest", "bicubic")
# Corrupt originals are published as NAME.pgm.bad. Images of ambient light do not match.
_NAME = re.compile(r"yaleB\d\d_P00(A[+-]\d{3}E[+-]\d{2})\.pgm(\.bad)?")


@dataclass(frozen=True)
class Faces:
    """Images of faces as samples.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 2016)
        Samples: the pixels of an image row by row.
    target : ndarray of shape (n_samples,)
        The subject: the number NN of the directory yaleBNN.
    lighting : ndarray of shape (n_samples,)
        Direction of the light, such as "A+035E-20": azimuth and elevation in degrees.
    bad : ndarray of shape (n_samples,)
        True where the original image is corrupt.
    """

    X: np.ndarray
    target: np.ndarray
    lighting: np.ndarray
    bad: np.ndarray

    @property
    def images(self) -> np.ndarray:
        """The samples as images, shape (n_samples, 48, 42); a view of `X`."""
        return self.to_images(self.X)

    @staticmethod
    def to_images(rows: np.ndarray) -> np.ndarray:
        """Return rows in the order of `X`, such as denoised samples, as images.

        Parameters
        ----------
        rows : array-like of shape (n_rows, 2016)
            Pixels of an image row by row.

        Returns
        -------
        ndarray of shape (n_rows, 48, 42)
            One image per row.
        """
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

    The file `extended_yaleb_48x42.npz` is read from `data_home`, or else from the folder that the
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
        Folder of the file. If it is given, no other folder is searched.
    verify : bool, default=True
        Whether to check the SHA-256 of the file. False for a file that you have built.

    Returns
    -------
    Faces
        Samples `X`, their `target` and `lighting`, whether they are `bad`, and the `images`.
        Eighteen images are corrupt and one of them is black: `data.X[~data.bad]` leaves them out.

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
    """Read the arrays of a file; raise an error if it does not hold the expected ones."""
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
            f"(subjects, lightings): {error}. {YALE_B.advice}"
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


def build_extended_yale_b(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] = "extended_yaleb_48x42.npz"
) -> Path:
    """Make the file that `load_extended_yale_b` reads from the published cropped images.

    Images of 192x168 pixels become 48x42, by the nearest pixel and bicubic, as Pillow does it.
    Other programs select and weight pixels a little differently, so the SHA-256 may differ from
    that of the file that polyspan was tested with: load the result with `verify=False`.

    Parameters
    ----------
    folder : path
        The unpacked `CroppedYale`, with the directories yaleB01 to yaleB39.
    out : path, default="extended_yaleb_48x42.npz"
        File to write. Keep its name, and give the folder to the loader as `data_home`.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyspan.datasets import build_extended_yale_b, load_extended_yale_b
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     subject = Path(folder) / "yaleB05"
    ...     subject.mkdir()
    ...     image = b"P5 168 192 255 " + bytes(192 * 168)
    ...     _ = (subject / "yaleB05_P00A+000E+00.pgm").write_bytes(image)
    ...     out = build_extended_yale_b(folder, Path(folder) / "extended_yaleb_48x42.npz")
    ...     load_extended_yale_b(data_home=folder, verify=False).X.shape
    (1, 2016)
    """
    subjects = sorted(Path(folder).expanduser().glob("yaleB[0-9][0-9]"))
    files = [_list_images(subject) for subject in subjects]
    if not subjects or not files[0]:
        raise FileNotFoundError(
            f"{folder} has no images yaleBNN/yaleBNN_P00A…E….pgm: give the folder CroppedYale of "
            "the unpacked archive"
        )
    lightings = sorted(files[0])
    for subject, images in zip(subjects, files, strict=True):
        if sorted(images) != lightings:
            differing = sorted(set(images) ^ set(lightings))
            raise ValueError(
                f"{subject} and {subjects[0]} differ in the lightings {differing}: every subject "
                "needs all of them, so unpack the archive again"
            )
    ordered = [[images[lighting] for lighting in lightings] for images in files]
    pixels = [[_downsample(path) for path in images] for images in ordered]
    nearest, bicubic = np.moveaxis(np.array(pixels), 2, 0)
    target = Path(out).expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target, overwrite=True) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            nearest=nearest,
            bicubic=bicubic,
            subject_id=np.array([int(subject.name[-2:]) for subject in subjects], dtype=np.uint8),
            lighting=np.array(lightings),
            bad=np.array([[path.suffix == ".bad" for path in images] for images in ordered]),
        )
    return target


def _list_images(subject: Path) -> dict[str, Path]:
    names = {path: _NAME.fullmatch(path.name) for path in sorted(subject.iterdir())}
    return {match[1]: path for path, match in names.items() if match}


def _downsample(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from PIL import Image

    try:
        pixels = read_gray(path)
        if pixels.shape != (192, 168):
            raise ValueError(f"{path} has {pixels.shape} pixels, expected (192, 168)")
    except ValueError:
        if path.suffix != ".bad":
            raise
        pixels = np.zeros((192, 168), dtype=np.uint8)  # it is marked as corrupt
    image = Image.fromarray(pixels)
    nearest = image.resize((42, 48), Image.Resampling.NEAREST)
    return np.asarray(nearest), np.asarray(image.resize((42, 48), Image.Resampling.BICUBIC))
