"""The pools of threads that libraries of this process have."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController


class NoPools(nullcontext[None]):
    """Stands for the pools, and for limits on them, where none can be found."""

    def select(self, **_: Any) -> NoPools:
        """Return none of none."""
        return self

    def limit(self, **_: Any) -> NoPools:
        """Return a context that changes nothing."""
        return self

    def restore_original_limits(self) -> None:
        """Do nothing: nothing was changed."""


def thread_pools() -> Any:
    """Return the pools of the libraries that are loaded now.

    None where Linux cannot list the libraries of a process, in a container without /proc. And of
    Accelerate, the BLAS of macOS, threadpoolctl knows nothing: it keeps its own threads.
    """
    try:
        return ThreadpoolController()
    except OSError:
        return NoPools()
