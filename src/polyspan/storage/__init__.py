"""Model files, what they may hold, and export to ONNX."""
