"""The command `polyspan`. Needs the extra `cli`: `pip install "polyspan[cli]"`."""

from __future__ import annotations

import sys

from polyspan.base.interrupts import ended_by_interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line; if typer is missing, say what to install."""
    try:
        with ended_by_interrupt():
            from polyspan.cli.app import register_commands, run

            register_commands()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'polyspan: {error.name} is not installed: pip install "polyspan[cli]"')
    run()
