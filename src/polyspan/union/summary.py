"""What a fitted model says, in words and as a table; `summary` is a method of every model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.arrays import to_numpy
from polyspan.checks import first_ten
from polyspan.summaries import Summary, counted, is_lazy, listed, without_words
from polyspan.union.neighbours import Neighbours, nearness
from polyspan.union.portrait import SURE, Portrait, dimensions_of, in_memory, unsure_samples

if TYPE_CHECKING:
    from polyspan.union.prediction import UnionPrediction


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
    dims = dimensions_of(self)
    n = len(dims)
    table: dict[str, np.ndarray] = {"subspace": np.arange(n)}
    portrait = None if X is None else Portrait.of(self, X)
    if portrait is None:
        if not hasattr(self, "labels_"):
            raise ValueError(
                f"this {type(self).__name__} has no labels_: a saved model lacks those of a dask "
                "array; give samples, summary(X)"
            )
        labels = to_numpy(self.labels_)
        out = np.zeros(len(labels), dtype=bool)
        for name in ("trimmed_", "_without_weight"):
            out |= to_numpy(getattr(self, name, out))
        labels = labels[~out]
        left_out = int((labels < 0).sum())
    else:
        labels, left_out = portrait.labels, portrait.n_left_out
    table["samples"] = np.bincount(labels[labels >= 0], minlength=n)
    table["dimension"] = dims
    neighbours = Neighbours.of(self)
    table.update(_neighbours(neighbours))
    if hasattr(self, "variances_"):
        table["weight"] = to_numpy(self.weights_).astype(np.float64)
        table["noise"] = np.sqrt(to_numpy(self.noise_variances_).astype(np.float64))
    sentences = [*_size(self, dims), *_samples(self, table["samples"], left_out, X is None)]
    sentences += [*_trimmed(self), *nearness(neighbours), *_noise(self)]
    if portrait is not None:
        table.update(_explained(portrait, n))
        sentences += [*_shares(table, portrait), *_unsure(self, in_memory(X), portrait, table)]
    sentences += _end(self)
    if X is None:
        sentences.append("With summary(X) it also says how well samples fit, and which are unsure.")
    facts = _facts(self, dims, table["samples"], neighbours)
    return Summary(tuple(sentences), table, tuple(facts))


def short_summary(self: UnionPrediction) -> Summary:
    """Return what a notebook shows of a fitted model, without a computation on samples."""
    labels = getattr(self, "labels_", None)
    if labels is None or is_lazy(labels):
        facts = _facts(self, dimensions_of(self), None, Neighbours.of(self))
        return Summary((), facts=tuple(facts))
    return without_words(self)


def _facts(
    model: Any, dims: np.ndarray, sizes: np.ndarray | None, neighbours: Neighbours
) -> Iterator[tuple[str, str]]:
    """Yield the sizes of a model, and how sure it is, as names and values."""
    kind = "affine, " if hasattr(model, "anchors_") else ""
    space = f"of {model.n_features_in_} features"
    if not hasattr(model, "bases_"):
        space = "of the feature space"
    yield "Subspaces", f"{len(dims)} ({kind}{space})"
    if sizes is not None:
        yield "Samples", str(sizes.sum()) + (f" ({listed(sizes)})" if len(sizes) > 1 else "")
    yield "Dimensions", listed(dims)
    for sentence in nearness(neighbours):
        yield "How near", sentence
    for sentence in _noise(model):
        yield "Noise", sentence
    for sentence in _end(model):
        yield "The fit", sentence
    if len(dims) > 1:
        yield "How sure", "summary(X) says which samples lie between two subspaces."


def _neighbours(found: Neighbours) -> dict[str, np.ndarray]:
    """Return the nearest other subspace of every subspace, its distance and its angles."""
    nearest = found.nearest()
    if len(nearest) == 1:
        return {"nearest": nearest, "distance": np.array([np.nan])}
    every = np.arange(len(nearest))
    columns = {"nearest": nearest, "distance": found.distances[every, nearest]}
    if found.angles is not None:
        columns["smallest_angle"] = found.angles[0][every, nearest]
        columns["largest_angle"] = found.angles[1][every, nearest]
    if found.apart is not None:
        columns["apart"] = found.apart[every, nearest]
    return columns


def _explained(portrait: Portrait, n: int) -> dict[str, np.ndarray]:
    """Return the mean residual and the explained share of the energy of every subspace."""
    counts = np.bincount(portrait.labels, minlength=n)
    residuals, totals = (
        np.bincount(portrait.labels, weights=values, minlength=n)
        for values in (portrait.residuals, portrait.totals)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"residual": residuals / counts, "explained": 1.0 - residuals / totals}


def _size(model: Any, dims: np.ndarray) -> Iterator[str]:
    n, name = len(dims), type(model).__name__
    what = "subspace" if n == 1 else "subspaces"
    kind = "affine " if hasattr(model, "anchors_") else ""
    where = f"of {model.n_features_in_} features"
    if not hasattr(model, "bases_"):
        where = "of the feature space"
    if len(set(dims.tolist())) == 1:
        size = f"of dimension {dims[0]}" + (" each" if n > 1 else "")
    else:
        size = f"of dimensions {first_ten(dims)}"
    yield f"{name}: {n} {kind}{what} {where}, {size}."


def _samples(model: Any, sizes: np.ndarray, left_out: int, of_fit: bool) -> Iterator[str]:
    streamed = hasattr(model, "n_samples_seen_")
    whose = "given"
    if of_fit:
        whose = "of the last batch" if streamed else "of the fit"
    text = f"{counted(int(sizes.sum()), 'sample')} {whose}"
    if len(sizes) > 1:
        least, most = sizes.min(), sizes.max()
        text += f", {least} to {most} in a subspace" if least < most else f", {least} in each"
    yield f"{text}."
    if left_out:
        has = "sample has" if left_out == 1 else "samples have"
        yield f"{left_out} more {has} too few observed entries to be judged."
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return
    have = "Subspace {} has" if len(empty) == 1 else "Subspaces {} have"
    if of_fit and not streamed:
        yield f"{have.format(first_ten(empty))} no samples: n_subspaces may be too large."
    else:  # a few samples need not be of all subspaces
        yield f"{have.format(first_ten(empty))} none of these samples."


def _trimmed(model: Any) -> Iterator[str]:
    if not hasattr(model, "trimmed_"):
        return
    trimmed = to_numpy(model.trimmed_)
    count = int(trimmed.sum())
    if count:
        yield (
            f"{count} of {counted(len(trimmed), 'sample')} of the fit took no part, since they "
            "were trimmed or have weight 0: see trimmed_."
        )


def _noise(model: Any) -> Iterator[str]:
    variance = getattr(model, "noise_variance_", None)
    if variance is not None:
        whose = " of the last batch" if hasattr(model, "n_samples_seen_") else ""
        deviation = f"a standard deviation of {np.sqrt(variance):.3g}"
        yield f"The noise{whose} has {deviation} in every feature."


def _shares(table: dict[str, np.ndarray], portrait: Portrait) -> Iterator[str]:
    total = float(portrait.totals.sum())
    if not total > 0 or not table["dimension"].any():  # points explain nothing
        return
    share = 1.0 - float(portrait.residuals.sum()) / total
    text = f"The subspaces explain {share:.0%} of the energy of their samples"
    filled = table["samples"] > 0
    if filled.sum() > 1:
        worst = int(np.argmin(np.where(filled, table["explained"], np.inf)))
        least = f"{table['explained'][worst]:.0%}"
        if least != f"{share:.0%}":
            text += f", subspace {worst} least: {least}"
    yield f"{text}."


def _unsure(model: Any, X: Any, portrait: Portrait, table: dict[str, np.ndarray]) -> Iterator[str]:
    """Say which samples lie between two subspaces, and add their shares to the table."""
    n = len(table["subspace"])
    if n == 1 or not len(portrait.rows):
        return
    unsure, best = (found[portrait.rows] for found in unsure_samples(model, X))
    counts = np.bincount(portrait.labels[unsure], minlength=n)
    with np.errstate(invalid="ignore"):
        table["unsure"] = counts / table["samples"]
    why = f"no subspace has a membership of {SURE:g}"
    if not hasattr(model, "memberships"):
        why = "a second subspace is nearly as near"
    if not unsure.any():
        yield "No sample is unsure."
        return
    pairs, often = np.unique(np.sort(best[unsure], axis=1), axis=0, return_counts=True)
    a, b = pairs[np.argmax(often)]
    count, most = int(unsure.sum()), int(often.max())
    which = f"The largest part of them, {most}, lies" if most < count else "All of them lie"
    if count == 1:
        which = "It lies"
    yield (
        f"{count} of {counted(len(unsure), 'sample')} ({unsure.mean():.1%}) "
        f"{'is' if count == 1 else 'are'} unsure: {why}. {which} between subspaces {a} and {b}."
    )
    what = "Unsure samples" if count > 1 else "The unsure sample"
    yield f"{what}, counted from 0: {first_ten(portrait.rows[unsure])}."


def _end(model: Any) -> Iterator[str]:
    if hasattr(model, "converged_"):
        count = counted(model.n_iter_, "iteration")
        streamed = hasattr(model, "n_samples_seen_")
        what = "The update with the last batch" if streamed else "The fit"
        if model.converged_:
            yield f"{what} converged after {count}."
        elif streamed:  # its number of steps is fixed
            yield f"{what} ended after {count}."
        else:
            yield f"{what} did not converge in {count}: raise max_iter or tol."
