"""All commands, and the process around them."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

from polyspan.cli.app import app
from polyspan.cli.failures import Code, say

#: Modules with commands, in the order of the help page; importing one registers its commands.
MODULES = ("models", "impute", "jobs", "demo")


def run() -> None:
    """Run the command that the arguments ask for, and exit with its code."""
    for name in MODULES:
        import_module(f"polyspan.cli.{name}")
    # As an exception it passes through the code that removes temporary files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Code.TERMINATED))
    try:
        app(prog_name="polyspan")
    except KeyboardInterrupt:
        say("error", "interrupted")
        sys.exit(Code.INTERRUPTED)
