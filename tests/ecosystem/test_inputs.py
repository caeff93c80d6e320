"""Arrays of other packages without the switch, tables with text, parameters of a wrong type."""

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_equal
from sklearn.utils._param_validation import InvalidParameterError

from polyspan import (
    MCKUSaL,
    MiCUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
    baselines,
    compare,
    images,
    metrics,
    model_selection,
)
from polyspan.batch import fit_micusal
from polyspan.datasets import (
    assemble_patches,
    extract_patches,
    make_union_of_subspaces,
    mask_entries,
)
from polyspan.kernels import Kernel, estimate_kernel
from polyspan.storage.models import ESTIMATORS
from support import require_torch

X = make_union_of_subspaces((20, 20), n_features=8, subspace_dim=2, random_state=0).X
BASES = np.linalg.qr(np.random.RandomState(0).standard_normal((2, 8, 2)))[0]
IMAGE = np.random.RandomState(0).random((20, 24))
MODEL = MiCUSaL(2, 2, random_state=0).fit(X)
LINE = r"sklearn\.set_config\(array_api_dispatch=True\)"
ONLY = "works on NumPy arrays only"


@pytest.fixture(params=["strict", "torch"])
def tensor(request):
    """Return what makes an array of another package."""
    return require_torch().asarray if request.param == "torch" else array_api_strict.asarray


def sized(kind):
    known = kind().get_params()
    sizes = {"n_subspaces": 2, "subspace_dim": 2, "n_clusters": 2, "max_subspaces": 2, "max_dim": 2}
    sizes["random_state"] = 0
    return kind(**{name: value for name, value in sizes.items() if name in known})


METHODS = ("predict", "transform", "reconstruct", "impute", "impute_std", "score")


@pytest.mark.filterwarnings("ignore")  # of few samples
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators_turn_tensors_into_numpy_without_the_switch(kind, tensor):
    model, expected = sized(kind).fit(tensor(X)), sized(kind).fit(X)
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            assert isinstance(getattr(model, name), np.ndarray), name
            assert np.array_equal(getattr(model, name), value, equal_nan=True), name
    for method in METHODS:
        if hasattr(model, method):
            assert_equal(getattr(model, method)(tensor(X)), getattr(expected, method)(X))
    if hasattr(kind, "partial_fit") and kind is not baselines.KGROUSE:  # which has no stream
        stream = sized(kind).partial_fit(tensor(X))
        assert np.array_equal(stream.bases_, sized(kind).partial_fit(X).bases_)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators_refuse_what_numpy_cannot_read(kind, accelerator):
    model = sized(kind)
    native = getattr(model.__sklearn_tags__(), "array_api_support", False)
    message = f"on the device .*, which NumPy cannot read .*{LINE}" if native else ONLY
    with pytest.raises(ValueError, match=message):
        model.fit(accelerator.asarray(X))
    assert not hasattr(model, "n_features_in_")
    if hasattr(kind, "partial_fit") and kind is not baselines.KGROUSE:
        with pytest.raises(ValueError, match=f"{ONLY}, and X is an array of array_api"):
            model.partial_fit(accelerator.asarray(X))


def test_the_line_helps(tensor):
    with sklearn.config_context(array_api_dispatch=True):
        found = MiCUSaL(2, 2, random_state=0).fit(tensor(X)).bases_
    assert type(found) is type(tensor(X))


@pytest.mark.parametrize("kind", [MiCUSaL, RobustMiCUSaL, MCKUSaL, SubspaceMixture])
def test_a_model_of_tensors_needs_the_switch_too(kind, tensor):
    with sklearn.config_context(array_api_dispatch=True):
        model = kind(2, 2, random_state=0).fit(tensor(X))
    for given in (tensor(X), X):
        with pytest.raises(ValueError, match=f"_ is an array of .*{LINE}"):
            model.predict(given)


NATIVE = {
    "subspace_distance": lambda t: metrics.subspace_distance(t(BASES[0]), t(BASES[1])),
    "principal_angles": lambda t: metrics.principal_angles(t(BASES[0]), BASES[1]),
    "average": lambda t: metrics.average_subspace_distance(BASES, t(BASES)),
    "reconstruction": lambda t: metrics.relative_reconstruction_error(t(X), t(X)),
    "clustering_error": lambda t: metrics.clustering_error(np.zeros(3), t(np.zeros(3))),
    "estimate_dimension": lambda t: metrics.estimate_dimension(t(X)),
    "compare": lambda t: compare(t(X), [MODEL]),
    "compare bases": lambda t: compare(X, [MODEL], bases=t(BASES)),
    "init": lambda t: MiCUSaL(2, 2, init=t(BASES)).fit(X),
    "init of MCKUSaL": lambda t: MCKUSaL(2, 2, init=t(np.arange(40) % 2)).fit(X),
    "seeds": lambda t: MCKUSaL(2, 2, init="gkiop", gkiop_seeds=t(np.arange(2))).fit(X),
}
NUMPY_ONLY = {
    "poisson": lambda t: images.denoise_image(t(IMAGE), noise="poisson"),
    "correlated": lambda t: images.denoise_image(t(IMAGE), noise="correlated"),
    "stack_axis": lambda t: images.denoise_image(t(np.stack([IMAGE] * 3)), 0.1, stack_axis=0),
    "inpaint_image": lambda t: images.inpaint_image(t(IMAGE), IMAGE > 0.5),
    "mask": lambda t: images.inpaint_image(IMAGE, t(IMAGE > 0.5)),
    "extract_patches": lambda t: extract_patches(t(IMAGE), 4),
    "assemble_patches": lambda t: assemble_patches(t(np.ones((30, 16))), (20, 24), 4),
    "mask_entries": lambda t: mask_entries(t(X), 0.1),
    "masked_entry_score": lambda t: model_selection.masked_entry_score(MODEL, t(X)),
    "choose_size": lambda t: model_selection.choose_size(t(X), 2, 2),
    "choose_by_noise": lambda t: model_selection.choose_by_noise(MODEL, t(X), 0.1, {}),
    "estimate_kernel": lambda t: estimate_kernel(Kernel("rbf"), t(X)),
}


