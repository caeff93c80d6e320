"""The parts of `tools/release_check.py`, which `make release-check` runs."""
