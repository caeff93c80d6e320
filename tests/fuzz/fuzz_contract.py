"""The contract of every call: a result that keeps its promises, or an error that helps."""

import copy
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from sklearn.base import clone

#: What NumPy and SciPy say about their own arrays, which tells a user nothing.
RAW = (
    "broadcast", "cannot reshape", "ambiguous", "zero-size", "infs or NaNs", "matmul",
    "out of bounds",
    "not aligned", "einsum", "core dimension", "setting an array element", "unpack", "svd",
    "singular matrix", "converge", "NearestNeighbors does", "SpectralEmbedding", "ufunc",
)  # fmt: skip

#: Estimates that the docs allow to be missing.
MAY_BE_NAN = ("dimension_estimates_",)


class BrokenPromiseError(Exception):
    """A promise that was not kept."""


def check(case):
    """Run a case; raise `BrokenPromiseError` where the contract is not kept."""
    before = copy.deepcopy(case.X)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = case.model.fit(case.X)
        except Exception as error:  # every kind is looked at
            check_error(case, error)
            must_be_same(before, case.X)
            return "error"
        if case.wrong_parameter is not None:
            raise BrokenPromiseError(f"{case.wrong_parameter} was taken")
        must_be_same(before, case.X)
        check_fitted(model, size_of(case.X))
        check_methods(case, model)
        check_again(case, model)
        must_be_same(before, case.X)
    return "result"


def check_error(case, error):
    kind, message = type(error), str(error)
    if isinstance(error, np.linalg.LinAlgError) or not isinstance(error, (ValueError, TypeError)):
        raise BrokenPromiseError(f"{kind.__name__}: {message}") from error
    if len(message) < 15 or any(word in message for word in RAW):
        raise BrokenPromiseError(f"a raw message: {message}") from error
    named = re.search(r"'(\w+)' parameter of", message)
    named = named is not None and named[1] in case.model.get_params()
    if case.wrong_parameter is not None and case.wrong_parameter not in message and not named:
        raise BrokenPromiseError(f"{case.wrong_parameter} is not named: {message}") from error


def must_be_same(before, after):
    if isinstance(before, (pd.DataFrame, pl.DataFrame)):
        same = before.equals(after)
    elif scipy.sparse.issparse(before):
        same = all(
            getattr(before, name).tobytes() == getattr(after, name).tobytes()
            for name in ("data", "indices", "indptr")
        )
    else:
        a, b = np.asarray(before), np.asarray(after)
        same = a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        same = same or a.dtype == object
    if not same:
        raise BrokenPromiseError("the input was changed")


def size_of(X):
    """Return the largest norm of a row, up to which rounding errors grow."""
    if isinstance(X, pd.DataFrame):
        X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.abs(np.asarray(X, dtype=np.float64))
    largest = np.where(np.isfinite(values), values, 0.0).max(initial=0.0)
    return np.float64(largest * max(1, values.shape[1]) ** 0.5)


def check_fitted(model, size):
    for name, value in vars(model).items():
        if name.endswith("_") and name not in MAY_BE_NAN and is_nan(value):
            raise BrokenPromiseError(f"{name} is NaN or has some")
    check_bases(getattr(model, "bases_", None), getattr(model, "subspace_dims_", None))
    check_labels(getattr(model, "labels_", None), n_clusters(model))
    if hasattr(model, "anneal_history_") and model.get_params().get("residual", "plain") == "plain":
        check_descent(model, size)


def is_nan(value):
    floats = isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    return floats and bool(np.isnan(value).any())


def check_bases(bases, dims=None):
    if isinstance(bases, np.ndarray) and bases.size:
        gram = np.einsum("lms,lmt->lst", bases.astype(float), bases.astype(float))
        expected = np.tile(np.eye(bases.shape[2]), (len(bases), 1, 1))
        if dims is not None:  # columns beyond the dimension of a subspace are zero
            expected *= np.arange(bases.shape[2]) < dims[:, None, None]
        if np.abs(gram - expected).max() > 1e3 * np.finfo(bases.dtype).eps:
            raise BrokenPromiseError("bases_ are not orthonormal")


def check_labels(labels, n):
    if labels is None or not labels.size:
        return
    if labels.dtype.kind not in "iu":
        raise BrokenPromiseError(f"labels_ are of {labels.dtype}")
    if labels.min() < -1 or labels.max() >= n:
        raise BrokenPromiseError(f"labels_ go from {labels.min()} to {labels.max()}")


