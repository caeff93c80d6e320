"""`python -m polyspan.cli` is `polyspan`."""

from polyspan.cli import main

if __name__ == "__main__":
    main()
