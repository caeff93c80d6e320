"""The paper's experiments: one file for each table and figure, and their common helpers."""
