"""Model files, saved with skops, so that loading one runs no code from the file.

Needs skops: `pip install skops`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import is_numpy
from polyspan.base.files import atomic_write, check_target
from polyspan.base.optional import import_optional
from polyspan.base.private_sklearn import is_pandas_na
from polyspan.storage import saved_types
from polyspan.storage.archive import (
    ModelFileError,
    ModelInfo,
    arrays_and_tree,
    read_checked,
    with_manifest,
    with_tree,
)
from polyspan.storage.estimators import check_structure
from polyspan.storage.structure import StructureError
from polyspan.tables import SubspaceImputer

__all__ = ["ModelFileError", "ModelInfo", "load_model", "model_bytes", "model_info", "save_model"]

ESTIMATORS = tuple(saved_types.ESTIMATORS.values())
TRANSFORMERS = tuple(saved_types.TRANSFORMERS.values())
# Set on an estimator by scikit-learn's callbacks: living objects, not what was learned.
_CALLBACK_ATTRIBUTES = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)


def save_model(model: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Save a fitted estimator of polyspan, or a pipeline that ends in one.

    The file is a skops archive with a manifest. It is written completely or not at all. It holds
    numbers and names, but no code: callbacks are not saved, and a model whose kernel is a Python
    function is refused. For a model fitted on a dask array, the lazy `labels_` are left out, since
    the file does not hold the data to compute them; `predict` returns them again.

    The other steps of a pipeline may be estimators of polyspan too, "passthrough", or these of
    scikit-learn: `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `RobustScaler`, `Normalizer`,
    `PowerTransformer`, `QuantileTransformer`, `SimpleImputer`, `KNNImputer`, `MissingIndicator`,
    `VarianceThreshold`, `PCA`, `IncrementalPCA` and `TruncatedSVD`. Others are refused, such as
    `FunctionTransformer`, which carries a function. The cache of a pipeline (`memory`) is not
    saved.

    Parameters
    ----------
    model : estimator of `polyspan` or `polyspan.baselines`, or `sklearn.pipeline.Pipeline`
        The fitted model to save.
    path : str or Path
        File to write; ".skops" is the usual ending.
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.storage.models import load_model, save_model
    >>> X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    >>> model = MiCUSaL(2, 2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.skops")
    ...     again = load_model(Path(folder) / "model.skops")
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    """
    check_target(path, overwrite=overwrite)
    content = model_bytes(model)
    with atomic_write(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | Path) -> Any:
    """Load a model that `save_model` wrote.

    Nothing in the file is executed. It can only create polyspan's own estimators, what those are
    made of, a pipeline of them and of the transformers that `save_model` names, arrays, numbers
    and strings: a file with any other type is refused. The checksum notices damage; someone who
    forges a file can forge it too, and is held to the same types. What is loaded is checked once:
    the shapes of arrays, the indices in them, and parameters against what their class allows.

    Parameters
    ----------
    path : str or Path
        File that `save_model` wrote, or a link to one.

    Returns
    -------
    estimator or Pipeline
        The fitted model. Its predictions are bit-equal to those of the one that was saved, on the
        same machine and with the same libraries. After an `IncrementalPCA`, a `TruncatedSVD`, or a
        `PCA` by the solver "randomized" or "arpack" they are equal up to rounding: these keep views
        of larger arrays, which a file holds in another order.
    """
    skops = _skops()
    arrays, tree, _ = read_checked(Path(path))
    try:
        saved_types.to_import_paths(tree)
        model = skops.loads(with_tree(arrays, tree), trusted=saved_types.trusted_types())
        if isinstance(model, Pipeline):
            _check_steps(model)
            if model.memory is not None:  # a folder of pickles, which the next fit would load
                raise ValueError(f"memory={model.memory!r}")
        check_is_fitted(model)
        check_structure(model)
    except StructureError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    except Exception as error:  # skops and NumPy raise many types for a damaged tree
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    return model


def model_info(path: str | Path) -> ModelInfo:
    """Read what a model file says about itself, after the same checks as `load_model`."""
    _skops()
    return read_checked(Path(path))[2]


