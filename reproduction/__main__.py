"""Run the command: `python -m reproduction`."""

from polyspan.cli.console import spell_out_signs
from reproduction.command import app

if __name__ == "__main__":
    spell_out_signs()
    app(prog_name="python -m reproduction")
