"""The typer application: registration of commands, handling of errors, and exit codes."""

from __future__ import annotations

import functools
import inspect
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from polyspan.base import progress
from polyspan.cli.console import given_words, report, spell_out_signs, standard_output
from polyspan.cli.errors import EXPLAINED, Code, CommandError, say, short_warnings, tell

Function = TypeVar("Function", bound=Callable[..., Any])

EPILOG = "\n".join(
    [
        "[bold]Examples[/bold]",
        "  polyspan cluster table.csv -o labels.csv",
        "  polyspan impute holes.csv -o filled.csv",
        "  polyspan outliers table.csv -o unusual.csv",
        "  polyspan denoise photo.png -o out.png",
        "  polyspan inpaint photo.png --mask mask.png",
        "",
        "[bold]Exit codes[/bold]",
        *(f"  {int(code):>3d}  {meaning}" for code, meaning in EXPLAINED.items()),
    ]
)

app = typer.Typer(
    help="Find clusters and outliers in tables, fill their holes, and clean pictures.\n\n"
    "Rows are samples. `polyspan COMMAND --help` shows the options of a command.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(*, panel: str, epilog: str, words: Mapping[str, str]) -> Callable[[Function], Function]:
    """Register a function as the command of its name.

    Its errors become a message and an exit code.

    Parameters
    ----------
    panel : str
        Title of the panel on the help page.
    epilog : str
        Examples, shown below the options.
    words : mapping of str to str
        The options that set parameters of the library, by the names of these.
    """

    def register(function: Function) -> Function:
        all_words = {"parse_dates": "--parse-dates", **words}
        guarded = guard(prepared(function), all_words)
        app.command(rich_help_panel=panel, epilog=epilog)(guarded)
        return function

    return register


def guard(function: Function, words: Mapping[str, str] | None = None) -> Function:
    """Return the function with its errors turned into a message and an exit code."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> Any:
        with short_warnings(words or {}):
            try:
                return function(*args, **options)
            except (typer.Exit, typer.BadParameter, SystemExit):
                raise
            except BaseException as error:
                code = tell(error, debug=bool(options.get("debug")), words=words)
                raise typer.Exit(int(code)) from None

    return guarded  # type: ignore[return-value]


def prepared(function: Function) -> Function:
    """Return a function with an option for each field of the dataclasses that it takes.

    It shows bars for its long work on a terminal, unless it is to be quiet.
    """
    signature = inspect.signature(function, eval_str=True)
    given = signature.parameters.values()
    groups: dict[str, Any] = {
        one.name: one.annotation for one in given if is_dataclass(one.annotation)
    }
    parameters = [one for one in given if one.name not in groups]
    kind = inspect.Parameter.KEYWORD_ONLY
    for group in groups.values():
        hints = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(one.name, kind, default=one.default, annotation=hints[one.name])
            for one in fields(group)
        ]

    @functools.wraps(function)
    def gathered(**options: Any) -> Any:
        before = progress.ask(sys.stderr.isatty() and not options["quiet"])
        for name, group in groups.items():
            options[name] = group(**{one.name: options.pop(one.name) for one in fields(group)})
        try:
            return function(**options)
        finally:
            progress.ask(before)

    gathered.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return gathered  # type: ignore[return-value]


@app.callback(invoke_without_command=True)
def options(
    show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Show the version, before or in place of a command."""
    if show_version:
        report([f"polyspan {version('polyspan')}"])
        raise typer.Exit


def run() -> None:
    """Run the command that the arguments ask for, and exit with its code.

    After `register_commands`.
    """
    spell_out_signs()
    # As an exception it passes through the code that removes temporary files. The second is what
    # Ctrl-Break sends on Windows.
    for name in ("SIGTERM", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: sys.exit(Code.TERMINATED))
    try:
        with standard_output():  # errors of other files have become exits in `guard`
            app(args=given_words(), prog_name="polyspan")
    except KeyboardInterrupt:
        say("error", "interrupted")
        sys.exit(Code.INTERRUPTED)
    except CommandError as error:  # of --version and help
        sys.exit(tell(error, debug=False))


def register_commands() -> None:
    """Import the modules with commands, in the order of the help page."""
    for name in ("cluster", "impute", "outliers", "denoise", "inpaint"):
        import_module(f"polyspan.cli.{name}")
