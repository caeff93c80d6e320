import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from polyspan.model_selection import SizeChoice
from polyspan.plotting import plot_size_choice


def row(step, n_subspaces, dim, value):
    names = ("step", "n_subspaces", "subspace_dim", "lam", "value", "standard_error")
    return dict(zip(names, (step, n_subspaces, dim, 4.0, value, 0.1), strict=True))


def test_size_choice_is_drawn_on_given_or_new_axes():
    table = [row("dimension", 3, s, -s) for s in (1, 2)]
    table += [row("dimension", 2, s, -2 * s) for s in (1, 2)]
    table += [row("number", k, 2, k) for k in (1, 2, 3)]
    choice = SizeChoice(1, 2, 4.0, (1, 2), 0.5, table)
    left, right = plot_size_choice(choice)
    assert [line.get_label() for line in left.get_lines()[:2]] == ["2 subspaces", "3 subspaces"]
    assert left.get_lines()[0].get_ydata().tolist() == [-2, -4]
    assert right.get_lines()[0].get_xdata().tolist() == [1, 2, 3]
    _, axes = plt.subplots(1, 2)
    assert plot_size_choice(choice, axes) is axes
    plt.close("all")
