"""A figure of what `choose_size` tried."""

from __future__ import annotations

from typing import Any

from polyspan._optional import import_optional
from polyspan.model_selection import SizeChoice


def plot_size_choice(choice: SizeChoice, axes: Any = None) -> Any:
    """Plot what `choose_size` tried: BIC by dimension, held-out error by number of subspaces.

    Parameters
    ----------
    choice : SizeChoice
        The result of `choose_size`.
    axes : two matplotlib axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    array of two matplotlib axes
        1. BIC by dimension, a line for every number of subspaces that was tried with it.
        2. Squared error of hidden entries by number of subspaces, with standard errors, at the
           chosen dimension. Dotted lines mark the choice.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.model_selection import choose_size
    >>> from polyspan.plotting import plot_size_choice
    >>> data = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, spread=0.5,
    ...                                random_state=0)
    >>> axes = plot_size_choice(choose_size(data.X, 3, 4, random_state=0))
    >>> axes[0].get_xlabel()
    'dimension of the subspaces'
    """
    if axes is None:
        plt = import_optional("matplotlib.pyplot", "a figure")
        _, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    left, right = axes
    rounds = sorted({int(row["n_subspaces"]) for row in choice.table if row["step"] == "dimension"})
    for n_subspaces in rounds:
        found = _columns(choice, step="dimension", n_subspaces=n_subspaces)
        left.plot(
            found["subspace_dim"], found["value"], marker="o", label=f"{n_subspaces} subspaces"
        )
    left.axvline(choice.subspace_dim, color="gray", linestyle=":")
    left.set(xlabel="dimension of the subspaces", ylabel="BIC")
    left.legend()
    found = _columns(choice, step="number", subspace_dim=choice.subspace_dim)
    right.errorbar(
        found["n_subspaces"], found["value"], yerr=found["standard_error"], marker="o", capsize=3
    )
    right.axvline(choice.n_subspaces, color="gray", linestyle=":")
    right.set(xlabel="number of subspaces", ylabel="squared error of hidden entries")
    return axes


def _columns(choice: SizeChoice, **wanted: Any) -> dict[str, list[Any]]:
    """Return the columns of the table, restricted to the rows with the wanted values."""
    rows = [row for row in choice.table if wanted.items() <= row.items()]
    return {name: [row[name] for row in rows] for name in choice.table[0]}
