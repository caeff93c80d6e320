"""Masked arrays, dates and unusual types of numbers, for everything that reads X."""

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import get_tags

import polyspan
from polyspan import (
    MiCUSaL,
    RobustMiCUSaL,
    SubspaceClustering,
    SubspaceImputer,
    SubspaceOutlierDetector,
    baselines,
)
from polyspan.base.inputs import plain_numbers
from polyspan.batch import fit_micusal
from polyspan.datasets import extract_patches, make_union_of_subspaces, mask_entries
from polyspan.geometry import estimate_dimension
from polyspan.metrics import relative_reconstruction_error
from polyspan.model_selection import choose_by_noise, choose_size, masked_entry_score
from polyspan.plotting import plot_partition

X = make_union_of_subspaces(
    (15, 15), n_features=6, subspace_dim=1, noise=0.01, random_state=0
).X.round(2)
MASK = np.zeros(X.shape, dtype=bool)
MASK[3, 2] = MASK[7, 1] = MASK[8, 1] = True
MASKED = np.ma.masked_array(np.where(MASK, 99.0, X), MASK)
HOLES = np.where(MASK, np.nan, X)
DAYS = np.datetime64("2024-01-01") + np.arange(X.size).reshape(X.shape)
SPANS = DAYS - DAYS[0, 0]
SMALL = {
    "n_subspaces": 2, "max_subspaces": 2, "n_clusters": 2, "subspace_dim": 1, "max_subspace_dim": 1,
    "max_dim": 1, "n_components": 1, "n_init": 1, "max_iter": 3, "n_sweeps": 2, "n_fits": 1,
    "anneal_steps": 1, "method": "subspaces", "random_state": 0,
}  # fmt: skip
ESTIMATORS = [
    value
    for module in (polyspan, baselines)
    for name in module.__all__
    if hasattr(value := getattr(module, name), "fit")
]
pytestmark = pytest.mark.filterwarnings("ignore")


def made(kind):
    """Return a small estimator of a class."""
    known = kind().get_params()
    return kind().set_params(**{name: SMALL[name] for name in SMALL if name in known})


def learned(model):
    """Return the fitted arrays of an estimator."""
    return {k: v for k, v in vars(model).items() if k[-1] == "_" and isinstance(v, np.ndarray)}


def check_equal(found, wanted):
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_what_is_masked_is_missing(kind):
    """Estimators that take NaN learn the same as from NaN; others refuse it as they refuse NaN."""
    rows = [np.ma.masked_array(row, mask) for row, mask in zip(MASKED.data, MASK, strict=True)]
    for masked in (MASKED, rows):
        if get_tags(made(kind)).input_tags.allow_nan:
            check_equal(learned(made(kind).fit(masked)), learned(made(kind).fit(HOLES)))
        else:
            with pytest.raises(ValueError, match="contains NaN"):
                made(kind).fit(masked)
    plain = np.ma.masked_array(X, np.zeros(X.shape, dtype=bool))
    check_equal(learned(made(kind).fit(plain)), learned(made(kind).fit(X)))


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("dates", "message"),
    [
        (DAYS, r"X holds dates.* \(X - X.min\(\)\) / np.timedelta64\(1, 'D'\)"),
        (SPANS, r"X holds durations.* by X / np.timedelta64\(1, 'D'\)"),
    ],
    ids=["dates", "durations"],
)
def test_dates_are_no_numbers(kind, dates, message):
    model = made(kind)
    objects = np.empty(X.shape, dtype=object)
    objects[:] = X
    objects[4, 3] = dates[4, 3]
    python = dates.astype(object)
    for given in (dates, np.ma.masked_array(dates, MASK), objects, python, list(map(list, dates))):
        with pytest.raises(ValueError, match=message):
            model.fit(given)
    if kind is SubspaceImputer:  # it knows what they are in frames
        return
    for frame in (
        pd.DataFrame(dates),
        pl.DataFrame(dates.astype("M8[ms]" if "dates" in message else "m8[ms]")),
    ):
        with pytest.raises(ValueError, match="6 columns of X cannot be read as numbers"):
            model.fit(frame)


