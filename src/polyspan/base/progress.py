"""Progress of a fit, for scikit-learn's callbacks and as a bar, and of other loops as a bar.

`polyspan.callbacks.show_progress` asks for bars. A terminal can move one group of lines only. So
all jobs share one display, which is drawn from the begin of the first job until the end of the last
one. Nothing here imports NumPy: the shell shows bars before it needs arrays, whose imports take
long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from polyspan.base.optional import import_optional

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

    def __init__(self, estimator: Any, X: Any, y: Any, n_starts: int, max_steps: int) -> None:
        self._callback_arguments = {"estimator": estimator, "X": X, "y": y}
        self._root = estimator._init_callback_context(
            max_subtasks=n_starts, sequential_subtasks=False
        )
        self._root.call_on_fit_task_begin(**self._callback_arguments)
        self._listening = bool(getattr(estimator, "_skl_callbacks", []))
        # In the display of bars each start has an equal part of the line.
        self._job = current_job(estimator)
        self._step, self._left = 1.0 / max(max_steps, 1), [1.0] * n_starts
        if self._job is not None:
            self._job.update(total=n_starts)
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
        fitted: Callable[[Any], dict[str, Any]],
        measure: str | None = "objective",
    ) -> Monitor | None:
        """Return the function that a solver calls after each iteration, or None if nobody listens.

        The solver counts its starts from 0; `first` is the index of the first of them. `fitted`
        turns the current bases into fitted attributes, for callbacks that need an estimator as if
        the fit had ended there. `measure` is the name of the value that the solver reports: a
        callback finds it in `context.reported`. None: the solver has nothing to report. Phases of
        a start have measures of their own, and `context.number` counts the steps of each.
        """
        if not self._listening and self._job is None:
            return None

        def report(start: int, iteration: int, objective: float, bases: Any) -> bool:
            self._advance(first + start, self._step)
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

        def tick() -> None:
            if monitor is not None:
                monitor(0, 0, 0.0, None)

        return tick

    def end_start(self, start: int) -> None:
        """Report that a start is over."""
        self._advance(start, 1.0)
        if self._listening:
            self._tasks[start].call_on_fit_task_end(**self._callback_arguments)

    def _advance(self, start: int, part: float) -> None:
        """Move the line on by a part of a start, or to its end."""
        if self._job is not None:
            part = min(part, self._left[start])
            self._left[start] -= part
            self._job.update(advance=part)

    def end(self) -> None:
        """Report that the fit is over, after the estimator has its fitted attributes."""
        self._root.call_on_fit_task_end(**self._callback_arguments, reconstruction_attributes={})


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
    with closing(Job(title, total, delay=0.0 if shown else DELAY)) as job:
        yield lambda title=None, advance=1.0: job.update(description=title, advance=advance)


@dataclass(frozen=True)
class Share:
    """A part of a progress bar that belongs to one piece of work; by default of no bar.

    A piece is split where its steps are known, so that one bar serves a call whose steps are found
    out on the way.
    """

    advance: Callable[[float], None] = lambda _: None
    size: float = 1.0

    def of(self, n: int) -> Share:
        """Return the share of one of n equal parts."""
        return Share(self.advance, self.size / n)

    def ticks(self, n: int) -> Callable[[], None]:
        """Return a function that is to be called n times."""
        return partial(self.advance, self.size / n)


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

    def update(self, **values: Any) -> None:
        """Change the `total` or the `description` of the line, or `advance` it by a number."""
        self._display.update(self._line, **values)

    def close(self) -> None:
        """Take the line away, and the display with the last line."""
        global _display
        with _lock:
            _jobs.remove(self)
            if _jobs:
                self._display.remove_task(self._line)
            else:
                _display = None
                self._display.stop()


def job_of_fit(estimator: Any) -> AbstractContextManager[object]:
    """Show a line while an estimator is fitted, if asked for; it ends with the fit in any case.

    A fit that calls the fit of its parent class has one line.
    """
    if not _asked or current_job(estimator) is not None:
        return nullcontext()
    return closing(Job(type(estimator).__name__, owner=estimator, delay=DELAY))


def current_job(estimator: Any) -> Job | None:
    """Return the line of the fit of an estimator, or None if no bar was asked for."""
    with _lock:
        return next((job for job in reversed(_jobs) if job.owner is estimator), None)
