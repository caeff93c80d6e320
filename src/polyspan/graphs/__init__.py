"""Graphs of samples: nearest rows, edges and their weights, spectra, and clusters of nodes."""
