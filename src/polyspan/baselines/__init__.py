"""The methods that the paper compares with, as scikit-learn estimators."""

from polyspan.baselines.block_sparse import BlockSparseDictionary
from polyspan.baselines.elastic_net import ElasticNetSubspaceClustering
from polyspan.baselines.grouse import GROUSE, KGROUSE
from polyspan.baselines.kernel_kmeans import KernelKMeans
from polyspan.baselines.kernel_pca import KernelPCADenoiser, RobustKernelPCA
from polyspan.baselines.sparse import RobustSparseSubspaceClustering, SparseSubspaceClustering
from polyspan.baselines.subspaces import KSubspaces
from polyspan.baselines.thresholding import ThresholdingSubspaceClustering

__all__ = [
    "GROUSE",
    "KGROUSE",
    "BlockSparseDictionary",
    "ElasticNetSubspaceClustering",
    "KSubspaces",
    "KernelKMeans",
    "KernelPCADenoiser",
    "RobustKernelPCA",
    "RobustSparseSubspaceClustering",
    "SparseSubspaceClustering",
    "ThresholdingSubspaceClustering",
]
