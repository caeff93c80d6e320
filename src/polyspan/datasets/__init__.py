"""Data sets: loaders of real data and generators of synthetic data."""

from polyspan.datasets.patches import assemble_patches, extract_patches
from polyspan.datasets.scenes import Scene, load_city_scene
from polyspan.datasets.synthetic import UnionOfSubspaces, make_union_of_subspaces, mask_entries
from polyspan.datasets.usps import Digits, load_usps
from polyspan.datasets.yale import Faces, build_extended_yale_b, load_extended_yale_b

__all__ = [
    "Digits",
    "Faces",
    "Scene",
    "UnionOfSubspaces",
    "assemble_patches",
    "build_extended_yale_b",
    "extract_patches",
    "load_city_scene",
    "load_extended_yale_b",
    "load_usps",
    "make_union_of_subspaces",
    "mask_entries",
]


def __dir__() -> list[str]:
    return __all__