def model_bytes(model: Any) -> bytes:
    """Return the content of a model file."""
    name = type(model).__name__
    if type(model) is Pipeline:
        _check_steps(model)
    elif type(model) not in ESTIMATORS:
        known = ", ".join(kind.__name__ for kind in ESTIMATORS)
        raise TypeError(f"cannot save a {name}: polyspan saves {known}, and pipelines")
    check_is_fitted(model)
    bare = _bare(model)
    arrays, tree = arrays_and_tree(_skops().dumps(bare))
    unknown = saved_types.to_file_names(tree)
    if unknown:
        raise TypeError(
            f"cannot save this {name}: it holds {', '.join(unknown)}, and {_instead(model)}"
        )
    try:
        check_structure(bare)
    except ValueError as error:  # a parameter that was set after the fit
        raise ValueError(f"cannot save this {name}, which could not be loaded: {error}") from error
    return with_manifest(arrays, tree)


def _instead(model: Any) -> str:
    """Say what to change in a model that holds what no file can."""
    plain = (str, bytes, dict, list, tuple, np.ndarray)
    listed = [
        name
        for name, value in model.get_params().items()
        if isinstance(value, Iterable)
        and not isinstance(value, plain)
        and not hasattr(value, "get_params")
    ]
    if listed:
        return f"a tuple or list can be saved: give {', '.join(listed)} as one, and fit again"
    return "a model file holds no code; use a kernel by its name, or 'precomputed'"


def _check_steps(pipeline: Pipeline) -> None:
    """Refuse a pipeline that a file may not hold, or of which a step is not fitted."""
    last = len(pipeline.steps) - 1
    for k, (name, step) in enumerate(pipeline.steps):
        allowed = ESTIMATORS if k == last else ESTIMATORS + TRANSFORMERS
        if k < last and (step is None or step == "passthrough"):
            continue
        if type(step) not in allowed:
            wanted = (
                "the last step must be an estimator of polyspan"
                if k == last
                else "polyspan saves " + ", ".join(kind.__name__ for kind in TRANSFORMERS)
            )
            raise TypeError(
                f"a model file cannot hold this Pipeline: its step {name!r} is a "
                f"{type(step).__name__}, and {wanted}"
            )
        check_is_fitted(step)


def _check_columns(model: SubspaceImputer) -> None:
    """Refuse an imputer of columns whose names or levels a file cannot hold."""
    types = model.feature_types if isinstance(model.feature_types, dict) else {}
    names = [*(one.name for one in model._features), *types]
    for name in names:
        if type(name) not in (str, int):
            raise TypeError(
                f"cannot save this SubspaceImputer: {name!r}, the name of a column, is of type "
                f"{type(name).__name__}, and a model file holds names that are text or whole "
                "numbers: rename the columns, and fit again"
            )
    for one in model._features:
        for level in (*one.levels, *one.type.categories):
            if type(level) not in (str, int, float, bool):
                raise TypeError(
                    f"cannot save this SubspaceImputer: column {one.name!r} has the value "
                    f"{level!r} of type {type(level).__name__}, and a model file holds text and "
                    "numbers: convert the column to text, and fit again"
                )


def _bare(model: Any) -> Any:
    """Return a copy without what a file cannot hold: callbacks, lazy labels, a folder of caches."""
    bare = copy.copy(model)  # without lazy labels
    if isinstance(bare, SubspaceImputer):
        _check_columns(bare)
        if is_pandas_na(bare.missing_values):  # which is the same there
            bare.missing_values = None
    for name in _CALLBACK_ATTRIBUTES:
        bare.__dict__.pop(name, None)
    if isinstance(bare, Pipeline):
        bare.steps = [
            (name, step if step is None or isinstance(step, str) else _bare(step))
            for name, step in bare.steps
        ]
        bare.memory = None
    for value in vars(bare).values():
        if is_array_api_obj(value) and not is_numpy(value):
            raise TypeError(
                f"cannot save this {type(model).__name__}: its arrays are of "
                f"{type(value).__module__}, and a model file holds those of NumPy; fit it on NumPy"
            )
    return bare


def _skops() -> Any:
    return import_optional("skops.io", "a model file")
