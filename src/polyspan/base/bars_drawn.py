"""Draw progress bars with rich in a terminal or a notebook; imported by the first job with one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

#: Seconds between two drawings in a notebook.
PAUSE = 0.2


class Bars(Progress):
    """Lines of bars on the standard error of a terminal, which disappear at the end.

    Nothing is written where the standard error is no terminal, such as a file.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            transient=True,
            **options,
        )

    def get_renderables(self) -> Iterator[Any]:
        """Yield the lines of the jobs whose delay is over."""
        lines = [task for task in self.tasks if (task.elapsed or 0.0) >= task.fields["delay"]]
        yield self.make_tasks_table(lines)


class NotebookBars(Bars):
    """The same lines as an output of a notebook's cell, which is replaced again and again.

    rich's own display needs ipywidgets, and shows nothing without it.
    """

    def start(self) -> None:
        """Show an empty output, and replace it from another thread."""
        display = import_module("IPython.display").display
        self._output = display(_NOTHING, raw=True, display_id=True)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()

    def _draw(self) -> None:
        while not self._ended.wait(PAUSE):
            self._output.update(self)

    def stop(self) -> None:
        """Leave an empty output."""
        self._ended.set()
        self._thread.join()
        self._output.update(_NOTHING, raw=True)


_NOTHING = {"text/plain": "", "text/html": ""}


def start_display() -> Bars:
    """Return bars that are being drawn, as suits the place where the output goes."""
    console = Console(stderr=True)
    if console.is_jupyter:
        bars: Bars = NotebookBars(console=console, auto_refresh=False)
    else:
        bars = Bars(console=console, disable=not console.is_interactive)
    bars.start()
    return bars
