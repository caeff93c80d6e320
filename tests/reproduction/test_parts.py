"""Helpers of the experiments: data, systems, the oracle, the literal algorithm."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.baselines import KernelPCADenoiser
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases
from polyspan.kernels import Kernel
from polyspan.linear._solve.problem import prepare
from reproduction.experiments import literal
from reproduction.experiments.digits import select
from reproduction.experiments.fig6 import halves
from reproduction.experiments.oracle import oracle_dimensions
from reproduction.experiments.scenes import noisy_scene
from reproduction.experiments.source import REAL, STAND_IN, Source
from reproduction.experiments.synthetic import draw
from reproduction.experiments.systems import PCA, build, fit_starts
from reproduction.experiments.tools import denoising_errors, relative_error, with_noise
from reproduction.registry import SCALES, all_experiments

EXPERIMENTS = all_experiments()
STAND_INS = Source(stand_in=True)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.id)
def test_larger_scales_repeat_the_trials_of_smaller_ones(experiment):
    sets = {scale: [str(sorted(p.items())) for p in experiment.trials(scale)] for scale in SCALES}
    for found in sets.values():
        assert found
        assert len(found) == len(set(found))
    assert set(sets["quick"]) <= set(sets["standard"]) <= set(sets["paper"])


def test_all_tables_and_figures_are_there():
    wanted = [
        "fig1",
        "table1",
        "table2",
        "table3",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "fig7",
        "table4",
    ]
    assert [experiment.id for experiment in EXPERIMENTS] == wanted


def test_every_draw_has_data_and_noise_of_its_own():
    first, again = draw({"draw": 3, "size": "small"}), draw({"draw": 3, "size": "small"})
    assert np.array_equal(first[1], again[1])
    for k in (4, 13):
        other = draw({"draw": k, "size": "small"})
        assert not np.array_equal(first[0].X_clean, other[0].X_clean)
        noise = other[1] - other[0].X_clean
        assert not np.allclose(noise, first[1] - first[0].X_clean)


def test_noise_has_its_power_and_its_seed():
    clean = np.zeros((400, 50))
    noisy = with_noise(clean, 0.3, "a", 1)
    assert_allclose(np.mean(np.sum(noisy**2, axis=1)), 0.3, rtol=0.05)
    assert np.array_equal(noisy, with_noise(clean, 0.3, "a", 1))
    assert not np.array_equal(noisy, with_noise(clean, 0.3, "a", 2))


def test_stand_ins():
    digits = STAND_INS.digits(STAND_IN)
    assert sorted(digits) == list(range(10))
    assert all(len(X) >= 170 and X.shape[1] == 64 for X in digits.values())
    assert_allclose(np.linalg.norm(digits[3], axis=1), 1.0)
    assert STAND_INS.faces(STAND_IN).shape == (10, 64, 64)
    image, train, test = STAND_INS.scene(STAND_IN, "scene")
    assert image.shape == (427, 640)
    assert train.shape == test.shape == (224, 600)
    for needs in ("usps", "faces", "scene", "street"):
        assert STAND_INS.kind(needs) == STAND_IN
        assert "stand" in STAND_INS.describe(needs, STAND_IN)


def test_a_folder_without_the_files_gives_stand_ins(tmp_path):
    assert Source(str(tmp_path)).kind("usps") == STAND_IN


def test_a_damaged_file_is_an_error_not_a_stand_in(tmp_path):
    (tmp_path / "usps_all.mat").write_bytes(b"no digits")
    with pytest.raises(ValueError, match="SHA-256"):
        Source(str(tmp_path)).kind("usps")


def test_real_data(needs_data):
    needs_data("usps", "yale", "city_hall")
    source = Source()
    assert source.kind("usps") == source.kind("faces") == source.kind("scene") == REAL
    assert source.digits(REAL)[1].shape == (200, 256)
    assert source.faces(REAL).shape == (38, 64, 2016)
    assert source.scene(REAL, "scene")[1].shape == (722, 600)
    train, _, left = select({"draw": 0, "size": "full"}, source, (0, 4))
    assert (train.shape, left.shape) == ((240, 256), (160, 256))
    half, other = halves({"draw": 0, "size": "full", "group": "5, 6, 8"}, source)
    assert half.shape == other.shape == (96, 2016)


@pytest.mark.parametrize("data", [REAL, STAND_IN])
def test_selections_do_not_overlap(data, needs_data):
    if data == REAL:
        needs_data("usps")
    train, labels, left = select({"draw": 1, "size": "full", "data": data}, STAND_INS, (0, 4))
    assert len(train) == len(labels)
    assert not {x.tobytes() for x in train} & {x.tobytes() for x in left}


def test_small_scenes_have_norm_one_before_the_noise():
    Y, test = noisy_scene({"draw": 0, "size": "small", "noise": 0.0}, _stand_in_scene(), "scene")
    assert Y.shape == test.shape == (120, 100)
    assert_allclose(np.linalg.norm(Y, axis=1), 1.0)


def _stand_in_scene():
    class Other(Source):
        def scene(self, kind, needs):
            return super().scene(STAND_IN, needs)

    return Other()


def test_pca_finds_the_best_dimension():
    data = make_union_of_subspaces((60,), n_features=20, subspace_dim=4, noise=0.3, random_state=0)
    pca = PCA(data.X)
    errors = [
        relative_error(data.X_clean, pca.projection(s).reconstruct(data.X)) for s in range(1, 20)
    ]
    assert pca.best_dimension(data.X, data.X_clean) == int(np.argmin(errors)) + 1
    noisy = with_noise(data.X_test_clean, 0.5, "t")
    plain, shrunk = pca.projection(20), pca.shrunk(20, 0.3, 0.5)
    assert relative_error(data.X_test_clean, shrunk.reconstruct(noisy)) < relative_error(
        data.X_test_clean, plain.reconstruct(noisy)
    )


def test_starts_come_with_the_lowest_objective_first():
    data = make_union_of_subspaces((40, 40), n_features=20, subspace_dim=3, random_state=0)
    runs = fit_starts(build("K-sub", 2, 3, 0), data.X, 4, 0)
    values = [run.objective_ for run in runs]
    assert values == sorted(values)
    assert len(set(values)) > 1


def test_a_denoiser_may_depend_on_the_level():
    clean = np.eye(4)
    levels = []

    class Same:
        def reconstruct(self, Z):
            return clean

    def build_one(level):
        levels.append(level)
        return Same()

    assert denoising_errors(build_one, clean, (0.1, 0.2), "s") == [0.0, 0.0]
    assert levels == [0.1, 0.2]


def test_oracle_sees_the_clean_samples():
    rng = np.random.RandomState(0)
    train, clean = rng.standard_normal((12, 5)), rng.standard_normal((6, 5))
    noisy = clean + 0.4 * rng.standard_normal(clean.shape)
    (found,) = oracle_dimensions(train, clean, [noisy], gamma=0.3)
    kernel = Kernel("rbf", gamma=0.3)
    G, mean = kernel(train), kernel(train).mean()

    def centred(A, B):  # inner products of φ minus the mean of φ over the training samples
        a, b = kernel(A, train).mean(axis=1), kernel(B, train).mean(axis=1)
        return kernel(A, B) - a[:, None] - b[None, :] + mean

    costs = []
    for s in range(1, 12):
        model = KernelPCADenoiser(s, gamma=0.3).fit(train)
        E = model.coefs_[0]
        inside_z = centred(noisy, train) @ E
        inside_x = centred(clean, train) @ E
        own = np.diag(centred(clean, clean))
        costs.append(np.mean(np.sum(inside_z**2 - 2 * inside_z * inside_x, axis=1) + own))
    assert found == int(np.argmin(costs)) + 1
    assert G.shape == (12, 12)


def test_literal_assignment_is_ours():
    data = make_union_of_subspaces((20, 20), n_features=15, subspace_dim=2, random_state=0)
    X = mask_entries(data.X, 0.3, random_state=0)
    problem, _ = prepare(X, 2.0, center=False, holes=True)
    bases = draw_bases((2, 15, 2), np.random.RandomState(0))
    labels, _ = problem.assign(bases[None], with_products=False)
    found = literal.assign(bases, np.asarray(problem.rows.block.values), problem.rows.block.missing)
    assert np.array_equal(found, labels[:, 0])
