"""Sections made by hand, with every case that the report has to handle."""

import math

import numpy as np
import pytest

from reproduction.page import About, write_report
from reproduction.sections import (
    CANNOT_TELL,
    DIFFERS,
    DOES_NOT_HOLD,
    HOLDS,
    NEW,
    NOT_REACHABLE,
    Claim,
    Curve,
    Panel,
    Picture,
    Row,
    Section,
    Value,
)

EVIL = '</section></details><script>throw new Error("ran")</script><img src=x onerror=alert(1)>'


def table():
    """Numbers of every verdict: many trials, one trial, none, and one without an error."""
    rows = [
        Row("t_s = 0.01, MiCUSaL", 0.1331, Value(0.13312, 0.0021, 20), Value(0.0713, 0.0004, 20),
            HOLDS, improved_by="MiCUSaL, annealed"),
        Row("t_s = 0.01, SSC", 0.4137, Value(0.3121, 0.0111, 20), Value(0.3901, 0.0004, 20),
            DIFFERS, "Our SSC keeps its diagonal at zero; the published code does not say."),
        Row("t_s = 0.04, MiCUSaL (λ = ∞)", 0.1261, Value(0.1268, math.nan, 1), None, HOLDS),
        Row("t_s = 0.04, SAC+BK-SVD", 0.5, None, None, NOT_REACHABLE, "no trial has run"),
        Row("number of subspaces", None, Value(4.5, 0.5, 2), None, HOLDS, "2 of 2 draws inside", 1,
            published_as="4 to 5"),
        Row("seconds per fit", None, Value(0.00000123, 1e-9, 3), None, NEW, digits=3),
    ]  # fmt: skip
    claims = [
        Claim("MiCUSaL is closer to the truth than K-sub at every t_s.", HOLDS, "0.13 < 0.21"),
        Claim("SSC comes second.", DOES_NOT_HOLD, "SSC 0.31, TSC 0.29 ± 0.004"),
        Claim("The gap widens with noise.", CANNOT_TELL, "one trial only"),
    ]
    return Section(
        "table1", "Distance to the true subspaces", "Table I",
        "Five subspaces of dimension 13 in 180 dimensions, each near the one before.\n\n"
        "Noise of power 0.1; 8 random starts each.",
        rows, claims, source="synthetic", notes=["d_avg is matched one to one."],
        n_trials=20, seconds=312.5, topic="synthetic data",
    )  # fmt: skip


def figure():
    """Curves with errors, without, logarithmic, with holes, with very many points."""
    levels = [0.02, 0.04, 0.06, 0.08, 0.1]
    methods = ["MiCUSaL", "SSC", "TSC", "K-sub", "SAC+BK-SVD", "PCA"]
    curves = [
        Curve(name, levels, [0.05 + 0.02 * k + 0.9 * x for x in levels], [0.004] * 5)
        for k, name in enumerate(methods)
    ]
    ours = Curve("polyspan, annealed", levels, [0.03 + 0.7 * x for x in levels], [0.002] * 5, True)
    steps = np.arange(1, 61)
    traces = [
        Curve(f"λ = {lam}", steps, (0.2 + np.exp(-steps / (4 + lam))).tolist()) for lam in (1, 4, 8)
    ]
    holes = Curve("holes", [1, 10, 100, 1000], [1e-6, math.nan, 0.0, 0.3], [math.nan, 1, 1, 0.4])
    return Section(
        "fig2", "Denoising of synthetic data", "Fig. 2", "Relative error of test signals.",
        rows=[Row("(a), noise 0.1, MiCUSaL", None, Value(0.14, 0.004, 5), Value(0.1, 0.002, 5))],
        panels=[
            Panel("(a) complete data", "noise power of the test signals", "relative error",
                  [*curves, ours]),
            Panel("(b) the objective", "iteration", "objective", traces),
            Panel("(c) missing data", "λ", "relative error", [holes], x_log=True, y_log=True),
            Panel("(d) one point", "x", "y",
                  [Curve("alone", [3.0], [0.0]), Curve("empty", [], [])]),
            Panel("(e) different places", "x", "y",
                  [Curve("left", [1, 2, 2], [5e6, 7e6, 8e6]),
                   Curve("right", [2, math.inf], [6e6, 1e6], None, True)]),
        ],
        source="synthetic", n_trials=1, n_failed=1, seconds=0.5,
        failures=["LinAlgError: SVD did not converge\n  at trial 3 \x00\x1b[0m"],
    )  # fmt: skip


def faces():
    """Pictures of stand-in data."""
    ramp = np.linspace(-0.2, 1.2, 20 * 16).reshape(20, 16)
    pictures = [Picture(np.roll(ramp, k, axis=1), f"subject {k} & “noise”") for k in range(6)]
    return Section(
        "fig6", "Faces", "Fig. 6", "Three subjects.", panels=[
            Panel("(a) some images", pictures=pictures),
            Panel("(b) error", "noise", "error", [Curve("MiCUSaL", [0.1, 0.2], [0.2, 0.3])]),
        ],
        source="Faces drawn by a formula, since the files are not here", stand_in=True,
        n_trials=3, seconds=9000,
    )  # fmt: skip


def hostile():
    """HTML wherever text may stand, long words, and text of many scripts."""
    long = "unbreakable" * 30
    return Section(
        "fig9", EVIL, f"Fig. 9 {EVIL}", f"{EVIL}\n\n{long} Ünïcödé 日本語 العربية ½ | pipe * _ `",
        rows=[Row(EVIL, 1, Value(2.0, 0.5, 3), Value(1.0, 0.5, 3), DIFFERS, f"{EVIL} {long}", 2,
                  EVIL)],
        claims=[Claim(EVIL, HOLDS, EVIL)],
        panels=[Panel(EVIL, EVIL, EVIL, [Curve(EVIL, [1, 2], [1, 2], [0.1, 0.1])],
                      [Picture(np.eye(4), EVIL)])],
        source=EVIL, notes=[EVIL], n_trials=3, n_failed=1, failures=[EVIL],
    )  # fmt: skip


@pytest.fixture(scope="session")
def sections():
    empty = Section("table4", "Not run", "Table IV", "")
    return [table(), figure(), faces(), empty, hostile()]


@pytest.fixture(scope="session")
def about():
    return About(
        scale="smoke", command="python -m reproduction --scale smoke", commit="0123abc",
        date="2025-01-31", versions={"polyspan": "0.1.0", "numpy": "2.4.0"},
        machine="2 cores, 8 GB", notes=["Sizes are cut down: the numbers show that it runs."],
    )  # fmt: skip


@pytest.fixture(scope="session")
def report(tmp_path_factory, sections, about):
    """The folder of a report with all sections."""
    return write_report(sections, tmp_path_factory.mktemp("sample"), about=about).parent
