"""Weights of samples in a feature space.

The problem with weights w_i is that without them for the features √w_i φ̃(y_i), where φ̃ is φ minus
its weighted mean. Their kernel matrix is √w_i G̃_ij √w_j: it has the eigenvalues that G̃ has with
repeated samples. Samples of weight 0 are taken out before.
"""

from __future__ import annotations

from sklearn.preprocessing import KernelCenterer

from polyspan._sklearn import plain_settings
from polyspan.arrays import Array, namespace
from polyspan.kernel._solve.subspaces import KernelSubspaces


def centerer_of(G: Array, shares: Array | None) -> KernelCenterer:
    """Return what centres kernel values with the samples of a matrix G.

    `shares` are the weights of the samples, with the sum 1; None: all samples count the same.
    """
    with plain_settings(G):
        centerer = KernelCenterer().fit(G)
    if shares is not None:
        centerer.K_fit_rows_ = shares @ G
        centerer.K_fit_all_ = namespace(G).sum(centerer.K_fit_rows_ * shares)
    return centerer


def centred_by(centerer: KernelCenterer, K: Array, shares: Array | None = None) -> Array:
    """Centre kernel values with the training samples: φ(z) and φ(y_i) minus the mean of φ."""
    if shares is not None:
        return K - (K @ shares)[:, None] - centerer.K_fit_rows_ + centerer.K_fit_all_
    with plain_settings(K):
        return centerer.transform(K)


def scale_matrix(G: Array, roots: Array) -> Array:
    """Return √w_i G_ij √w_j, as symmetric as G."""
    return G * (roots[:, None] * roots)


def scale_subspaces(subspaces: KernelSubspaces, roots: Array) -> KernelSubspaces:
    """Return subspaces spanned by φ̃(y_i) as spanned by √w_i φ̃(y_i)."""
    return _multiplied(subspaces, 1.0 / roots)


def unscale_subspaces(subspaces: KernelSubspaces, roots: Array) -> KernelSubspaces:
    """Return subspaces spanned by √w_i φ̃(y_i) as spanned by φ̃(y_i)."""
    return _multiplied(subspaces, roots)


def _multiplied(subspaces: KernelSubspaces, factors: Array) -> KernelSubspaces:
    take = namespace(factors).take
    pairs = zip(subspaces.members, subspaces.coefs, strict=True)
    return KernelSubspaces(
        subspaces.members, [take(factors, c, axis=0)[:, None] * E for c, E in pairs]
    )
