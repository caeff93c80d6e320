"""Block-sparse dictionaries: merging, block OMP against brute force, block updates."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.baselines import BlockSparseDictionary
from polyspan.baselines.block_sparse import (
    block_omp,
    merge_blocks,
    update_blocks,
)
from polyspan.geometry import draw_bases, is_orthonormal
from polyspan.metrics import clustering_error


def blocks_of(sets):
    return sorted(sorted(block.tolist()) for block in sets)


def test_atoms_that_are_used_together_are_merged():
    codes = np.zeros((30, 6))
    codes[:15, [0, 3, 4]] = 1.0
    codes[15:, [1, 2, 5]] = 1.0
    assert blocks_of(merge_blocks(codes, 3)) == [[0, 3, 4], [1, 2, 5]]
    assert blocks_of(merge_blocks(codes, 1)) == [[k] for k in range(6)]
    assert max(len(block) for block in merge_blocks(codes, 2)) == 2
    # The pair that shares most samples comes first.
    codes[:5, 1] = 1.0
    assert blocks_of(merge_blocks(codes, 3)) == [[0, 3, 4], [1, 2, 5]]
    assert blocks_of(merge_blocks(np.zeros((4, 3)), 3)) == [[0], [1], [2]]


@pytest.mark.parametrize("n_blocks", [1, 2])
def test_block_omp_is_greedy_and_least_squares(n_blocks):
    rng = np.random.RandomState(0)
    blocks = [np.array([0, 1]), np.array([2, 3]), np.array([4])]
    atoms = np.concatenate([draw_bases((8, len(b)), rng) for b in blocks], axis=1)
    X = rng.standard_normal((5, 8))
    codes = block_omp(X, atoms, blocks, n_blocks)
    for x, code in zip(X, codes, strict=True):
        support, residual = [], x
        for _ in range(n_blocks):
            left = [k for k in range(3) if k not in support]
            support.append(max(left, key=lambda k: np.sum((residual @ atoms[:, blocks[k]]) ** 2)))
            columns = np.concatenate([blocks[k] for k in support])
            solution = np.linalg.lstsq(atoms[:, columns], x, rcond=None)[0]
            residual = x - atoms[:, columns] @ solution
        expected = np.zeros(5)
        expected[columns] = solution
        assert_allclose(code, expected, atol=1e-10)


def test_block_omp_finds_the_best_support_on_tiny_orthogonal_cases():
    rng = np.random.RandomState(1)
    atoms = draw_bases((6, 6), rng)
    blocks = [np.array([0, 1]), np.array([2, 3]), np.array([4, 5])]
    X = rng.standard_normal((20, 6))
    codes = block_omp(X, atoms, blocks, 2)
    errors = np.sum((X - codes @ atoms.T) ** 2, axis=1)
    supports = [np.concatenate(pair) for pair in combinations(blocks, 2)]
    every = [np.sum((X - (X @ atoms[:, c]) @ atoms[:, c].T) ** 2, axis=1) for c in supports]
    assert_allclose(errors, np.min(every, axis=0), atol=1e-10)


def test_updates_never_raise_the_error():
    rng = np.random.RandomState(2)
    X = rng.standard_normal((60, 8))
    blocks = [np.array([0, 1]), np.array([2, 3])]
    atoms = np.concatenate([draw_bases((8, 2), rng) for _ in blocks], axis=1)
    codes = block_omp(X, atoms, blocks, 1)
    before = np.sum((X - codes @ atoms.T) ** 2)
    for _ in range(5):
        atoms, codes = update_blocks(X, atoms, blocks, codes)
        after = np.sum((X - codes @ atoms.T) ** 2)
        assert after <= before * (1 + 1e-12)
        codes = block_omp(X, atoms, blocks, 1)
        before = np.sum((X - codes @ atoms.T) ** 2)
        assert before <= after * (1 + 1e-12)
    for block in blocks:
        assert is_orthonormal(atoms[:, block], 1e-10)


def test_independent_subspaces():
    rng = np.random.RandomState(0)
    bases = draw_bases((2, 12, 2), rng)
    X = np.concatenate([rng.standard_normal((40, 2)) @ basis.T for basis in bases])
    model = BlockSparseDictionary(2, 2, random_state=0).fit(X)
    assert clustering_error(np.repeat([0, 1], 40), model.labels_) == 0
    assert model.error_ < 1e-6 * np.sum(X**2)
    assert model.block_sizes_ == [2, 2]
    assert is_orthonormal(model.bases_, 1e-8)


def test_bad_sizes():
    X = np.random.RandomState(0).standard_normal((10, 5))
    with pytest.raises(ValueError, match="subspace_dim=5"):
        BlockSparseDictionary(2, 5).fit(X)
    with pytest.raises(ValueError, match="every sample could have an atom"):
        BlockSparseDictionary(4, 3).fit(X)