@pytest.mark.parametrize("call", NATIVE.values(), ids=NATIVE)
def test_functions_turn_tensors_into_numpy_without_the_switch(call, tensor, accelerator):
    found, expected = call(tensor), call(np.asarray)
    if isinstance(expected, float | np.ndarray):
        assert_equal(found, expected)
    elif hasattr(expected, "labels_"):
        assert_equal(found.labels_, expected.labels_)
    else:
        assert found.rows[0]["error"] is expected.rows[0]["error"] is None
    with pytest.raises(ValueError, match=f"on the device .*, which NumPy cannot read .*{LINE}"):
        call(accelerator.asarray)


@pytest.mark.parametrize("call", NUMPY_ONLY.values(), ids=NUMPY_ONLY)
@pytest.mark.parametrize("dispatch", [False, True])
def test_functions_for_numpy_alone_say_so(call, tensor, dispatch):
    with (
        sklearn.config_context(array_api_dispatch=dispatch),
        pytest.raises(ValueError, match=ONLY),
    ):
        call(tensor)


def table(frame, **more):
    columns = {f"f{k}": X[:, k] for k in range(8)}
    return frame({**columns, **more})


FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
WITH_TEXT = {
    "MiCUSaL": lambda T: MiCUSaL(2, 2).fit(T),
    "RobustMiCUSaL": lambda T: RobustMiCUSaL(2, 2).fit(T),
    "partial_fit": lambda T: MiCUSaL(2, 2).partial_fit(T),
    "SubspaceMixture": lambda T: SubspaceMixture(2, 2).fit(T),
    "MCKUSaL": lambda T: MCKUSaL(2, 2).fit(T),
    "KernelKMeans": lambda T: baselines.KernelKMeans(2).fit(T),
    "choose_size": lambda T: model_selection.choose_size(T, 2, 2),
    "choose_by_noise": lambda T: model_selection.choose_by_noise(MODEL, T, 0.1, {}),
    "masked_entry_score": lambda T: model_selection.masked_entry_score(MODEL, T),
    "estimate_dimension": lambda T: metrics.estimate_dimension(T),
    "mask_entries": lambda T: mask_entries(T, 0.1),
}


@FRAMES
@pytest.mark.parametrize("call", WITH_TEXT.values(), ids=WITH_TEXT)
def test_a_column_of_text_is_named(call, frame):
    mixed = table(frame, city=["Rome", "Oslo"] * 20)
    message = r"a column of X cannot be read as numbers \('city': could not convert .*'Rome'"
    with pytest.raises(ValueError, match=message):
        call(mixed)
    place = mixed.shape[1] - 1
    with pytest.raises(ValueError, match=message.replace("'city'", str(place))):
        call(mixed.to_numpy().astype(object))


@FRAMES
def test_columns_of_other_kinds_are_named(frame):
    days = pd.date_range("2024-01-01", periods=40).to_list()
    mixed = table(frame, day=days, city=["Rome"] * 40, letter=[*"ab"] * 20)
    with pytest.raises(ValueError, match=r"3 columns of X .*'day': its type is.*'city'.*'letter'"):
        MiCUSaL(2, 2).fit(mixed)
    many = table(frame, **{f"t{k}": ["a"] * 40 for k in range(9)})
    with pytest.raises(ValueError, match=r"9 columns of X .*'t4'.*; and 4 more"):
        MiCUSaL(2, 2).fit(many)


def test_columns_that_are_no_matter_are_not_named():
    good = table(pd.DataFrame, whole=pd.array([1, None] * 20, dtype="Int64"), true=[True] * 40)
    RobustMiCUSaL(2, 2, random_state=0).fit(good)
    model = MiCUSaL(2, 2).fit(table(pd.DataFrame))
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.predict(table(pd.DataFrame, city=["Rome"] * 40).drop(columns="f0"))
    infinite = table(pd.DataFrame, big=[np.inf] * 40)
    with pytest.raises(ValueError, match="contains infinity"):
        model.fit(infinite)
    twice = pd.DataFrame(np.array([["a", "b"]] * 5, dtype=object), columns=["c", "c"])
    with pytest.raises(ValueError, match="same name: 'c'"):
        MiCUSaL(1, 1).fit(twice)
    given = pd.DataFrame({"a": [1.0, 2, 3], "b": [1, pd.NA, 3]})
    with pytest.raises(ValueError, match=r"a column of X .*'b'"):
        MiCUSaL(1, 1).fit(given)


