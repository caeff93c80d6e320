"""The command `polyspan`. Needs typer and rich: `pip install typer rich`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; say what to install where typer or rich is missing."""
    try:
        from polyspan.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        # What the other commands need comes along: the extra `cli` of pyproject.toml.
        needed = "typer rich skops pandas pyarrow pillow tifffile imagecodecs"
        sys.exit(f"polyspan: {error.name} is not installed: pip install {needed}")
    run()
