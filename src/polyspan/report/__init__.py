"""The report: one HTML page, the same as Markdown, and all numbers as CSV."""

from polyspan.report.about import About
from polyspan.report.write import report_files, write_report

__all__ = ["About", "report_files", "write_report"]
