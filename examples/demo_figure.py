"""The figure of `demo.py`: one panel for the idea, one for each job."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # no display is needed
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import SubFigure

Errors = dict[str, float]  # of each method
OURS, OTHERS = "#0072b2", "0.72"
BODIES = (OURS, "#d55e00", "#009e73")  # told apart by colour-blind readers too


def draw(
    output: Path,
    idea: tuple[Errors, Errors],
    films: tuple[Errors, np.ndarray, dict[str, np.ndarray]],
    photos: tuple[Errors, dict[str, np.ndarray]],
    filled: tuple[Errors, Errors],
) -> None:
    """Write the figure of what the four parts of the demo return."""
    figure = plt.figure(figsize=(12, 6.6), layout="constrained")
    panels = figure.subfigures(2, 2, wspace=0.06, hspace=0.08).ravel()
    draw_bars(panels[0], idea, ("wrong labels", "distance to the truth"), (".1%", ".3f"))
    draw_tracks(panels[1], *films)
    draw_photos(panels[2], *photos)
    draw_bars(panels[3], filled, ("error of numbers", "wrong categories"), (".2f", ".0%"))
    titles = (
        "The idea: learn close subspaces together",
        "Cluster: which points move together?",
        "Clean a photograph",
        "Fill a table of numbers and categories",
    )
    notes = (
        "distance: 0 is exact, 1 is at right angles",
        "wrong: mean of all films; the first is drawn, a cross marks a wrong point",
        "off: typical error of a pixel, in levels of 255",
        "of hidden cells; the mean of the column has an error of 1",
    )
    for panel, title, note in zip(panels, titles, notes, strict=True):
        panel.suptitle(title, fontsize=13, fontweight="bold")
        panel.supxlabel(note, fontsize=9)
    figure.savefig(output, dpi=100, bbox_inches="tight", pad_inches=0.15)
    plt.close(figure)


def draw_bars(
    panel: SubFigure, measures: tuple[Errors, ...], titles: tuple[str, ...], forms: tuple[str, ...]
) -> None:
    """Draw one row of bars for each measure; the last method is ours."""
    axes = panel.subplots(1, len(measures), sharey=True)
    for ax, values, title, form in zip(axes, measures, titles, forms, strict=True):
        names = [name.replace(", ", ",\n") for name in values]
        bars = ax.barh(names, list(values.values()), color=[OTHERS] * (len(names) - 1) + [OURS])
        ax.bar_label(bars, [format(value, form) for value in values.values()], padding=3)
        ax.set_title(title, fontsize=10)
        ax.set(xticks=[], xlim=(0, 1.3 * max(values.values())))
        ax.tick_params(left=False)
        ax.spines[["top", "right", "bottom"]].set_visible(False)
    axes[0].invert_yaxis()


def draw_tracks(
    panel: SubFigure, errors: Errors, tracks: np.ndarray, labels: dict[str, np.ndarray]
) -> None:
    """Draw the tracks of one film in the colours of their clusters."""
    truth = labels["truth"]
    for ax, (name, error) in zip(panel.subplots(1, len(errors)), errors.items(), strict=True):
        for track, body, label in zip(tracks, truth, labels[name], strict=True):
            ax.plot(*track.T, color=BODIES[label], lw=0.6, alpha=0.7)
            if label != body:
                ax.plot(*track[-1], "kx", ms=4)
        ax.set_title(f"{name}\n{error:.1%} wrong", fontsize=10)
        ax.set(xticks=[], yticks=[], aspect="equal")


def draw_photos(panel: SubFigure, errors: Errors, pictures: dict[str, np.ndarray]) -> None:
    """Draw the pictures, each with its error."""
    for ax, (name, error) in zip(panel.subplots(1, len(errors)), errors.items(), strict=True):
        ax.imshow(pictures[name], cmap="gray", vmin=0, vmax=1)
        ax.set_title(f"{name}\n{error:.1f} levels off", fontsize=10)
        ax.set(xticks=[], yticks=[])
