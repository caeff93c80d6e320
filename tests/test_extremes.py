"""Rows of very large and very small entries, and runs that go astray: a result or a clear error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from polyspan import MCKUSaL, MiCUSaL, RobustMiCUSaL, SubspaceImputer, SubspaceMixture
from polyspan.base.checks import lowest_finite
from polyspan.baselines import GROUSE
from polyspan.geometry import is_orthonormal
from polyspan.images import denoise_image
from polyspan.model_selection import masked_entry_score

RNG = np.random.RandomState(0)
X = RNG.standard_normal((60, 6))
SPREAD = X * 10.0 ** RNG.uniform(-200, 200, size=(60, 1))
pytestmark = [
    pytest.mark.filterwarnings("ignore:no sample is assigned"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("affine", [False, True])
def test_the_scale_of_the_data_is_no_matter(scale, affine):
    model = MiCUSaL(2, 2, affine=affine, lam=float("inf"), random_state=0)
    one = model.fit(X).labels_
    other = model.fit(X * scale)
    assert np.array_equal(one, other.labels_)
    assert is_orthonormal(other.bases_)


def test_grouse_says_where_steps_are_not_finite():
    with pytest.raises(ValueError, match=r"steps are not finite: .*scale X"):
        GROUSE(2, random_state=0).fit(1e300 * X)


LINEAR = {"kernel": "linear"}


@pytest.mark.parametrize("options", [{}, LINEAR, LINEAR | {"low_rank": 10}])
def test_kernel_values_that_are_not_finite(options):
    with pytest.raises(ValueError, match="kernel values are not finite: scale X"):
        MCKUSaL(2, 2, random_state=0, **options).fit(SPREAD)


def test_gaussian_values_of_far_rows_and_near_landmarks_are_zero():
    model = MCKUSaL(2, 2, random_state=0, low_rank=10).fit(SPREAD)
    assert np.isfinite(model.transform(SPREAD)).all()


def test_kernel_values_whose_sums_are_not_finite():
    with pytest.raises(ValueError, match="kernel values are not finite: scale X"):
        MCKUSaL(1, 2, kernel="linear", random_state=0).fit(
            9e153 * X / np.linalg.norm(X, axis=1).max()
        )


def test_prediction_of_rows_of_all_sizes_with_holes():
    holes = X.copy()
    holes[RNG.random_sample(X.shape) < 0.2] = np.nan
    model = RobustMiCUSaL(2, 2, random_state=0).fit(holes)
    rows = SPREAD.copy()
    rows[RNG.random_sample(X.shape) < 0.2] = np.nan
    assert np.isfinite(model.transform(rows)).all()
    assert np.isfinite(model.reconstruct(rows)).all()


@pytest.mark.parametrize("n_subspaces", [1, 2])
def test_a_table_of_one_column(n_subspaces):
    column = X[:, :1].copy()
    column[::5] = np.nan
    model = SubspaceImputer(n_subspaces, 1, random_state=0)
    filled = model.fit_transform(column)
    assert np.isfinite(filled).all()
    assert np.array_equal(filled[~np.isnan(column)], column[~np.isnan(column)])
    assert np.isfinite(model.impute_std(column)).all()


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_pixels_of_any_size(scale):
    image = np.add.outer(np.arange(24.0), np.arange(24.0) // 8) + RNG.standard_normal((24, 24))
    assert np.array_equal(denoise_image(scale * image) / scale, denoise_image(image))


def test_a_score_of_other_columns():
    model = MiCUSaL(2, 2, random_state=0).fit(X)
    for n_features in (5, 7):
        with pytest.raises(ValueError, match=f"X has {n_features} features, but MiCUSaL"):
            masked_entry_score(model, np.zeros((20, n_features)))


def test_a_fit_that_failed_is_no_fit():
    model = MCKUSaL(2, 2, random_state=0)
    with pytest.raises(ValueError, match="not finite"):
        model.fit(SPREAD)
    with pytest.raises(NotFittedError):
        model.reconstruct(X)


def test_no_start_with_a_finite_objective():
    assert lowest_finite([np.nan, 2.0, np.inf, 1.0]) == 1.0
    with pytest.raises(ValueError, match=r"objective of every start is nan: .*scale X"):
        lowest_finite([np.nan, np.inf])


def test_labels_that_go_round_end_the_run():
    """Uniform noise has no clusters: two labellings followed each other a hundred times."""
    noise = np.random.RandomState(0).uniform(size=(40, 10))
    with pytest.warns(ConvergenceWarning, match="labels came back"):
        model = MCKUSaL(lam=4.0, random_state=0).fit(noise)
    assert model.n_iter_ < 100
    assert not model.converged_
    assert_allclose(model.objective_, min(model.objective_history_), rtol=1e-9)


def test_a_feature_that_is_seen_in_no_row_that_is_learned_from():
    holes = np.full((12, 5), np.nan)
    holes[:8, :3] = RNG.standard_normal((8, 3))
    holes[8:, 3:] = RNG.standard_normal((4, 2))
    with pytest.raises(ValueError, match=r"never observed in a row with more than subspace_dim=2"):
        RobustMiCUSaL(1, 2, random_state=0).fit(holes)


@pytest.mark.parametrize("seed", range(6))
def test_a_mixture_of_fewer_rows_than_features_in_float32(seed):
    # Hardly any noise is left: the systems of features that were seen once are singular.
    rng = np.random.RandomState(seed)
    few = rng.standard_normal((6, 60)).astype(np.float32)
    few[rng.random_sample(few.shape) < 0.2] = np.nan
    few = few[:, ~np.isnan(few).all(axis=0)]
    model = SubspaceMixture(
        2, 1, closeness=0.0, noise="subspace", center=False, n_init=2, anneal_steps=3,
        max_iter=10, random_state=0,
    )  # fmt: skip
    assert np.isfinite(model.fit(few).bases_).all()


def test_rows_much_nearer_to_a_huge_mean_than_it_is_to_zero():
    holes = np.tile(2.0**558 * np.round(8 * X[:1]), (8, 1))  # few bits: their mean is exact
    holes[:, 0] = 1e-177 * np.arange(8)
    holes[::2, 1] = np.nan
    model = RobustMiCUSaL(1, 1, center=True, random_state=0).fit(holes)
    assert np.isfinite(model.transform(holes)).all()
    assert_allclose(model.reconstruct(holes)[:, 2:], holes[:, 2:])


@pytest.mark.filterwarnings("ignore")  # nothing varies
@pytest.mark.parametrize("solver", ["exact", "power"])
def test_affine_subspaces_of_a_constant_near_zero(solver):
    model = MiCUSaL(2, 1, affine=True, lam=1000.0, init="random", solver=solver, random_state=0)
    model.fit(np.full((20, 12), 3e-150))
    assert is_orthonormal(model.bases_)
    assert_allclose(model.anchors_, 3e-150)
