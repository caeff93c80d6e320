"""The progress bars of all jobs that run now; `polyspan.callbacks.show_progress` asks for them.

A terminal can move one group of lines only. So all jobs share one display, which is drawn from the
begin of the first job until the end of the last one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from polyspan.base.optional import import_optional

#: Seconds after which a line appears that nobody asked for by an argument.
DELAY = 0.3

#: Whether every job shows a bar.
_asked = False
_lock = threading.RLock()
_jobs: list[Job] = []
_display: Any = None


def ask(shown: bool) -> bool:
    """Show a bar for every job from now on, or no longer; return what was asked for before.

    Raise an error if bars cannot be drawn.
    """
    global _asked
    if shown:
        check_rich()
    before, _asked = _asked, shown
    return before


def asked() -> bool:
    """Return whether every job shows a bar."""
    return _asked


def check_rich() -> None:
    """Raise an error that says what to install, if rich is missing."""
    import_optional("rich.progress", "a progress bar")


class Job:
    """A piece of work with a line of its own in the display.

    Parameters
    ----------
    title : str
        The words before the bar.
    total : float or None, default=None
        Size of the work; None: not known yet.
    owner : object, default=None
        The estimator whose fit this is.
    delay : float, default=0
        Seconds after which the line appears: those of short work would only flicker.
    """

    def __init__(
        self, title: str, total: float | None = None, *, owner: Any = None, delay: float = 0.0
    ) -> None:
        global _display
        self.owner = owner
        with _lock:
            if _display is None:
                from polyspan.base.bars_drawn import start_display

                _display = start_display()
            self._display = _display
            self._line = _display.add_task(title, total=total, delay=delay)
            _jobs.append(self)

    def advance(self, by: float = 1.0) -> None:
        """Say that a part of the work is done."""
        self._display.update(self._line, advance=by)

    def change(self, **values: Any) -> None:
        """Change the `total` or the `description` of the line."""
        self._display.update(self._line, **values)

    def end(self) -> None:
        """Take the line away, and the display with the last line."""
        global _display
        with _lock:
            _jobs.remove(self)
            if _jobs:
                self._display.remove_task(self._line)
            else:
                _display = None
                self._display.stop()


@contextmanager
def job_of_fit(estimator: Any) -> Iterator[None]:
    """Show a line while an estimator is fitted; it ends with the fit, however this ends.

    A fit that calls the fit of its parent class has one line.
    """
    if current_job(estimator) is not None:
        yield
        return
    job = Job(type(estimator).__name__, owner=estimator, delay=DELAY)
    try:
        yield
    finally:
        job.end()


def current_job(estimator: Any) -> Job | None:
    """Return the line of the fit of an estimator, or None if no bar was asked for."""
    with _lock:
        return next((job for job in reversed(_jobs) if job.owner is estimator), None)
