"""Arrays of any namespace: creation, transfers, sizes of chunks, and limits on threads.

Nothing here imports an array framework: the namespace is taken from the arrays that come in.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
import scipy.linalg
from array_api_compat import (
    array_namespace,
    is_array_api_obj,
    is_array_api_strict_namespace,
    is_numpy_array,
    to_device,
)
from array_api_compat import device as device
from threadpoolctl import OpenBLASController, ThreadpoolController

#: An array of any namespace that follows the array API standard.
Array = Any

# A chunk of about this many bytes stays in cache between the assignment product and the sums that
# follow it: 1.1 times the bare product, against 1.4 with chunks of 16 MB (m=784, 100 columns).
CHUNK_BYTES = 6 << 20
# With fewer rows than this BLAS spends more time on packing the bases than on multiplying.
CHUNK_MIN_ROWS = 512
# Neither a chunk nor its projections may take more bytes than this.
CHUNK_MAX_BYTES = 64 << 20
# An accelerator gains nothing from its cache here, and every chunk costs the launch of kernels.
DEVICE_CHUNK_BYTES = 4 << 30
# Below this many floating-point operations a product is done before a second thread has started;
# on a busy machine two threads were 20 times slower than one.
SMALL_WORK = 1e9
# Just below the size from which the allocator always returns memory to the system.
FREED_BYTES = 30 << 20


#: Returns the array namespace that all arrays share.
namespace = array_namespace


def as_array(a: Any) -> Array:
    """Return an array unchanged, and anything else as a NumPy array."""
    return a if is_array_api_obj(a) else np.asarray(a)


def is_host(a: Array) -> bool:
    """Tell whether an array is in the memory of the CPU, where gathering rows is cheap.

    On an accelerator a size that depends on the data, such as the number of rows of a cluster,
    must first be copied to the CPU: there masking costs less than waiting for that copy.
    """
    where = str(device(a))
    return where == "cpu" or "CPU_DEVICE" in where  # the second is array-api-strict's


#: Tells whether an object is a NumPy array.
is_numpy = is_numpy_array


def to_numpy(a: Any) -> np.ndarray:
    """Bring an array of any namespace and device to NumPy; anything else becomes an array."""
    if not is_array_api_obj(a) or is_numpy_array(a):
        return np.asarray(a)
    xp = namespace(a)
    cpu = xp.Device("CPU_DEVICE") if is_array_api_strict_namespace(xp) else "cpu"
    return np.asarray(to_device(a, cpu))


def moved_to(a: Any, like: Array, dtype: Any = None) -> Array:
    """Move a NumPy array or numbers to the namespace and device of the array `like`."""
    if is_numpy_array(a) and not is_numpy_array(like):
        a = np.asarray(a, order="C")  # PyTorch takes no negative strides
    return namespace(like).asarray(a, dtype=dtype, device=device(like))


def zeros(shape: tuple[int, ...], like: Array, dtype: Any = None) -> Array:
    """Return zeros in the namespace, on the device and (by default) of the dtype of `like`."""
    return namespace(like).zeros(shape, dtype=dtype or like.dtype, device=device(like))


def unfilled(shape: tuple[int, ...], like: Array, dtype: Any = None) -> Array:
    """Return an uninitialised array, placed as in `zeros`, for the caller to fill."""
    return namespace(like).empty(shape, dtype=dtype or like.dtype, device=device(like))


def identity(n: int, like: Array) -> Array:
    """Return the identity matrix in the namespace, on the device and of the dtype of `like`."""
    return namespace(like).eye(n, dtype=like.dtype, device=device(like))


def one_hot(labels: Array, n: int, dtype: Any) -> Array:
    """Return the one-hot code of labels 0, 1, …, n-1 along a new last axis."""
    xp = namespace(labels)
    every = xp.arange(n, dtype=labels.dtype, device=device(labels))
    return xp.astype(labels[..., None] == every, dtype)


def unit_rows(a: Array) -> Array:
    """Scale every row to norm 1; rows of zeros stay as they are.

    Rows whose squares would leave the range of the dtype are first divided by their largest entry.
    """
    xp = namespace(a)
    largest = xp.max(xp.abs(a), axis=1, keepdims=True)
    safe = float(xp.finfo(a.dtype).smallest_normal) ** 0.25
    extreme = (largest > 0) & ((largest < safe) | (largest > 1.0 / safe))
    if bool(xp.any(extreme)):
        a = a / xp.where(extreme, largest, xp.ones_like(largest))
    norms = xp.linalg.vector_norm(a, axis=1, keepdims=True)
    return a / xp.where(norms > 0, norms, xp.ones_like(norms))


def members_of(labels: Array, n: int) -> list[Array]:
    """Return, for every label 0, 1, …, n-1, the indices of its samples."""
    xp = namespace(labels)
    return [xp.nonzero(labels == p)[0] for p in range(n)]


def restore_order(members: list[Array], parts: list[Array]) -> Array:
    """Put rows that were computed cluster by cluster back into the order of the samples."""
    xp = namespace(parts[0])
    back = xp.argsort(xp.concat(members, axis=0))
    return xp.take(xp.concat(parts, axis=0), back, axis=0)


def transpose(a: Array) -> Array:
    """Swap the last two axes of a stack of matrices."""
    return a.mT


def float64_sum(a: Array, axis: int | tuple[int, ...] | None = None) -> Array:
    """Sum in double precision, so that objectives of float32 data stay accurate."""
    xp = namespace(a)
    return xp.sum(a, axis=axis, dtype=xp.float64)


def sum_of_squares(a: Array) -> float:
    """Return Σ a² of a matrix, in double precision and for NumPy without an array of squares."""
    if is_numpy_array(a):
        return float(np.einsum("nm,nm->", a, a, dtype=np.float64))
    return float(float64_sum(namespace(a).vecdot(a, a)))


def machine_epsilon(a: Array) -> float:
    """Return the machine epsilon of the array's dtype."""
    return float(namespace(a).finfo(a.dtype).eps)


