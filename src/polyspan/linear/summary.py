"""What a fitted model says, in words and as a table; `summary` is a method of every model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import to_numpy
from polyspan.base.checks import first_ten
from polyspan.linear.portrait import SURE, Neighbours, Portrait, in_memory, unsure_samples
from polyspan.summaries import Summary, counted, listed

if TYPE_CHECKING:
    from polyspan.linear.prediction import UnionPrediction

# A mean whose squared norm is below so many times its expectation may be chance.
CHANCE = 4.0


def summary(self: UnionPrediction, X: Any = None) -> Summary:
    """Return in words and as a table what was learned, and what is unsure.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), default=None
        Samples, such as those of the fit, which a model does not keep. With them the summary says
        how well the subspaces explain these samples and which of them are unsure.

    Returns
    -------
    Summary
        Sentences and a table; `print` shows them as text. `table` has the columns "subspace",
        "samples" (of X, or of the fit, without trimmed ones; after `partial_fit` of the last
        batch), "dimension", "nearest" (the nearest other subspace, -1 if there is none), "distance"
        (d_u to it, which compares directions alone) and, but for kernel models, "smallest_angle"
        and "largest_angle" (principal angles to it, in degrees). Affine subspaces and mixtures have
        positions too, and these decide first which is nearest: "apart" is the distance of the
        centre of one to the other subspace, the larger of both ways, or the distance of the means
        of a mixture. Mixtures also have "weight" and "noise" (σ_l). With X there are "residual"
        (mean squared residual), "explained" (share of the energy about the centre of the subspace)
        and "unsure" (share of its samples with no membership of .9; in kernel models of those
        nearly as near to a second subspace).

    Examples
    --------
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> data = make_union_of_subspaces((60, 60), n_features=30, subspace_dim=3, spread=0.3,
    ...                                noise=0.02, random_state=0)
    >>> model = MiCUSaL(n_subspaces=2, subspace_dim=3, random_state=0).fit(data.X)
    >>> summary = model.summary(data.X)
    >>> print(summary.sentences[0])
    MiCUSaL: 2 subspaces of 30 features, of dimension 3 each.
    >>> summary.table["samples"].tolist()
    [60, 60]
    """
    check_is_fitted(self)
    near = Neighbours.of(self)
    n, portrait = len(near.dims), None if X is None else Portrait.of(self, X)
    labels = labels_of_fit(self) if portrait is None else portrait.labels
    sizes = np.bincount(labels[labels >= 0], minlength=n)
    table = {"subspace": np.arange(n), "samples": sizes, "dimension": near.dims, **near.columns()}
    if hasattr(self, "variances_"):
        table["weight"] = to_numpy(self.weights_).astype(np.float64)
        table["noise"] = np.sqrt(to_numpy(self.noise_variances_).astype(np.float64))
    facts = _facts(self, near, sizes)
    sure = facts.get("Noise", "")
    if portrait is not None:
        table.update(_explained(portrait, n))
        sure = _unsure(self, in_memory(X), portrait, table)
    lines = [_title(self, near.dims), near.sentence(), sure, _next(self, sizes, portrait)]
    return Summary(tuple(line for line in lines if line), table, tuple(facts.items()))


def short_summary(self: UnionPrediction) -> Summary:
    """Return what a notebook shows of a fitted model, without a computation on samples."""
    labels = getattr(self, "labels_", None)
    if labels is None or hasattr(labels, "__dask_graph__"):
        return Summary((), facts=tuple(_facts(self, Neighbours.of(self), None).items()))
    return summary(self)


def labels_of_fit(model: Any) -> np.ndarray:
    """Return the labels of the samples that took part."""
    if not hasattr(model, "labels_"):
        raise ValueError(
            f"this {type(model).__name__} has no labels_: a saved model lacks those of a dask "
            "array; give samples, summary(X)"
        )
    labels = to_numpy(model.labels_)
    out = np.zeros(len(labels), dtype=bool)
    for name in ("trimmed_", "_without_weight"):
        out |= to_numpy(getattr(model, name, out))
    return labels[~out]


def _title(model: Any, dims: np.ndarray) -> str:
    n, name = len(dims), type(model).__name__
    kind = "affine " if hasattr(model, "anchors_") else ""
    size = f"of dimensions {first_ten(dims)}"
    if len(set(dims.tolist())) == 1:
        size = f"of dimension {dims[0]}" + (" each" if n > 1 else "")
    return f"{name}: {counted(n, f'{kind}subspace')} {_space(model)}, {size}."


def _space(model: Any) -> str:
    linear = hasattr(model, "bases_")
    return f"of {model.n_features_in_} features" if linear else "of the feature space"


def _facts(model: Any, near: Neighbours, sizes: np.ndarray | None) -> dict[str, str]:
    """Return the sizes of a model, and how sure it is, as names and values."""
    kind = "affine, " if hasattr(model, "anchors_") else ""
    facts = {"Subspaces": f"{len(near.dims)} ({kind}{_space(model)})"}
    if sizes is not None:
        facts["Samples"] = str(sizes.sum()) + (f" ({listed(sizes)})" if len(sizes) > 1 else "")
    trimmed = int(to_numpy(getattr(model, "trimmed_", np.zeros(0))).sum())
    if trimmed:
        facts["Trimmed"] = f"{trimmed} of {len(model.trimmed_)} samples of the fit"
    facts["Dimensions"] = listed(near.dims)
    if len(near.dims) > 1:
        facts["How near"] = near.sentence()
    streamed = hasattr(model, "n_samples_seen_")
    if getattr(model, "noise_variance_", None) is not None:
        whose = " of the last batch" if streamed else ""
        deviation = f"a standard deviation of {np.sqrt(model.noise_variance_):.3g}"
        facts["Noise"] = f"The noise{whose} has {deviation} in every feature."
    if hasattr(model, "converged_"):
        what = "The update with the last batch" if streamed else "The fit"
        how = "converged" if model.converged_ else "ended"
        facts["The fit"] = f"{what} {how} after {counted(model.n_iter_, 'iteration')}."
    if len(near.dims) > 1:
        facts["How sure"] = "summary(X) says which samples lie between two subspaces."
    return facts


def _explained(portrait: Portrait, n: int) -> dict[str, np.ndarray]:
    """Return the mean residual and the explained share of the energy of every subspace."""
    counts = np.bincount(portrait.labels, minlength=n)
    residuals, totals = (
        np.bincount(portrait.labels, weights=values, minlength=n)
        for values in (portrait.residuals, portrait.totals)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"residual": residuals / counts, "explained": 1.0 - residuals / totals}


def _unsure(model: Any, X: Any, portrait: Portrait, table: dict[str, np.ndarray]) -> str:
    """Say which samples lie between two subspaces, and add their shares to the table."""
    n = len(table["subspace"])
    if n == 1 or not len(portrait.rows):
        return ""
    unsure = unsure_samples(model, X)[portrait.rows]
    with np.errstate(invalid="ignore"):
        table["unsure"] = np.bincount(portrait.labels[unsure], minlength=n) / table["samples"]
    if not unsure.any():
        return "No sample is unsure."
    why = f"no subspace has a membership of {SURE:g}"
    if not hasattr(model, "memberships"):
        why = "a second subspace is nearly as near"
    return (
        f"Unsure are {unsure.sum()} of {counted(len(unsure), 'sample')} ({unsure.mean():.1%}), "
        f"counted from 0: {first_ten(portrait.rows[unsure])}; {why}."
    )


def _next(model: Any, sizes: np.ndarray, portrait: Portrait | None) -> str:
    """Say what is best done next, if anything."""
    streamed = hasattr(model, "n_samples_seen_")  # the number of its steps is fixed
    if not (streamed or getattr(model, "converged_", True)):
        count = counted(model.n_iter_, "iteration")
        return f"The fit did not converge in {count}: raise max_iter or tol."
    if portrait is None and not streamed and not sizes.all():
        empty = first_ten(np.flatnonzero(sizes == 0))
        return f"Subspaces without samples: {empty}; n_subspaces may be too large."
    centring = _centring(model, int(sizes.sum()))
    if portrait is None:
        more = "With summary(X) it also says how well samples fit, and which are unsure."
        return f"{more} {centring}".strip()
    if portrait.n_left_out:
        left_out = counted(portrait.n_left_out, "sample")
        return f"{left_out} with too few observed entries cannot be judged."
    return centring


def _centring(model: Any, n_samples: int) -> str:
    """Say that the mean may be left alone, where it is as small as that of draws around 0.

    The mean of N such draws has the squared norm ‖x‖²/N on average. The mean ‖x‖² is 4/λ.
    """
    linear = hasattr(model, "lam_") and hasattr(model, "mean_") and not hasattr(model, "anchors_")
    if not linear or model.lam != "auto" or not model.lam_:
        return ""
    size = float(np.sum(to_numpy(model.mean_).astype(np.float64) ** 2)) * n_samples
    if not 0 < size < CHANCE * 4.0 / model.lam_:
        return ""
    return (
        "If the subspaces go through the origin, set center=False: the mean of the samples is as "
        "small as chance makes it."
    )