def check_descent(model, size):
    """The objective never rises, but for rounding of ‖y‖² - ‖Dᵀy‖² and of s - ‖D_lᵀD_p‖²."""
    if getattr(model, "solver", "") == "grouse" or hasattr(model, "merge_history_"):
        return
    history = np.asarray(model.objective_history_)
    history = history[np.isfinite(history)]
    eps = np.finfo(model.bases_.dtype).eps
    weight = 1.0 if np.isinf(model.lam_) else model.lam_
    n_subspaces, _, s = model.bases_.shape
    parts = len(model.labels_) * weight * size**2 + n_subspaces**2 * s
    if np.any(np.diff(history) > 1e4 * eps * np.abs(history[:-1]) + 100 * eps * parts + 1e-290):
        raise BrokenPromiseError(f"the objective rises: {history}")


def n_clusters(model):
    for name in ("n_subspaces_", "n_clusters_", "n_subspaces", "n_clusters"):
        if isinstance(getattr(model, name, None), (int, np.integer)):
            return getattr(model, name)
    return 1


def check_methods(case, model):
    """Every method gives one finite result per row, whatever rows are beside it."""
    n = len(np.asarray(case.X)) if not hasattr(case.X, "shape") else case.X.shape[0]
    for name in ("predict", "transform", "reconstruct", "impute", "score_samples"):
        if not hasattr(model, name):
            continue
        try:
            out = np.asarray(getattr(model, name)(case.X))
        except Exception as error:
            check_error(case, error)
            continue
        if len(out) != n:
            raise BrokenPromiseError(f"{name} gives {len(out)} rows for {n}")
        if is_nan(out) and not allowed_nan(model, name, case.X):
            raise BrokenPromiseError(f"{name} gives NaN")
        if name in ("transform", "reconstruct") and n > 2 and isinstance(case.X, np.ndarray):
            alone = np.asarray(getattr(model, name)(case.X[: n // 2]))
            beside = out[: n // 2]
            size = np.abs(beside[np.isfinite(beside)]).max(initial=0.0)
            tol = 1e4 * np.finfo(beside.dtype).eps * max(size, size_of(case.X)) + 1e-290
            if "kernel" in model.get_params():  # the root of a difference of squares
                tol = max(tol, kernel_rounding(model, beside.dtype, size, size_of(case.X)))
            if hasattr(model, "noise_variances_"):  # the same, in standard deviations of the noise
                unit = size_of(case.X) / float(model.noise_variances_.min()) ** 0.5
                tol = max(tol, 100 * np.finfo(beside.dtype).eps ** 0.5 * max(size, unit))
            ok = np.isclose(alone, beside, rtol=1e-6, atol=tol, equal_nan=True)
            if name == "transform" and not ok.all():
                raise BrokenPromiseError(f"{name} of a row depends on the rows beside it")


def kernel_rounding(model, dtype, size, largest):
    """Return the rounding of a distance in a feature space, whose unit is √k(x, x).

    With rbf the unit is 1, and γ‖x‖² is rounded in an exponent.
    """
    gamma = model.gamma if isinstance(model.gamma, float) else 1.0
    lost, unit = 1.0, largest
    if model.kernel == "rbf":
        lost, unit = 1.0 + gamma * largest**2, 1.0
    elif model.kernel == "poly":
        unit = (gamma * largest**2 + abs(model.coef0)) ** (0.5 * model.degree)
    return 100 * (np.finfo(dtype).eps * lost) ** 0.5 * max(size, unit)


def allowed_nan(model, name, X):
    """Tell where NaN is promised.

    Columns that were never observed stay empty unless they are asked for, and a row with no more
    entries than dimensions has no residual.
    """
    few = name == "score_samples" and hasattr(model, "predict") and -1 in model.predict(X)
    return few or hasattr(model, "keep_empty_features")


def check_again(case, model):
    """The same seed gives the same bits, with other n_jobs too."""
    options = [{}] + ([{"n_jobs": 2}] if "n_jobs" in model.get_params() else [])
    for more in options:
        other = clone(model).set_params(**more).fit(case.X)
        for name in ("bases_", "labels_", "objective_", "members_", "coefs_"):
            a, b = getattr(model, name, None), getattr(other, name, None)
            if a is None or isinstance(a, list):
                continue
            pairs = [(a[key], b[key]) for key in a] if isinstance(a, dict) else [(a, b)]
            if any(np.asarray(x).tobytes() != np.asarray(y).tobytes() for x, y in pairs):
                raise BrokenPromiseError(f"{name} differs in a second fit {more}")
