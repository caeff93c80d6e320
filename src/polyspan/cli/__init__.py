"""The command `polyspan`. Needs typer and rich: `pip install typer rich`."""

from __future__ import annotations

import sys

from polyspan._interrupts import ended_by_interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line; say what to install where typer or rich is missing."""
    try:
        with ended_by_interrupt():
            from polyspan.cli.app import register_commands, run

            register_commands()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        # What the other commands need comes along: the extra `cli` of pyproject.toml.
        needed = "typer rich skops pandas pyarrow pillow tifffile imagecodecs"
        sys.exit(f"polyspan: {error.name} is not installed: pip install {needed}")
    run()
