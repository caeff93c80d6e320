"""Parts of record.py: the data and the cases, what is kept of a result, and how it is stored."""
