"""Progress of a fit, for scikit-learn's callbacks and as a bar, and of other loops as a bar.

`polyspan.callbacks.show_progress` asks for bars. A terminal can move one group of lines only. So
all jobs share one display, which is drawn from the begin of the first job until the end of the last
one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from polyspan.base.optional import import_optional

if TYPE_CHECKING:  # the shell shows bars before it needs arrays, whose imports take long
    from polyspan.base.arrays import Array

#: Called by a solver after every iteration with (start, iteration, objective, current bases);
#: returns whether to stop.
Monitor = Callable[[int, int, float, Any], bool]


class FitProgress:
    """Report a fit to callbacks and to its bar: one task per start, one subtask per iteration.

    It does nothing where no callback is set and no bar was asked for.

    Parameters
    ----------
    estimator : estimator with `CallbackSupportMixin`
    X, y : array
        The training data, passed on to callbacks; `y` is used for nothing else.
    n_starts, max_steps : int
        Number of starts, and the largest number of iterations of one start.
    """

    def __init__(self, estimator: Any, X: Array, y: Any, n_starts: int, max_steps: int) -> None:
        self._callback_arguments = {"estimator": estimator, "X": X, "y": y}
        self._root = estimator._init_callback_context(
            max_subtasks=n_starts, sequential_subtasks=False
        )
        self._root.call_on_fit_task_begin(**self._callback_arguments)
        self._listening = bool(getattr(estimator, "_skl_callbacks", []))
        self._bar = _FitBar.of(estimator, n_starts, max_steps)
        self._tasks = []
        self._counts: dict[tuple[int, str | None], int] = {}
        self._stopped: set[int] = set()
        if self._listening:
            for start in range(n_starts):
                task = self._root.subcontext("start", task_id=start, max_subtasks=max_steps)
                task.call_on_fit_task_begin(**self._callback_arguments)
                self._tasks.append(task)

    def monitor(
        self,
        first: int,
        fitted: Callable[[Array], dict[str, Any]],
        measure: str | None = "objective",
    ) -> Monitor | None:
        """Return the function that a solver calls after each iteration, or None if nobody listens.

        The solver counts its starts from 0; `first` is the index of the first of them. `fitted`
        turns the current bases into fitted attributes, for callbacks that need an estimator as if
        the fit had ended there. `measure` is the name of the value that the solver reports: a
        callback finds it in `context.reported`. None: the solver has nothing to report. Phases of
        a start have measures of their own, and `context.number` counts the steps of each.
        """
        bar = self._bar
        if not self._listening and bar is None:
            return None

        def report(start: int, iteration: int, objective: float, bases: Array) -> bool:
            if bar is not None:
                bar.step(first + start)
            if not self._listening:
                return False
            step = self._tasks[first + start].subcontext("iteration")
            # Not `metadata`, which scikit-learn hands on to scorers.
            step.reported = {} if measure is None else {measure: objective}
            step.number = self._counts.get((first + start, measure), 0)
            self._counts[first + start, measure] = step.number + 1
            step.call_on_fit_task_begin(**self._callback_arguments)
            stop = step.call_on_fit_task_end(
                **self._callback_arguments, reconstruction_attributes=lambda: fitted(bases)
            )
            if stop:  # of all phases of this start
                self._stopped.add(first + start)
            return first + start in self._stopped

        return report

    def ticker(self, start: int = 0) -> Callable[[], None]:
        """Return a function for loops that have nothing to report but that a step is over."""
        monitor = self.monitor(start, lambda _: {}, measure=None)
        steps = count()

        def tick() -> None:
            if monitor is not None:
                monitor(0, next(steps), 0.0, None)

        return tick

    def end_start(self, start: int) -> None:
        """Report that a start is over."""
        if self._bar is not None:
            self._bar.end_start(start)
        if self._listening:
            self._tasks[start].call_on_fit_task_end(**self._callback_arguments)

    def end(self) -> None:
        """Report that the fit is over, after the estimator has its fitted attributes."""
        self._root.call_on_fit_task_end(**self._callback_arguments, reconstruction_attributes={})


class _FitBar:
    """The line of a fit in the display of bars: each start has an equal part of it."""

    def __init__(self, job: Job, n_starts: int, max_steps: int) -> None:
        self._job = job
        self._size = 1.0 / max(max_steps, 1)
        self._left = [1.0] * n_starts
        job.change(total=n_starts)

    @classmethod
    def of(cls, estimator: Any, n_starts: int, max_steps: int) -> _FitBar | None:
        """Return the bar of the fit of an estimator, or None if no bar was asked for."""
        job = current_job(estimator)
        return None if job is None else cls(job, n_starts, max_steps)

    def step(self, start: int) -> None:
        """Move on by one iteration of a start."""
        part = min(self._size, self._left[start])
        self._left[start] -= part
        self._job.advance(part)

    def end_start(self, start: int) -> None:
        """Move on to the end of a start, which may come before its largest number of steps."""
        self._job.advance(self._left[start])
        self._left[start] = 0.0


@contextmanager
def progress_bar(shown: bool, total: float, title: str) -> Iterator[Callable[..., None]]:
    """Yield a function that advances a progress bar, by one if not told, and can change its title.

    The function does nothing if `shown` is False and `show_progress` was not called. The bar is
    written to the standard error, or below the cell of a notebook, and disappears at the end.
    """
    if not shown and not asked():
        yield lambda title=None, advance=1.0: None
        return
    check_rich()
    job = Job(title, total, delay=0.0 if shown else DELAY)

    def move(title: str | None = None, advance: float = 1.0) -> None:
        if title is not None:
            job.change(description=title)
        job.advance(advance)

    try:
        yield move
    finally:
        job.end()


@dataclass(frozen=True)
class Share:
    """A part of a progress bar that belongs to one piece of work; by default of no bar.

    A piece is split where its steps are known, so that one bar serves a call whose steps are found
    out on the way.
    """

    advance: Callable[[float], object] = lambda _: None
    size: float = 1.0

    def of(self, n: int) -> Share:
        """Return the share of one of n equal parts."""
        return Share(self.advance, self.size / n)

    def ticks(self, n: int) -> Callable[[], None]:
        """Return a function that is to be called n times."""

        def tick() -> None:
            self.advance(self.size / n)

        return tick


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
