"""Trials: run in any number of processes, kept as they end."""
