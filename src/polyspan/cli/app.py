"""The typer application: registration of commands, handling of errors, and exit codes."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, TypeVar

import typer

from polyspan.cli.console import given_words, spell_out_signs
from polyspan.cli.errors import EXPLAINED, Code, say, short_warnings, tell

Function = TypeVar("Function", bound=Callable[..., Any])

EPILOG = "\n".join(
    [
        "[bold]Examples[/bold]",
        "  polyspan cluster table.csv -o labels.csv",
        "  polyspan fit train.csv -o model.skops -L 5 -s 13",
        "  polyspan predict model.skops new.csv -o labels.csv",
        "  polyspan impute holes.csv -o filled.csv",
        "  polyspan denoise photo.png -o out.png",
        "",
        "[bold]Exit codes[/bold]",
        *(f"  {int(code):>3d}  {meaning}" for code, meaning in EXPLAINED.items()),
    ]
)

app = typer.Typer(
    help="Learn unions of subspaces from tables, and use them: cluster, denoise, fill holes.\n\n"
    "Samples are rows. Blank cells, NA and NaN are missing entries. "
    "`polyspan COMMAND --help` shows the options of a command.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(name: str, *, panel: str, epilog: str) -> Callable[[Function], Function]:
    """Register a function as a command; its errors become a message and an exit code.

    Parameters
    ----------
    name : str
        Name of the command, as typed after `polyspan`.
    panel : str
        Title of the panel on the help page.
    epilog : str
        Examples, shown below the options.
    """

    def register(function: Function) -> Function:
        app.command(name, rich_help_panel=panel, epilog=epilog)(guard(function))
        return function

    return register


def guard(function: Function) -> Function:
    """Return the function with its errors turned into a message and an exit code."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> Any:
        with short_warnings():
            try:
                return function(*args, **options)
            except (typer.Exit, typer.BadParameter, BrokenPipeError, SystemExit):
                raise
            except BaseException as error:
                code = tell(error, debug=bool(options.get("debug")))
                raise typer.Exit(int(code)) from None

    return guarded  # type: ignore[return-value]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyspan {version('polyspan')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Define the options that come before the command."""


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
        app(args=given_words(), prog_name="polyspan")
    except KeyboardInterrupt:
        say("error", "interrupted")
        sys.exit(Code.INTERRUPTED)


def register_commands() -> None:
    """Import the modules with commands, in the order of the help page."""
    for name in ("models", "cluster", "impute", "denoise", "inpaint", "jobs"):
        import_module(f"polyspan.cli.{name}")
