"""`SubspaceClustering`: clusters of real data, and how sure they are."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import some_rows, to_numpy
from polyspan.base.checks import refuse_missing, validate_samples, warn_user
from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.base.progress import FitProgress
from polyspan.clustering.consensus import Member, agreement, cluster_graphs, members_table
from polyspan.clustering.coordinates import (
    Coordinates,
    beyond_chance,
    in_range,
    move_attributes,
    scaled_samples,
    subspaces_of,
)
from polyspan.clustering.decision import MOSTLY, Judge, Partition, best_rung, decide
from polyspan.clustering.exemplars import Exemplars, distinct_samples, extend, with_copies
from polyspan.clustering.graphs import (
    EXTRA,
    candidate_graphs,
    evidence,
    member_graphs,
    most_members,
)
from polyspan.clustering.prediction import ClusterPrediction
from polyspan.clustering.second_opinion import MIXTURE, NOT_HIGH, by_mixture, repeats
from polyspan.clustering.summary import UNSURE, complaints, summarise, verdict, verdict_of_mixture
from polyspan.linear.looking import noise_variance

#: Up to this many samples dense graphs take part.
DENSE_SAMPLES = 3000
#: Beyond this many samples that many of them, drawn at random, are clustered; others are predicted.
MOST_SAMPLES = 50_000
N_EXEMPLARS = 20_000
#: No mixture is learned from fewer samples.
LEAST_SAMPLES = 20
MISSING_ADVICE = "fill them first, for example with polyspan.SubspaceImputer"


class SubspaceClustering(ClusterMixin, ClusterPrediction):  # type: ignore[misc]
    """Cluster samples, and say how sure the result is.

    Several graphs are built from one thin singular value decomposition: some join samples with
    small angles between them, some join near neighbours. Each graph is clustered by its leading
    eigenvectors. The result is the consensus of all graphs, where a graph counts the more the
    more clearly its spectrum separates. Where most of this weight is against the consensus, as in
    many standardised tables, angles say nothing, and a `SubspaceMixture` speaks instead: it finds
    clusters that are apart in position, each with its own shape, sizes chosen by BIC. No labels
    and no tuning are needed.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters. None: found from the gaps of the spectra, up to `max_clusters`.
    max_clusters : int, default=20
        Most clusters that are looked for, if `n_clusters` is None.
    graphs : {"auto", "all", "sparse"}, default="auto"
        Which graphs take part. "all" needs memory for three matrices of n_samples × n_samples;
        "auto": all up to 3000 samples, only sparse ones beyond.
    close_subspaces : bool, default=True
        Where no graph separates clearly, try `MiCUSaL` as well, which finds subspaces that are
        close to each other.
    extra_members : sequence of str or None, default=None
        Methods of `polyspan.baselines` whose graphs join the consensus, weighted by their gaps as
        the others are: "elastic_net", "least_squares", "ensemble", "shape_interaction".
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random, such as the starts of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every training sample.
    n_clusters_ : int
        Number of clusters.
    confidence_ : ndarray of shape (n_samples,)
        Weighted fraction of the graphs that agree with the label of a sample, from 0 to 1. Where a
        mixture speaks, the probability of the label.
    certainty_ : float
        How sure the whole partition is, from 0 to 1: a score and not a probability. Above .8 nearly
        all labels of faces, digits and subspaces were right. On other tables labels were often
        wrong there too. Below .3 they say little.
    contradiction_ : float
        How many of the graphs, by their weight, have other clusters than their consensus (an
        adjusted Rand index below .3): a fraction. Above .7 a mixture speaks; of too few samples for
        one, `certainty_` is at most what is left. 0 where no graph separates clearly.
    source_ : str
        Where the labels come from, in words.
    separates_ : bool
        Whether the data look like a union of subspaces: `certainty_` is at least .3.
    verdict_ : str
        How sure the partition is, in one sentence with the numbers behind it.
    subspace_dim_ : int
        Dimension of a subspace, by the graph that separates most clearly.
    subspace_dims_ : ndarray of shape (n_clusters,)
        Dimension of each subspace: it holds 90 % of the energy of its cluster, or more where fewer
        samples would lie nearest to their own subspace. 0 for a cluster without samples.
    agreement_ : float
        Fraction of the samples that lie nearest to the subspace of their own cluster: how well
        `predict` follows `labels_`. Where it is low, so is `certainty_`.
    bases_ : ndarray of shape (n_clusters, n_features, max(subspace_dims_))
        Orthonormal bases. Columns beyond the dimension of a subspace are zero.
    means_ : ndarray of shape (n_clusters, n_features)
        Where a mixture speaks, the means of the clusters; else 0.
    mean_ : ndarray of shape (n_features,)
        Where a mixture speaks, the mean of the samples; else 0: subspaces go through the
        origin.
    noise_variance_ : float
        Variance of the noise: the mean squared residual per remaining dimension.
    members_ : dict of arrays
        "graph" (names), "gap", "weight", each (n_graphs,), "labels" (n_graphs, n_samples), and
        "values" (n_graphs, n_clusters + 1), the leading eigenvalues of each graph. Empty where a
        mixture speaks.
    evidence_ : ndarray
        Evidence for 2, 3, … clusters, up to `max_clusters` or a third of the samples; only if
        `n_clusters` is None.

    Notes
    -----
    Scale the rows to norm 1 where only their direction matters, as for images: then brightness
    does not count. Leave trajectories and measurements with one unit as they are.

    Samples that occur several times are clustered once and get one label. Zero samples lie in every
    subspace, so their confidence is 0.

    Where no angle separates clearly, and there are at most 5 clusters and 5000 samples, five
    elastic nets join the graphs. Then that graph wins whose clusters the graphs of other kinds cut
    least.

    Memory: three times n_samples × n_samples numbers up to 3000 samples. Beyond that graphs are
    sparse, and no array has n_samples × n_samples entries. Beyond 5000 samples the 300 leading
    coordinates count, of which a few copies are held. Neighbours are then searched in random trees,
    which find more than 95 % of them on digits, and 5000 samples are judged by residuals. A Gram
    matrix has as many rows as there are features, up to 3000; beyond, the decomposition is
    randomised. Beyond 50 000 samples, 20 000 drawn at random are clustered. The others get the
    label of the nearest subspace, or that for which their nearest exemplars vote: by the rule that
    gives more of the held-out exemplars their own label. `predict` always takes the nearest
    subspace.

    Under scikit-learn's `array_api_dispatch` the large products are made where X is, such as on a
    GPU; eigenvectors of graphs and k-means are computed on the CPU.

    Examples
    --------
    >>> from polyspan import SubspaceClustering
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((60, 60, 60), n_features=30, subspace_dim=3, spread=0.6,
    ...                                noise=0.02, random_state=0)
    >>> model = SubspaceClustering(random_state=0).fit(data.X)
    >>> model.n_clusters_
    3
    >>> clustering_error(data.labels, model.labels_)
    0.0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "max_clusters": [Interval(Integral, 2, None, closed="left")],
        "graphs": [StrOptions({"auto", "all", "sparse"})],
        "close_subspaces": ["boolean"],
        "extra_members": [list, tuple, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_clusters: int = 20,
        graphs: str = "auto",
        close_subspaces: bool = True,
        extra_members: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.graphs = graphs
        self.close_subspaces = close_subspaces
        self.extra_members = extra_members
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples without missing entries.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        SubspaceClustering
            The fitted estimator.
        """
        given = self._validate(X, reset=True)
        X = to_numpy(given)
        extra = self._extra_members()
        if self.n_clusters is not None and self.n_clusters > len(X):
            raise ValueError(f"n_clusters={self.n_clusters} is larger than n_samples={len(X)}")
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        self._forget()
        distinct, copies = distinct_samples(X)
        chosen = None
        if len(distinct) > MOST_SAMPLES:
            chosen = some_rows(len(distinct), N_EXEMPLARS, rng)
        part = distinct if chosen is None else distinct[chosen]
        coordinates = Coordinates.of(scaled_samples(part), seed, like=given)
        n_clusters = self._number(coordinates)
        most = most_members(coordinates, n_clusters)
        progress = FitProgress(self, X, y, 1, most)
        found = self._partition(part, coordinates, n_clusters, extra, progress)
        progress.end_start(0)
        if self._mixture_speaks(part, found):
            self._store_mixture(X, part, found, seed)
        elif chosen is None:
            found = with_copies(found, copies)
            self._store(X, found, n_clusters)
        else:
            self._store(part, found, n_clusters)
            self._predict_others(distinct, chosen, coordinates, copies)
        progress.end()
        self._warn(X, found.members)
        move_attributes(self, given)
        if self._by_mixture:
            move_attributes(self._mixture, given)
        return self

    def _forget(self) -> None:
        """Leave out what only some fits have."""
        for name in ("_mixture", "_axes"):
            self.__dict__.pop(name, None)

    def _warn(self, X: np.ndarray, members: list[Member]) -> None:
        if self.n_clusters is None and self.n_clusters_ == 1:
            warn_user(f"the {len(X)} samples are too few, or too much alike, to look for clusters")
        elif self.n_clusters is None and not self.evidence_.any():
            warn_user("no spectrum has a gap, so 2 clusters were taken: give n_clusters")
        n_zero = int((~X.any(axis=1)).sum())
        for complaint in complaints(
            members, self.labels_, self.n_clusters_, n_zero, self.agreement_, self.certainty_
        ):
            warn_user(complaint)
        if members and not self.separates_:
            warn_user(self.verdict_)

    def _extra_members(self) -> list[str]:
        extra = list(self.extra_members or ())
        unknown = [name for name in extra if name not in EXTRA]
        if unknown:
            raise ValueError(f"extra_members={unknown} are not known: choose from {sorted(EXTRA)}")
        return extra

    def _dense(self, n_samples: int) -> bool:
        return self.graphs == "all" or (self.graphs == "auto" and n_samples <= DENSE_SAMPLES)

    def _number(self, coordinates: Coordinates) -> int:
        """Return the number of clusters, given or found."""
        n = len(coordinates.U)
        self.__dict__.pop("evidence_", None)
        if self.n_clusters is not None:
            return int(self.n_clusters)
        most = min(self.max_clusters, n // 3)
        if most < 2 or coordinates.rank < 2:
            self.evidence_ = np.empty(0)
            return 1
        graphs = candidate_graphs(coordinates, most, self._dense(n))
        self.evidence_ = evidence(graphs, most, coordinates.seed)
        return int(np.argmax(self.evidence_)) + 2

    def _partition(
        self,
        X: np.ndarray,
        coordinates: Coordinates,
        n_clusters: int,
        extra: list[str],
        progress: FitProgress,
    ) -> Partition:
        """Cluster the samples by all graphs, and keep one partition."""
        if n_clusters == 1:
            # One cluster is certain where it was asked for, and a way out where it was not.
            labels = np.zeros(len(X), dtype=np.int64)
            return Partition(labels, float(self.n_clusters == 1), "one cluster", [])
        if len(X) <= n_clusters or coordinates.rank == 0:
            labels = np.arange(len(X)) if coordinates.rank else np.zeros(len(X), dtype=np.int64)
            return Partition(labels, 0.0, "one cluster for every different sample", [])
        report = progress.monitor(
            0, lambda labels: self._subspaces(X, labels, n_clusters), measure="gap"
        )
        turn = iter(range(1, len(X) + 100))

        def monitor(member: Member) -> bool:
            return report is not None and report(0, next(turn), member.gap, member.labels)

        dense = self._dense(len(X))
        graphs = member_graphs(coordinates, n_clusters, dense=dense, extra=extra)
        members = cluster_graphs(graphs, n_clusters, coordinates.seed, monitor)
        return decide(members, Judge.of(coordinates, n_clusters), X, close=self.close_subspaces)

    def _mixture_speaks(self, X: np.ndarray, graphs: Partition) -> bool:
        """Tell whether the graphs contradict their own consensus, and a mixture can be learned."""
        n, values = graphs.labels.max() + 1, np.asarray(X, dtype=np.float64)
        safe = in_range(values) is values  # squares of the samples are numbers
        return safe and graphs.contradiction > MOSTLY and len(X) >= max(LEAST_SAMPLES, 4 * n)

    def _store_mixture(self, X: np.ndarray, part: np.ndarray, graphs: Partition, seed: int) -> None:
        """Keep the clusters of a mixture that is learned from a part of the samples."""
        most = min(self.max_clusters, len(part) // 4)
        number = (1, most) if self.n_clusters is None else int(self.n_clusters)
        second = by_mixture(part, number, seed)
        self._mixture, self.mean_ = second.mixture, second.mean
        self.n_clusters_, self.bases_ = second.n_clusters, second.mixture.bases_
        if second.axes is not None:
            self._axes, self.bases_ = second.axes, second.axes @ self.bases_
        self.labels_ = self._nearest(X)  # as `predict`, to the last bit
        self.confidence_ = self._memberships(X).max(axis=1)
        self.noise_variance_ = float(self._mixture.weights_ @ self._mixture.noise_variances_)
        self.agreement_, self.contradiction_ = 1.0, graphs.contradiction
        stable = repeats(second, seed)
        self.certainty_ = min(NOT_HIGH, max(stable, 0.0) * float(self.confidence_.mean()))
        self.source_ = MIXTURE
        self.members_ = members_table([], self.labels_, self.n_clusters_)
        self.subspace_dim_ = int(np.median(self.subspace_dims_))
        self.verdict_ = verdict_of_mixture(self.certainty_, stable, self.contradiction_)

    def _subspaces(self, X: np.ndarray, labels: np.ndarray, n_clusters: int) -> dict[str, Any]:
        """Return the attributes that predictions need."""
        bases, agreement = subspaces_of(X, labels, n_clusters)
        mean = np.zeros(X.shape[1], dtype=X.dtype)
        return {"bases_": bases, "mean_": mean, "agreement_": agreement}

    def _store(self, X: np.ndarray, found: Partition, n_clusters: int) -> None:
        members, labels = found.members, found.labels
        self.labels_ = labels
        self.n_clusters_ = n_clusters
        self.__dict__.update(self._subspaces(X, labels, n_clusters))
        self.noise_variance_ = noise_variance(self, X)
        # Labels that no subspaces explain are no clusters of subspaces, however clear they are.
        self.certainty_ = min(found.certainty, beyond_chance(self.agreement_, n_clusters))
        self.source_, self.contradiction_ = found.source, found.contradiction
        self.members_ = members_table(members, labels, n_clusters)
        zero = ~X.any(axis=1)
        if not members:
            self.confidence_ = np.where(zero, 0.0, self.certainty_)
            self.subspace_dim_ = int(self.subspace_dims_.max())
            self.verdict_ = "there was nothing to compare"
            return
        self.confidence_ = np.where(zero, 0.0, agreement(members, labels, n_clusters))
        self.subspace_dim_ = best_rung(members, n_clusters)
        largest, mean = float(self.members_["gap"].max()), float(self.confidence_.mean())
        self.verdict_ = verdict(
            self.certainty_, largest, mean, self.agreement_, self.contradiction_
        )

    @property
    def separates_(self) -> bool:
        """Whether the data look like a union of subspaces."""
        check_is_fitted(self, "bases_")
        return bool(self.certainty_ >= UNSURE)

    # A text: with X the summary of a linear model follows.
    def summary(self, X: Any = None) -> str:  # type: ignore[override]
        """Return in plain words what was found, how sure it is, and what to do next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Samples, such as those of the fit. With them the text goes on with the summary of a
            linear model: how near the subspaces are, how well they explain these samples.

        Returns
        -------
        str
            Some lines: the number of clusters, the certainty and what it is worth, which samples
            are unsure and what to do next; then a table of the clusters.
        """
        check_is_fitted(self, "bases_")
        text = str(summarise(self))
        return text if X is None else f"{text}\n\n{super().summary(X)}"

    _short_summary = summarise

    def _predict_others(
        self, X: np.ndarray, chosen: np.ndarray, coordinates: Coordinates, copies: np.ndarray | None
    ) -> None:
        """Label all samples: those that were clustered, and the others by what is learned."""
        known = Exemplars(X[chosen], self.labels_, self.confidence_, self.n_clusters_)
        labels, confidence = extend(X, chosen, known, coordinates, self.bases_)
        everything = slice(None) if copies is None else copies
        self.labels_, self.confidence_ = labels[everything], confidence[everything]

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Any:
        X = validate_samples(self, X, reset=reset, method=method, fitted="bases_")
        refuse_missing(self, X, MISSING_ADVICE)
        return X

    _any_namespace = True
