"""Trials: run in any number of processes, saved as each one ends."""
