"""Data to learn from."""

from polyspan.datasets.masks import mask_entries
from polyspan.datasets.synthetic import UnionOfSubspaces, make_union_of_subspaces

__all__ = ["UnionOfSubspaces", "make_union_of_subspaces", "mask_entries"]
