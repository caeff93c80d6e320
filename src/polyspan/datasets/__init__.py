"""Data to learn from."""

from polyspan.datasets.masks import mask_entries
from polyspan.datasets.patches import assemble_patches, extract_patches
from polyspan.datasets.synthetic import UnionOfSubspaces, make_union_of_subspaces

__all__ = [
    "UnionOfSubspaces",
    "assemble_patches",
    "extract_patches",
    "make_union_of_subspaces",
    "mask_entries",
]
