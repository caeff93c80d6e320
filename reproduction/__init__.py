"""Every table and figure of the paper, run again: `python -m reproduction`, or `make reproduce`."""
