"""The report: one HTML page, the same as Markdown, and all numbers as CSV."""

from reproduction.page.about import About
from reproduction.page.write import report_files, write_report

__all__ = ["About", "report_files", "write_report"]