def item_bytes(a: Array) -> int:
    """Return the bytes of one number of a floating-point array."""
    return int(namespace(a).finfo(a.dtype).bits) // 8


def some_eigenpairs(
    a: np.ndarray, first: int, last: int, *, check_finite: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues `first` to `last` of a symmetric matrix, ascending, and their vectors.

    LAPACK's driver `evr` computes only these, by bisection. Where many eigenvalues are equal, as of
    a graph whose edges all weigh the same, rounding makes it end in an error, or return fewer than
    asked for without a word. Then all are computed, which is the cure that LAPACK's documentation
    names. To compute all in every case would take two to four times as long.
    """
    try:
        values, vectors = scipy.linalg.eigh(
            a, subset_by_index=(first, last), check_finite=check_finite, driver="evr"
        )
        if len(values) == last - first + 1:
            return values, vectors
    except np.linalg.LinAlgError:
        pass
    values, vectors = scipy.linalg.eigh(a, check_finite=check_finite, driver="evd")
    return values[first : last + 1], vectors[:, first : last + 1]


def top_eigenvectors(a: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of a symmetric matrix, descending, and their vectors.

    Of NumPy arrays only the k vectors are computed, which saves the back-transformation of the
    others; for small matrices it is not faster.
    """
    xp = namespace(a)
    n = a.shape[-1]
    if n > 64 and is_numpy(a):
        values, vectors = some_eigenpairs(a, n - k, n - 1, check_finite=False)
    else:
        values, vectors = xp.linalg.eigh(a)
        values, vectors = values[-k:], vectors[:, -k:]
    return xp.flip(values, axis=0), xp.flip(vectors, axis=1)


def chunk_rows(n_features: int, item_bytes: int, n_columns: int = 0, *, host: bool = True) -> int:
    """Return how many rows to visit at once, from the shapes and the kind of memory alone.

    `n_columns` is the number of projections computed for every row.
    """
    row_bytes = max(1, n_features * item_bytes)
    widest = max(row_bytes, 3 * n_columns * item_bytes)
    if not host:
        return int(max(1, DEVICE_CHUNK_BYTES // widest))
    rows = max(CHUNK_MIN_ROWS, CHUNK_BYTES // row_bytes)
    return int(max(1, min(rows, CHUNK_MAX_BYTES // widest)))


def rows_at_once(X: Array, n_columns: int = 0) -> int:
    """Return `chunk_rows` for the rows of an array."""
    return chunk_rows(int(X.shape[1]), item_bytes(X), n_columns, host=is_host(X))


def row_slices(n: int, size: int) -> list[slice]:
    """Return slices of at most `size` that cover n rows."""
    return [slice(start, min(n, start + size)) for start in range(0, n, size)]


def some_rows(n: int, most: int, rng: np.random.RandomState) -> np.ndarray:
    """Return the indices of all rows, or of so many of them, drawn at random, in their order."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def pass_work(n_samples: int, n_features: int, n_columns: int) -> float:
    """Return the floating-point operations of one product of all rows with n_columns vectors."""
    return 2.0 * n_samples * n_features * n_columns


@cache  # looking for the loaded libraries takes milliseconds
def _pools(kind: str) -> Any:
    """Return the pools "blas" or "openmp" of the libraries that are loaded at the first call.

    None where Linux cannot list the libraries of a process, in a container without /proc. And of
    Accelerate, the BLAS of macOS, threadpoolctl knows nothing: it keeps its own threads.
    """
    try:
        return ThreadpoolController().select(user_api=kind)
    except OSError:
        return None


def _limited(kind: str) -> AbstractContextManager[Any]:
    """Set pools to one thread; what is returned restores them at its exit."""
    pools = _pools(kind)
    return nullcontext() if pools is None else pools.limit(limits=1)


class _OneThread:
    """Holds BLAS at one thread while at least one caller asks for it.

    The number of threads belongs to the process: where callers in several threads overlap, the
    first sets it and the last restores it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._callers = 0
        self._limit: AbstractContextManager[Any] = nullcontext()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._callers:
                _give_up_control()
                self._limit = _limited("blas")
                _give_up_control()
            self._callers += 1
        try:
            yield
        finally:
            with self._lock:
                self._callers -= 1
                if not self._callers:
                    self._restore()

    def _restore(self) -> None:
        _give_up_control()
        self._limit.__exit__(None, None, None)
        _give_up_control()

    def forget(self) -> None:
        """Begin anew in a forked process, where the callers of its parent do not run."""
        self._lock = Lock()
        if self._callers:
            self._callers = 0
            self._restore()


def _give_up_control() -> None:
    """Let every thread change the number of BLAS threads.

    In new versions of threadpoolctl (3.8) the first thread that changes it is the only one that
    can; calls of all others do nothing. Here the last thread restores what the first has set.
    """
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread.forget)


def limit_threads(work: float, n_parallel: int = 1) -> AbstractContextManager[Any]:
    """Return a context with one BLAS thread where several threads would be slower.

    The choice depends on the work of one pass and on the number of independent tasks
    `n_parallel`, never on how many of them run at once: results do not depend on `n_jobs`.
    """
    if work >= SMALL_WORK and n_parallel == 1:
        return nullcontext()
    return _one_thread()


def one_openmp_thread() -> AbstractContextManager[Any]:
    """Return a context with one OpenMP thread, for scikit-learn's k-means and neighbours.

    Where a process has used several, OpenMP of GNU hangs in the processes that are forked from it.
    The limit is that of the calling thread.
    """
    return _limited("openmp")


@cache
def keep_freed_memory() -> None:
    """Let the allocator keep the memory of freed arrays, so that later arrays reuse its pages.

    The C library of Linux returns freed memory to the system above a threshold, which grows with
    the largest array freed so far. Freeing one large array here, whose pages are never touched,
    avoids the page faults of all later temporary arrays (20 % of the time of eight starts on 650
    samples); the process then keeps up to twice that size.
    """
    np.empty(FREED_BYTES, dtype=np.uint8)


#: Numbers below 2 to this power need no scaling: in single, and in double precision.
SAFE_EXPONENTS = (31, 255)


def power_of_two_scale(largest: float, eps: float) -> float:
    """Return the power of two that brings `largest` near 1, or 1 where no scaling is needed.

    Scaling by a power of two does not round. Squares and sums of squares stay far from overflow and
    underflow between the fourth roots of the range (1e±77 for float64, 1e±9 for float32).
    """
    double = eps < 1e-10
    most = 1020 if double else 120
    exponent = math.frexp(largest)[1]
    if largest == 0.0 or abs(exponent) < SAFE_EXPONENTS[double]:
        return 1.0
    return 2.0 ** max(-most, min(most, -exponent))
