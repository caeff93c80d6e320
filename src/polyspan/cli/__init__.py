"""The command `polyspan`. Needs typer and rich: `pip install "polyspan[cli]"`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; say what to install where typer or rich is missing."""
    try:
        from polyspan.cli.run import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f'polyspan: {error.name} is not installed: pip install "polyspan[cli]"')
    run()
