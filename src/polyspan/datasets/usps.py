"""Handwritten digits of the US Postal Service, in the version that the paper used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.io

from polyspan.base.arrays import unit_rows
from polyspan.datasets.files import DataFile, find_file, whole_numbers

_URL = "https://cs.nyu.edu/~roweis/data/usps_all.mat"
USPS = DataFile(
    name="usps_all.mat",
    sha256="da2c8d6e8bd743da00c67020f444e0f28250dfbd16c55d8135c50ffa7719a5f9",
    advice=f"Sam Roweis publishes it at {_URL}.",
    url=_URL,
)


@dataclass(frozen=True)
class Digits:
    """Images of digits as samples.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 256)
        Samples: the pixels of an image column by column, as in the file.
    target : ndarray of shape (n_samples,)
        Which digit each sample is.
    """

    X: np.ndarray
    target: np.ndarray

    @property
    def images(self) -> np.ndarray:
        """The samples as upright images, shape (n_samples, 16, 16); a view of `X`."""
        return self.to_images(self.X)

    @staticmethod
    def to_images(rows: np.ndarray) -> np.ndarray:
        """Return rows in the order of `X`, such as denoised samples, as upright images.

        Parameters
        ----------
        rows : array-like of shape (n_rows, 256)
            Pixels of an image column by column.

        Returns
        -------
        ndarray of shape (n_rows, 16, 16)
            One image per row.
        """
        return np.asarray(rows).reshape(-1, 16, 16).swapaxes(1, 2)


def load_usps(
    digits: int | Sequence[int] | None = None,
    n_per_digit: int | None = None,
    *,
    normalize: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Digits:
    """Load the USPS digits: 1100 images of 16x16 pixels of each digit.

    The file `usps_all.mat` is read from `data_home`, or else from the folder that the
    environment variable POLYSPAN_DATA names, from the cache folder, or from its publisher (which
    needs pooch: `pip install pooch`). Its SHA-256 is always checked.

    Parameters
    ----------
    digits : int or sequence of int, default=None
        Which digits, in which order; None: 0 to 9.
    n_per_digit : int, default=None
        Number of samples of each digit, the first ones of the file; None: all.
    normalize : bool, default=True
        Whether to scale every sample to norm 1, as in the paper; else values are 0 to 255.
    data_home : path, default=None
        Folder of the file. If it is given, no other folder is searched.
    download : bool, default=True
        Whether the network may be used.

    Returns
    -------
    Digits
        Samples `X`, their digits `target`, the `images`, and `to_images` for results in the order
        of `X`.

    Examples
    --------
    >>> from polyspan.datasets import load_usps
    >>> data = load_usps((0, 4), n_per_digit=200)
    >>> data.X.shape, data.images.shape, data.target[[0, -1]].tolist()
    ((400, 256), (400, 16, 16), [0, 4])
    """
    chosen = whole_numbers(range(10) if digits is None else digits)
    if not chosen or not set(chosen) <= set(range(10)):
        raise ValueError(f"digits={digits!r} must be whole numbers from 0 to 9, at least one")
    path = find_file(USPS, data_home, download=download)
    pixels = scipy.io.loadmat(path)["data"]
    available = pixels.shape[1]
    n = available if n_per_digit is None else n_per_digit
    if whole_numbers(n) != (n,) or not 1 <= n <= available:
        raise ValueError(
            f"n_per_digit={n_per_digit!r} must be a whole number from 1 to {available}, the "
            "number of samples of each digit"
        )
    # The third axis of the file holds the digits 1, 2, …, 9, 0.
    parts = [pixels[:, :n, (digit - 1) % 10].T for digit in chosen]
    X = np.concatenate(parts).astype(float, order="C")
    return Digits(X=unit_rows(X) if normalize else X, target=np.repeat(chosen, n))
