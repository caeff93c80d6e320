"""Sources of rows, what is known about the rows, missing entries, and working coordinates."""
