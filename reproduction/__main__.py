"""Run the command: `python -m reproduction`."""

from reproduction.command import app

if __name__ == "__main__":
    app(prog_name="python -m reproduction")
