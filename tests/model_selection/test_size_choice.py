"""What `choose_size` says beside its answer: bounds, seeds, progress, warnings, a short table."""

import warnings
from contextlib import contextmanager

import pytest

from polyspan.datasets import make_union_of_subspaces
from polyspan.model_selection import SizeChoice, choose_size, sizes
from polyspan.model_selection.size_choice import bounds_reached

X = make_union_of_subspaces(
    (40, 40), n_features=15, subspace_dim=2, spread=0.6, noise=0.1, random_state=0
).X


def messages(record):
    return [str(warning.message) for warning in record]


def test_answers_at_the_end_of_the_grid_are_warned_about():
    with pytest.warns(UserWarning, match="choose_size: ") as record:
        choice = choose_size(X, 2, 2, choose_lam=False, n_seeds=1, random_state=0)
    assert (choice.n_subspaces, choice.subspace_dim) == (2, 2)
    assert messages(record) == [
        "choose_size: n_subspaces=2 is the largest that was tried: raise max_subspaces",
        "choose_size: subspace_dim=2 is the largest that was tried: raise max_dim",
    ]
    assert record[0].filename == __file__
    assert "raise max_dim" in repr(choice)


def test_inner_answers_are_not_warned_about():
    data = make_union_of_subspaces(
        (60, 60), n_features=20, subspace_dim=3, spread=0.5, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = choose_size(data.X, 3, 4, choose_lam=False, random_state=0)
    assert choice.seed_answers == [(2, 3)] * 3
    assert choice.at_bound == {}


def test_which_bounds_count():
    def reached(sizes, largest, grid=(4.0,)):
        return bounds_reached(sizes, largest, (5, 6), list(grid))

    assert reached((4, 5, 4.0), (5, 6)) == {}
    few = reached((3, 6, 4.0), (3, 6))
    assert few["n_subspaces"].endswith("for more there are too few samples")
    assert few["subspace_dim"].endswith("raise max_dim")
    # A size that the user has fixed, or a λ that was not searched for, is no answer at a bound.
    assert bounds_reached((1, 1, 4.0), (1, 1), (1, 1), [4.0]) == {}
    assert "run again with lam=1" in reached((2, 2, 1.0), (5, 6), (1.0, 4.0, 16.0))["lam"]
    assert "largest" in reached((2, 2, 16.0), (5, 6), (1.0, 4.0, 16.0))["lam"]
    assert reached((2, 2, 4.0), (5, 6), (1.0, 4.0, 16.0)) == {}


def test_seeds_that_differ_are_told():
    choice = SizeChoice(5, 3, 4.0, (4, 6), 0.02, [{}] * 7, [(5, 3), (4, 3), (4, 3)])
    assert choice.stability == (
        "3 seeds give 2 answers: 5 of dimension 3, 4 of dimension 3 (2 seeds)"
    )
    with pytest.warns(UserWarning, match="depends on the seed") as record:
        choice.warn()
    assert len(record) == 1
    # Another dimension, or one seed of three, is in the table, but no reason to warn.
    other = SizeChoice(5, 3, 4.0, (5, 5), 0.02, [], [(5, 3), (5, 4), (6, 3)])
    assert "3 answers" in other.stability
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.warn()


def test_a_choice_prints_as_a_short_table():
    choice = SizeChoice(5, 3, 4.0, (4, 6), 0.02, [{}] * 7, [(5, 3), (5, 3)])
    lines = str(choice).splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["n_subspaces", "5"], ["subspace_dim", "3"], ["lam", "4"]
    ]  # fmt: skip
    assert "4 to 6 are about as good" in lines[0]
    assert "2.00% worse" in lines[1]
    assert lines[3].endswith("all 2 seeds give the same sizes")
    assert lines[4].split() == ["models", "tried", "7"]
    one = str(SizeChoice(1, 3, 4.0, (1, 1), float("inf")))
    assert "one subspace is PCA" in one
    assert "no other was tried" in one
    assert "not measured" in one


def test_warnings_of_trials_are_kept(monkeypatch):
    fit = sizes.MiCUSaL.fit

    def noisy(self, *args, **kwargs):
        warnings.warn("of a trial", UserWarning, stacklevel=2)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(sizes.MiCUSaL, "fit", noisy)
    with pytest.warns(UserWarning, match="choose_size: ") as record:
        choose_size(X, 2, 1, choose_lam=False, n_seeds=1, random_state=0)
    assert all(message.startswith("choose_size: ") for message in messages(record))


@pytest.mark.filterwarnings("ignore:choose_size")
def test_progress_counts_the_models(monkeypatch):
    seen = []

    @contextmanager
    def bar(shown, total, title):
        seen.append((shown, total, title))
        yield lambda text: seen.append(text)

    monkeypatch.setattr(sizes, "progress_bar", bar)
    choice = choose_size(X, 2, 2, n_seeds=2, random_state=0, progress=True)
    (shown, total, title), *steps = seen
    assert (shown, title) == (True, "choose_size")
    assert len(choice.table) < len(steps) <= total
    assert {step.removeprefix("choose_size: ") for step in steps} == {
        "dimension", "number", "weight"
    }  # fmt: skip
