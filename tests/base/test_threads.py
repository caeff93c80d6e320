"""BLAS threads: limited while some caller needs it, restored by the last one."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from polyspan.base.arrays import limit_threads


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    np.eye(2) @ np.eye(2)
    with threadpool_limits(2, user_api="blas"):
        yield


def test_overlapping_callers():
    first, second = limit_threads(1.0), limit_threads(1.0)
    first.__enter__()
    second.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == {2}


def test_many_threads_at_once():
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(20):
            with limit_threads(1.0):
                np.ones((20, 20)) @ np.ones((20, 20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == {2}


def test_a_thread_limits_and_restores_what_another_controls():
    seen = []

    def work():
        with limit_threads(1.0):
            seen.append(blas_threads())
        seen.append(blas_threads())

    with limit_threads(1.0):  # of this thread, which begins
        pass
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [{1}, {2}]


def test_the_last_thread_restores_what_the_first_has_set():
    entered, left = threading.Event(), threading.Event()

    def work():
        with limit_threads(1.0):
            entered.set()
            left.wait()

    with limit_threads(1.0):
        thread = threading.Thread(target=work)
        thread.start()
        entered.wait()
    assert blas_threads() == {1}
    left.set()
    thread.join()
    assert blas_threads() == {2}


def test_an_error_inside_restores_them():
    with pytest.raises(KeyError), limit_threads(1.0):
        raise KeyError
    assert blas_threads() == {2}


def test_large_work_is_not_limited():
    with limit_threads(1e12):
        assert blas_threads() == {2}
    with limit_threads(1e12, n_parallel=2):
        assert blas_threads() == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_begins_anew():
    with limit_threads(1.0):
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            inside = blas_threads() == {2}
            with limit_threads(1.0):
                inside = inside and blas_threads() == {1}
            os._exit(0 if inside and blas_threads() == {2} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_spectral_start_in_a_process_that_is_forked_after_others_used_threads():
    # In a process of its own: OpenMP threads of other tests would stay.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True,
        check=False, timeout=120, env=os.environ | {"OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.stdout == "fitted\n", done.stderr


FORKED = """
import os
import numpy as np
from sklearn.cluster import KMeans
from polyspan import MCKUSaL
X = np.random.RandomState(0).standard_normal((600, 5))
KMeans(2, n_init=1).fit(X)
child = os.fork()
if child == 0:
    MCKUSaL(2, 2, kernel="rbf", max_iter=2, random_state=0).fit(X)
    print("fitted", flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
