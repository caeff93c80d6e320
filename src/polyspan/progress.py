"""Progress of a fit through scikit-learn's callbacks, and of other loops as a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from polyspan.arrays import Array
from polyspan.checks import needed

#: What a solver calls after every iteration: (start, iteration, objective, what it has).
Monitor = Callable[[int, int, float, Any], bool]


class FitProgress:
    """One task per start, one subtask per iteration; nothing is done where no callback listens.

    Parameters
    ----------
    estimator : estimator with `CallbackSupportMixin`
    X, y : array
        The training data, handed to callbacks that ask for them; `y` is used for nothing else.
    n_starts, max_steps : int
        Starts, and the most iterations that one of them can take.
    """

    def __init__(self, estimator: Any, X: Array, y: Any, n_starts: int, max_steps: int) -> None:
        self._told = {"estimator": estimator, "X": X, "y": y}
        self._root = estimator._init_callback_context(
            max_subtasks=n_starts, sequential_subtasks=False
        )
        self._root.call_on_fit_task_begin(**self._told)
        self._listening = bool(getattr(estimator, "_skl_callbacks", []))
        self._tasks = []
        if self._listening:
            for start in range(n_starts):
                task = self._root.subcontext("start", task_id=start, max_subtasks=max_steps)
                task.call_on_fit_task_begin(**self._told)
                self._tasks.append(task)

    def monitor(self, first: int, fitted: Callable[[Array], dict[str, Any]]) -> Monitor | None:
        """Return what a solver calls after each iteration of a group that begins at `first`.

        `fitted` makes fitted attributes of the bases that the solver has, for callbacks that
        want an estimator as if the fit had ended there.
        """
        if not self._listening:
            return None

        def report(start: int, iteration: int, objective: float, bases: Array) -> bool:
            step = self._tasks[first + start].subcontext("iteration")
            step.call_on_fit_task_begin(**self._told)
            return bool(
                step.call_on_fit_task_end(
                    **self._told, reconstruction_attributes=lambda: fitted(bases)
                )
            )

        return report

    def end_start(self, start: int) -> None:
        """Say that a start is over."""
        if self._listening:
            self._tasks[start].call_on_fit_task_end(**self._told)

    def end(self) -> None:
        """Say that the fit is over; the estimator is fitted by now."""
        self._root.call_on_fit_task_end(**self._told, reconstruction_attributes={})


@contextmanager
def progress_bar(
    shown: bool, total: int, title: str, *, kept: bool = False
) -> Iterator[Callable[..., None]]:
    """Give a function that moves a bar on by one, and can change its title.

    The function does nothing where the bar is not shown. The bar is on the standard error and
    vanishes at the end; with `kept` it is on the standard output and stays.
    """
    if not shown:
        yield lambda title=None: None
        return
    needed("rich.progress", "a progress bar needs rich: pip install rich")
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=not kept), transient=not kept) as bar:
        task = bar.add_task(title, total=total)
        yield lambda title=None: bar.update(task, advance=1, description=title)
