"""Which samples do not belong, and which of their columns say so."""

from polyspan.outliers.detector import SubspaceOutlierDetector

__all__ = ["SubspaceOutlierDetector"]
