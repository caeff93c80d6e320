"""The command `polyspan`. Needs typer and rich: `pip install typer rich`."""

from __future__ import annotations

import sys

from polyspan.base.interrupts import ended_by_interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line; if typer or rich is missing, say what to install."""
    try:
        with ended_by_interrupt():
            from polyspan.cli.app import register_commands, run

            register_commands()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        # All packages of the extra `cli` of pyproject.toml, which the commands need.
        needed = "typer rich skops pandas pyarrow pillow tifffile imagecodecs"
        sys.exit(f"polyspan: {error.name} is not installed: pip install {needed}")
    run()
