"""Private and new names of scikit-learn, and replacements for those that older releases lack.

All other files import these names from here, so that only this file depends on the release.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj, is_numpy_array
from sklearn import config_context, get_config
from sklearn.base import _fit_context
from sklearn.cluster._spectral import cluster_qr
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils._array_api import _is_numpy_namespace as is_numpy_namespace
from sklearn.utils._array_api import get_namespace, get_namespace_and_device
from sklearn.utils._available_if import _AvailableIfDescriptor
from sklearn.utils._mask import _get_mask as get_mask
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils._param_validation import (
    Interval,
    MissingValues,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._set_output import ADAPTERS_MANAGER
from sklearn.utils._set_output import _get_output_config as get_output_config
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_n_features as check_n_features
from sklearn.utils.validation import check_is_fitted

from polyspan.base.progress import job_of_fit

try:
    from sklearn.callback import CallbackSupportMixin, ProgressBar
except ImportError:  # before scikit-learn 1.9

    class _SilentContext:
        """A task of a fit that calls no callbacks."""

        def call_on_fit_task_begin(self, **arguments: Any) -> None:
            """Do nothing."""

        def call_on_fit_task_end(self, **arguments: Any) -> bool:
            """Do nothing; False: the fit goes on."""
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replace the mixin of newer releases; it calls no callbacks."""

        def _init_callback_context(self, **options: Any) -> _SilentContext:
            return _SilentContext()

    ProgressBar = None

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # before scikit-learn 1.8

    def check_same_namespace(X: Any, estimator: Any, *, attribute: str, method: str) -> None:
        """Raise an error if X has another namespace or device than the fitted attribute."""
        if not get_config()["array_api_dispatch"]:
            return
        # Tables have no device, and become NumPy arrays.
        xp, _, where = get_namespace_and_device(X if is_array_api_obj(X) else np.empty(0))
        learned_xp, _, learned_where = get_namespace_and_device(getattr(estimator, attribute))
        both_numpy = is_numpy_namespace(xp) and is_numpy_namespace(learned_xp)
        if both_numpy or (xp == learned_xp and where == learned_where):
            return
        raise ValueError(
            f"X passed to {method} is an array of {xp.__name__} on the device {where}, and "
            f"{type(estimator).__name__} was fitted on one of {learned_xp.__name__} on the device "
            f"{learned_where}: both must use the same namespace and the same device; move X there, "
            "or fit again"
        )


Method = TypeVar("Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Return scikit-learn's decorator of `fit` and `partial_fit`; a fit that fails changes nothing.

    Whatever ends it, Ctrl-C and a lack of memory too, the estimator is as it was before. A fit may
    store new objects at any time, but change none that an attribute holds already. It shows a bar
    where one was asked for.
    """
    checked = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)

    def decorator(fit: Method) -> Method:
        inner = checked(fit)

        @wraps(fit)
        def whole(estimator: Any, *arguments: Any, **options: Any) -> Any:
            before = vars(estimator).copy()
            try:
                with job_of_fit(estimator):
                    return inner(estimator, *arguments, **options)
            except BaseException:
                estimator.__dict__ = before  # in one step, which a second Ctrl-C cannot halve
                raise

        return whole  # type: ignore[return-value]

    return decorator


class _Explained(_AvailableIfDescriptor):  # type: ignore[misc]
    """A method that some models lack; the message of its absence says why."""

    def __get__(self, model: Any, owner: Any = None) -> Any:
        try:
            return super().__get__(model, owner)
        except AttributeError as error:
            if error.__cause__ is None:
                raise
            raise AttributeError(f"{error}: {error.__cause__}") from error.__cause__


def available_if(check: Callable[[Any], bool]) -> Callable[[Callable[..., Any]], Any]:
    """Return scikit-learn's decorator of the same name, with the reason in the message itself.

    `check` raises an error that says why a model lacks the method.
    """
    return lambda method: _Explained(method, check, attribute_name=method.__name__)


def plain_settings(X: Any = None) -> AbstractContextManager[None]:
    """Return a context for calls of scikit-learn's own estimators and functions.

    Inside it scikit-learn returns arrays, whatever output the user has set. For NumPy arrays the
    array API dispatch is off, because with it older releases lack operations and newer ones take
    other code paths. Pass X if it may be of another namespace: then the dispatch stays as it is.
    """
    dispatch = False if X is None or is_numpy_array(X) else None  # None: unchanged
    context: AbstractContextManager[None] = config_context(
        array_api_dispatch=dispatch, transform_output="default"
    )
    return context


def in_container(
    values: Any, given: Any, estimator: Any, names: Any, *, as_given: bool = False
) -> Any:
    """Return an array as the frame that `set_output`, or the global setting, asks for.

    `names` are the columns; a pandas frame also has the index of what was given. With `as_given`
    a frame of pandas or Polars comes back as one where no setting asks for anything.
    """
    container = get_output_config("transform", estimator)["dense"]
    if container == "default" and as_given and hasattr(given, "columns"):
        container = type(given).__module__.partition(".")[0]
        names = given.columns
    if container not in ADAPTERS_MANAGER.adapters:
        return values
    return ADAPTERS_MANAGER.adapters[container].create_container(values, given, columns=names)


def check_parameters(caller: str, **given: tuple[Any, list[Any]]) -> None:
    """Raise scikit-learn's error where a parameter of a function has a wrong type or value.

    A call and not scikit-learn's decorator, which hides the types of a function from type checkers
    and its examples from doctest.

    Parameters
    ----------
    caller : str
        Name of the function.
    **given : (value, constraints)
        By names of parameters.
    """
    if not get_config()["skip_parameter_validation"]:
        constraints = {name: allowed for name, (_, allowed) in given.items()}
        values = {name: value for name, (value, _) in given.items()}
        validate_parameter_constraints(constraints, values, caller_name=caller)


def html_with_summary(model: Any) -> str:
    """Return scikit-learn's HTML of an estimator and, where it is fitted, its summary below.

    It replaces `_html_repr`, from which scikit-learn makes all that a notebook asks for.
    """
    shown = str(estimator_html_repr(model))
    try:
        check_is_fitted(model)
        return shown + str(model._short_summary().short_html())
    # Labels that a file lacks, or attributes that a user changed: the model is shown all the same.
    except (NotFittedError, AttributeError, IndexError, TypeError, ValueError):
        return shown
