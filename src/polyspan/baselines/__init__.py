"""The methods that the paper and the field compare with, as scikit-learn estimators."""

from polyspan.baselines.block_sparse import BlockSparseDictionary
from polyspan.baselines.elastic_net import ElasticNetSubspaceClustering
from polyspan.baselines.grouse import GROUSE, KGROUSE
from polyspan.baselines.kernel_kmeans import KernelKMeans
from polyspan.baselines.kernel_pca import KernelPCADenoiser, RobustKernelPCA
from polyspan.baselines.least_squares import LeastSquaresSubspaceClustering
from polyspan.baselines.shape_interaction import RobustShapeInteraction
from polyspan.baselines.sparse import RobustSparseSubspaceClustering, SparseSubspaceClustering
from polyspan.baselines.subspaces import EnsembleKSubspaces, KSubspaces
from polyspan.baselines.thresholding import ThresholdingSubspaceClustering

__all__ = [
    "GROUSE",
    "KGROUSE",
    "BlockSparseDictionary",
    "ElasticNetSubspaceClustering",
    "EnsembleKSubspaces",
    "KSubspaces",
    "KernelKMeans",
    "KernelPCADenoiser",
    "LeastSquaresSubspaceClustering",
    "RobustKernelPCA",
    "RobustShapeInteraction",
    "RobustSparseSubspaceClustering",
    "SparseSubspaceClustering",
    "ThresholdingSubspaceClustering",
]


def __dir__() -> list[str]:
    return __all__