MIXTURE = SubspaceMixture(2, 2, random_state=0).fit(X)
PARAMETERS = [
    ("fraction", lambda v: mask_entries(X, v), ("0.1", None, [0.1], 1.0, -0.1, np.nan)),
    ("pattern", lambda v: mask_entries(X, 0.1, pattern=v), ("rows", 1, None)),
    (
        "fraction",
        lambda v: model_selection.masked_entry_score(MODEL, X, fraction=v),
        ("0.1", None, 0, 1, [0.1]),
    ),
    ("k1", lambda v: metrics.estimate_dimension(X, k1=v), ("6", 6.0, None, 2, [6])),
    ("k2", lambda v: metrics.estimate_dimension(X, k2=v), ("6", 10.0, None)),
    ("noise", lambda v: images.denoise_image(IMAGE, noise=v), ("white", None, 1)),
    ("gain", lambda v: images.denoise_image(IMAGE, noise="poisson", gain=v), ("1", [1.0])),
    ("offset", lambda v: images.denoise_image(IMAGE, noise="poisson", offset=v), ("1", [1.0])),
    ("stack_axis", lambda v: images.denoise_image(IMAGE, stack_axis=v), ("first", 0.0)),
    ("return_std", lambda v: images.denoise_image(IMAGE, return_std=v), ("yes", None)),
    ("n_jobs", lambda v: images.denoise_image(IMAGE, n_jobs=v), ("all", 1.0)),
    ("per_channel", lambda v: images.estimate_noise(IMAGE, per_channel=v), ("yes", None)),
    ("preset", lambda v: images.denoise_image(IMAGE, preset=v), ("slow", 1, None, ["fast"])),
    ("preset", lambda v: images.inpaint_image(IMAGE, IMAGE > 1, preset=v), ("slow", 1, None)),
    ("channel_axis", lambda v: images.denoise_image(IMAGE, channel_axis=v), ("last", 1.0)),
    ("channel_axis", lambda v: images.estimate_noise(IMAGE, v), ("last", 1.0)),
    ("model", lambda v: images.denoise_image(IMAGE, model=v), ("a", MODEL)),
    ("random_state", lambda v: images.denoise_image(IMAGE, random_state=v), ("a", 0.5)),
    ("max_bytes", lambda v: fit_micusal(X[None], 2, 2, max_bytes=v), ("1", 1e6, 0, [1])),
    ("methods", lambda v: compare(X, v), (MODEL, None, 3, {MODEL})),
    ("progress", lambda v: compare(X, [], progress=v), ("yes", None)),
    ("n_samples", MIXTURE.sample, ("3", 3.0, 0, None, [3])),
    ("random_state", lambda v: MIXTURE.sample(3, v), ("a", 0.5)),
    ("noise", lambda v: MIXTURE.reconstruct(X, v), ("a", -1.0, [0.1], np.nan)),
    ("max_subspaces", lambda v: model_selection.choose_size(X, v, 2), ("2", 2.0, 0, None)),
    ("max_dim", lambda v: model_selection.choose_size(X, 2, v), ("2", 2.0, 0, None)),
    ("lam", lambda v: model_selection.choose_size(X, 2, 2, lam=v), ("4", 0.0, np.inf)),
    (
        "param_grid",
        lambda v: model_selection.choose_by_noise(MODEL, X, 0.1, v),
        ("subspace_dim", None, 3),
    ),
    ("noise", lambda v: make_union_of_subspaces((5, 5), noise=v), ("a", None, -1.0, np.inf)),
    ("n_features", lambda v: make_union_of_subspaces((5, 5), n_features=v), ("9", 9.0, None)),
]


@pytest.mark.parametrize(
    ("name", "call", "value"),
    [(name, call, value) for name, call, values in PARAMETERS for value in values],
)
def test_wrong_parameters_get_the_message_of_scikit_learn(name, call, value):
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of .* must be .* Got"):
        call(value)


@pytest.mark.parametrize("methods", [["MiCUSaL"], {"a": 3}, "MiCUSaL"])
def test_methods_that_are_no_estimators(methods):
    with pytest.raises(TypeError, match=r"methods holds .* which is no estimator"):
        compare(X, methods)


@FRAMES
@pytest.mark.parametrize("mark", [np.nan, 0])
def test_an_imputer_takes_a_column_of_text(frame, mark):
    mixed = table(frame, city=["Rome", "Oslo"] * 20)
    model = SubspaceImputer(1, 2, missing_values=mark).fit(mixed)
    assert model.feature_types_["city"] == "category"