@pytest.mark.parametrize(
    "how", ["predict", "transform", "reconstruct", "impute", "score", "partial_fit"]
)
def test_methods_of_a_fitted_model(how):
    model = RobustMiCUSaL(2, 1, random_state=0)
    model = model.partial_fit(X) if how == "partial_fit" else model.fit(X)
    if how == "partial_fit":
        other = RobustMiCUSaL(2, 1, random_state=0).partial_fit(X)
        assert_array_equal(model.partial_fit(MASKED).bases_, other.partial_fit(HOLES).bases_)
    else:
        assert_array_equal(getattr(model, how)(MASKED), getattr(model, how)(HOLES))
    with pytest.raises(ValueError, match="X holds dates"):
        getattr(model, how)(DAYS)


def test_a_mask_over_integers_and_in_the_imputer():
    whole = np.ma.masked_array(np.int16(100 * X), MASK)
    holes = np.where(MASK, np.nan, np.int16(100 * X))
    detector = SubspaceOutlierDetector().fit(whole)
    assert_array_equal(
        detector.score_samples(whole), SubspaceOutlierDetector().fit(holes).score_samples(holes)
    )
    imputer = made(SubspaceImputer)
    assert_array_equal(imputer.fit_transform(whole), made(SubspaceImputer).fit_transform(holes))
    assert_array_equal(imputer.impute_std(whole), imputer.impute_std(holes))
    with pytest.raises(ValueError, match="or give a frame, whose columns may be dates"):
        imputer.fit(DAYS)
    assert plain_numbers(MASKED.astype(np.float32)).dtype == np.float32


def test_dates_in_frames_are_filled():
    frame = pd.DataFrame({"day": DAYS[:, 0], "span": SPANS[:, 0], "x": X[:, 0]}).astype(
        {"x": float}
    )
    frame.loc[4, ["day", "span"]] = pd.NaT
    filled = made(SubspaceImputer).fit_transform(frame)
    assert filled.dtypes.tolist() == frame.dtypes.tolist()
    assert not filled.isna().any(axis=None)


def test_functions_that_read_samples():
    model = MiCUSaL(2, 1, random_state=0).fit(X)
    clusters, means = made(SubspaceClustering).fit(X), baselines.KernelKMeans(2).fit(X)
    assert masked_entry_score(model, MASKED, random_state=0) == masked_entry_score(
        model, HOLES, random_state=0
    )
    assert np.isnan(mask_entries(MASKED, 0.1, random_state=0))[MASK].all()
    assert np.isnan(extract_patches(MASKED, 2)).sum() == MASK.sum()
    assert np.isnan(relative_reconstruction_error(X, MASKED))
    assert np.isnan(relative_reconstruction_error(MASKED, X))
    for call in (
        estimate_dimension,
        lambda X: choose_by_noise(model, X, 0.1, {"subspace_dim": [1, 2]}),
        lambda X: plot_partition(clusters, X),
        lambda X: fit_micusal(np.ma.stack([X, X]), 2, 1),
        means.predict,
    ):
        with pytest.raises(ValueError, match="NaN"):
            call(MASKED)
        with pytest.raises(ValueError, match="X holds dates"):
            call(DAYS)
    for call in (lambda X: masked_entry_score(model, X), lambda X: choose_size(X, 2, 1)):
        with pytest.raises(ValueError, match="X holds dates"):
            call(DAYS)


def test_masked_blocks_of_dask():
    blocks = da.from_array(MASKED, chunks=(10, 6))
    model = RobustMiCUSaL(2, 1, random_state=0).fit(HOLES)
    for call in (model.fit, model.predict):
        with pytest.raises(ValueError, match=r"dask.array.ma.filled\(X, np.nan\)"):
            call(blocks)
    filled = model.predict(da.ma.filled(blocks, np.nan))
    assert_array_equal(filled.compute(), model.predict(HOLES))


@pytest.mark.parametrize("kind", [MiCUSaL, SubspaceOutlierDetector, SubspaceImputer])
def test_other_types_of_numbers(kind):
    """Short and long floats, integers and booleans are numbers; the others are refused."""
    whole = np.rint(100 * X)
    for dtype in ("float16", "longdouble", "int8", "int64", "uint64", "bool", "object"):
        values = whole.clip(0) if dtype == "uint64" else whole
        check_equal(
            learned(made(kind).fit(values.astype(dtype))),
            learned(made(kind).fit(values.astype(dtype).astype(float))),
        )
    for wrong, message in (
        (X + 1j, "Complex data not supported"),
        (np.float64(3), "Expected 2D array, got scalar"),
        (X[0], "Expected 2D array, got 1D"),
        (X[None], "Found array with dim 3|dim"),
    ):
        with pytest.raises(ValueError, match=message):
            made(kind).fit(wrong)
