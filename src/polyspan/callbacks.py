"""Watch long work: a bar for every job, and a callback that prints how a fit goes on."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TextIO

import sklearn
from joblib.parallel import get_active_backend

from polyspan.base.private_sklearn import Interval, ProgressBar, check_parameters
from polyspan.base.progress import ask

__all__ = ["PrintProgress", "show_progress"]


def __dir__() -> list[str]:
    return __all__


#: Fitted attributes that are printed at the end of a fit, where an estimator has them.
AT_THE_END = ("objective_", "log_likelihood_", "certainty_")

NOT_SENT = (
    "PrintProgress(file=…) cannot be sent to other processes, which would write to a copy of the "
    "file: leave file=None, or set n_jobs=1"
)


class show_progress:  # noqa: N801 - used as a function or in a `with` statement, as joblib's
    """Show a progress bar for all long work: in the block of a `with` statement, or from now on.

    Every job has a line: the `fit` of every estimator, `denoise_image`, `inpaint_image`,
    `compare`, `choose_size`, `choose_by_noise`, `batch.fit_micusal` and `sample_imputations`. Jobs
    within a job, such as the fits of `compare`, have lines of their own, and work of less than a
    third of a second has none. The lines disappear when the work ends. Results are the same with
    and without.

    Parameters
    ----------
    shown : bool, default=True
        False: show no bars from now on, or in the block.

    See Also
    --------
    PrintProgress : lines of text, for log files.

    Notes
    -----
    Needs rich (`pip install rich`). A terminal shows the lines on its standard error, a notebook
    below its cell. Where the standard error is a file, nothing is written. The setting holds for
    all threads of the process, and not for other processes.

    Examples
    --------
    >>> from polyspan import MiCUSaL
    >>> from polyspan.callbacks import show_progress
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> X = make_union_of_subspaces((40, 40), n_features=20, subspace_dim=2, random_state=0).X
    >>> with show_progress():
    ...     model = MiCUSaL(2, 2, random_state=0).fit(X)
    """

    def __init__(self, shown: bool = True) -> None:
        check_parameters("show_progress", shown=(shown, ["boolean"]))
        self._before = ask(shown)

    def __enter__(self) -> None:
        """Do nothing: bars are shown since the call."""

    def __exit__(self, *error: Any) -> None:
        """Show bars again, or no longer, as before the call."""
        ask(self._before)


class PrintProgress:
    """Print a line about a fit every few iterations: what is minimised, and how it changes.

    For every estimator of polyspan that iterates: ``model.set_callbacks(PrintProgress())``, and
    for searches over them such as scikit-learn's `GridSearchCV`. A line has the number of the
    start where there are several, the iteration, counted from 0, the objective (of a mixture the
    penalised log-likelihood; of a graph of `SubspaceClustering` the gap of its spectrum), and its
    change since the line before. Before these come the steps of annealing, counted from 0 too,
    with the free energy, which is another function than the objective.

    Parameters
    ----------
    every : int, default=10
        Print every so many iterations.
    file : file object, default=None
        Where to print; None: the standard output. A search with `n_jobs` prints in other
        processes, and these have the standard output only.

    Notes
    -----
    It follows scikit-learn's protocol of callbacks and needs scikit-learn 1.9. `show_progress`
    shows bars instead.

    Examples
    --------
    >>> from polyspan import MiCUSaL
    >>> from polyspan.callbacks import PrintProgress
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> X = make_union_of_subspaces((40, 40), n_features=20, subspace_dim=2, random_state=0).X
    >>> model = MiCUSaL(2, 2, init="anneal", random_state=0)
    >>> _ = model.set_callbacks(PrintProgress(every=40))
    >>> _ = model.fit(X)  # doctest: +ELLIPSIS
    MiCUSaL, annealing 0: free energy ...
    MiCUSaL, annealing 40: free energy ..., change ...
    MiCUSaL, iteration 0: objective ...
    MiCUSaL: converged after ..., objective ...
    """

    #: scikit-learn passes the callback on to all estimators within a search or a pipeline.
    max_propagation_depth = None

    def __init__(self, every: int = 10, file: TextIO | None = None) -> None:
        if ProgressBar is None:
            raise ImportError(
                "PrintProgress needs the callbacks of scikit-learn 1.9, and this is scikit-learn "
                f"{sklearn.__version__}: pip install -U scikit-learn"
            )
        check_parameters(
            "PrintProgress", every=(every, [Interval(Integral, 1, None, closed="left")])
        )
        self.every = every
        self.file = file
        self._before: dict[Any, float] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Refuse a file where a search is about to run in other processes: a fit begins.

        Parameters
        ----------
        estimator : estimator
            The estimator whose fit begins.
        context : CallbackContext
            Task of scikit-learn that stands for the fit.
        """
        # Models of polyspan run their starts in threads.
        in_jobs = getattr(estimator, "n_jobs", None) not in (None, 1)
        if self.file is not None and in_jobs and hasattr(estimator, "estimator"):
            backend, _ = get_active_backend()
            if not getattr(backend, "supports_sharedmem", False):
                raise ValueError(NOT_SENT)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Forget the values of a fit.

        Parameters
        ----------
        estimator : estimator
            The estimator whose fit has ended.
        context : CallbackContext
            Task of scikit-learn that stands for the fit.
        """
        ended = [key for key in self._before if key[0] == context.root_uuid]
        for key in ended:
            del self._before[key]

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: lines are printed at the end of a task.

        Parameters
        ----------
        estimator : estimator
            The estimator that runs the task.
        context : CallbackContext
            The task that begins, such as an iteration.
        """

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Print a line at the end of some iterations, and of a fit.

        Parameters
        ----------
        estimator : estimator
            The estimator that runs the task.
        context : CallbackContext
            The task that has ended, such as an iteration, with the values that it reported.
        """
        if context.task_name == "iteration":
            number = getattr(context, "number", context.task_id)
            if number % self.every == 0:
                self._print_iteration(context, number, getattr(context, "reported", {}))
        elif context.task_name == "fit" and context.estimator_name == type(estimator).__name__:
            self._print_end(estimator, context)

    def _print_iteration(self, context: Any, number: int, reported: dict[str, float]) -> None:
        start = context.parent
        where = context.estimator_name
        if start.parent is not None and start.parent.max_subtasks != 1:
            where += f", start {start.task_id}"
        parts = []
        for name, value in reported.items():
            # A start belongs to a fit, and in a search fits have numbers too.
            key = (context.root_uuid, id(start), name)
            text = f"{_words(name)} {value:.6g}"
            if key in self._before:
                text += f", change {value - self._before[key]:+.3g}"
            self._before[key] = float(value)
            parts.append(text)
        if not parts and start.max_subtasks:
            parts = [f"at most {start.max_subtasks} in all"]
        phase = "annealing" if "free_energy" in reported else "iteration"
        self._print(f"{where}, {phase} {number}: {', '.join(parts)}")

    def _print_end(self, estimator: Any, context: Any) -> None:
        parts = []
        if hasattr(estimator, "converged_"):
            count = f"{estimator.n_iter_} iteration" + ("s" if estimator.n_iter_ != 1 else "")
            how = "converged after" if estimator.converged_ else "not converged in"
            parts.append(f"{how} {count}")
        parts += [
            f"{_words(name.rstrip('_'))} {getattr(estimator, name):.6g}"
            for name in AT_THE_END
            if hasattr(estimator, name)
        ]
        self._print(f"{context.estimator_name}: {', '.join(parts) or 'fitted'}")

    def _print(self, line: str) -> None:
        # One call of write: lines of starts in several threads do not mix.
        print(line, file=self.file, flush=True)

    def __getstate__(self) -> dict[str, Any]:
        if self.file is not None:
            raise TypeError(NOT_SENT)
        return {**vars(self), "_before": {}}


def _words(name: str) -> str:
    return name.replace("log_", "log-").replace("_", " ")
