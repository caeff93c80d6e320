"""Progress of a fit through scikit-learn's callbacks, and of other loops as a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from polyspan.arrays import Array
from polyspan.checks import import_optional

#: Called by a solver after every iteration with (start, iteration, objective, current bases);
#: returns whether to stop.
Monitor = Callable[[int, int, float, Any], bool]


class FitProgress:
    """Report a fit to callbacks: one task per start, one subtask per iteration.

    It does nothing where no callback is set.

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
        self._tasks = []
        self._counts: dict[tuple[int, str | None], int] = {}
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
        """Return the function that a solver calls after each iteration, or None without callbacks.

        The solver counts its starts from 0; `first` is the index of the first of them. `fitted`
        turns the current bases into fitted attributes, for callbacks that need an estimator as if
        the fit had ended there. `measure` is the name of the value that the solver reports: a
        callback finds it in `context.reported`. None: the solver has nothing to report. Phases of
        a start have measures of their own, and `context.number` counts the steps of each.
        """
        if not self._listening:
            return None

        def report(start: int, iteration: int, objective: float, bases: Array) -> bool:
            step = self._tasks[first + start].subcontext("iteration")
            # Not `metadata`, which scikit-learn hands on to scorers.
            step.reported = {} if measure is None else {measure: objective}
            step.number = self._counts.get((first + start, measure), 0)
            self._counts[first + start, measure] = step.number + 1
            step.call_on_fit_task_begin(**self._callback_arguments)
            return bool(
                step.call_on_fit_task_end(
                    **self._callback_arguments,
                    reconstruction_attributes=lambda: fitted(bases),
                )
            )

        return report

    def end_start(self, start: int) -> None:
        """Report that a start is over."""
        if self._listening:
            self._tasks[start].call_on_fit_task_end(**self._callback_arguments)

    def end(self) -> None:
        """Report that the fit is over, after the estimator has its fitted attributes."""
        self._root.call_on_fit_task_end(**self._callback_arguments, reconstruction_attributes={})


@contextmanager
def progress_bar(
    shown: bool, total: int, title: str, *, kept: bool = False
) -> Iterator[Callable[..., None]]:
    """Yield a function that advances a progress bar, by one if not told, and can change its title.

    The function does nothing if `shown` is False. The bar is written to the standard error and
    disappears at the end; with `kept` it is written to the standard output and stays.
    """
    if not shown:
        yield lambda title=None, advance=1.0: None
        return
    import_optional("rich.progress", "a progress bar needs rich: pip install rich")
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=not kept), transient=not kept) as bar:
        task = bar.add_task(title, total=total)
        yield lambda title=None, advance=1.0: bar.update(task, advance=advance, description=title)


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
