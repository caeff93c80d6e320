"""Numerical parts that all models share."""
