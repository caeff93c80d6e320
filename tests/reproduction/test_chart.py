"""Drawings: every point in its place, ours apart, axes at round numbers."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduction.page.axes import make_axis
from reproduction.page.cells import panel_table
from reproduction.page.chart import MAX_HOVER, chart, curve_styles, remarks
from reproduction.sections import Curve, Panel

SVG = "{http://www.w3.org/2000/svg}"


def draw(*curves, **settings):
    panel = Panel("title", "x", "y", curves, **settings)
    return ElementTree.fromstring(chart(panel, curve_styles([panel]), standalone=True))


def places(drawing, css="pt"):
    return np.array(
        [
            [float(number) for number in re.findall(r"[-\d.]+", group.get("transform"))]
            for group in drawing.iter(f"{SVG}g")
            if group.get("class") == css
        ]
    )


def tips(drawing):
    return [title.text for title in drawing.iter(f"{SVG}title")]


def test_points_lie_as_their_values_do():
    x, y = np.array([0.0, 1, 3]), np.array([2.0, 8, 4])
    found = places(draw(Curve("a", x, y)))
    dx, dy = np.diff(found[:, 0]), np.diff(found[:, 1])
    assert dx[1] == pytest.approx(2 * dx[0], abs=0.2)
    assert dy[0] == pytest.approx(-1.5 * dy[1], abs=0.2)
    assert dy[0] < 0  # up


def test_logarithmic_axes_space_by_ratio():
    found = places(draw(Curve("a", [1, 10, 1000], [1, 10, 1000]), x_log=True, y_log=True))
    dx, dy = np.diff(found[:, 0]), np.diff(found[:, 1])
    assert dx[1] == pytest.approx(2 * dx[0], abs=0.2)
    assert dy[1] == pytest.approx(2 * dy[0], abs=0.2)


def test_every_point_tells_its_number():
    drawing = draw(Curve("a", [1, 2], [0.25, 0.5], [0.01, math.nan]), Curve("b", [1], [7]))
    assert tips(drawing) == ["a: 0.25 ± 0.01 at 1", "a: 0.5 at 2", "b: 7 at 1"]


def test_ours_is_drawn_last_and_in_the_accent_colour():
    drawing = draw(Curve("ours", [1, 2], [1, 2], ours=True), Curve("theirs", [1, 2], [1, 2]))
    groups = [g.get("class") for g in drawing.iter(f"{SVG}g") if "curve" in g.get("class")]
    assert groups[:2] == ["curve c0", "curve ours"]


def test_a_point_without_a_place_leaves_a_gap():
    panel = Panel("t", "x", "y", [Curve("a", [1, 2, 3, 4], [1, math.nan, 3, 4])])
    drawing = draw(*panel.curves)
    line = next(p.get("d") for p in drawing.iter(f"{SVG}path") if p.get("class") == "line")
    assert line.count("M") == 2
    assert line.count("L") == 1
    assert len(places(drawing)) == 3
    assert "1 point" in remarks(panel)


def test_a_long_curve_stays_light():
    drawing = draw(Curve("a", np.arange(5000), np.arange(5000.0)))
    assert 50 < len(tips(drawing)) < 2 * MAX_HOVER


def test_curves_that_meet_differ_and_keep_their_looks():
    panels = [
        Panel("1", curves=[Curve(name, [1], [1]) for name in names])
        for names in ("abc", "de", "cdf", "bx")
    ]
    styles = curve_styles(panels)
    for panel in panels:
        numbers = [styles[curve.label, False] for curve in panel.curves]
        assert len(numbers) == len(set(numbers))
    assert max(styles.values()) < 4  # numbers are used again where methods do not meet


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="'a' has 2 x, 1 y"):
        draw(Curve("a", [1, 2], [1]))


def test_the_table_has_every_point():
    panel = Panel(
        "t", "λ", "y", [Curve("a", [1, 2, 2], [5, 6, 7]), Curve("b", [math.nan, 0], [8, 9], [1, 2])]
    )
    head, body = panel_table(panel)
    assert head == ["λ", "a", "b"]
    assert body == [["0", "–", "9 ± 2"], ["1", "5", "–"], ["2", "6; 7", "–"], ["–", "–", "8 ± 1"]]


numbers = st.floats(-1e12, 1e12).map(lambda x: x if abs(x) > 1e-99 else 0.0)


@given(st.lists(numbers, min_size=1, max_size=9), st.booleans(), st.booleans())
def test_axes_hold_their_values_and_label_them_rightly(values, log, at_values):
    axis = make_axis(values, log, at_values)
    kept = [v for v in values if v > 0 or not log]
    assert axis.low < axis.high
    for a in kept:
        assert 0 <= axis.place(a) <= 1
        assert all(axis.place(a) <= axis.place(b) for b in kept if a <= b)
    ticks = [place for place, _ in axis.ticks]
    assert ticks == sorted(ticks)
    assert 1 <= len(ticks) <= 12
    assert len({text for _, text in axis.ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("values", "log", "labels"),
    [
        ([0, 1], False, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ([1, 1000], True, ["1", "10", "100", "1000"]),
        ([1e-6, 1e-4], True, ["10⁻⁶", "10⁻⁵", "10⁻⁴"]),
        ([1, 8], True, ["1", "2", "5"]),
        ([5], False, ["4.8", "4.9", "5.0", "5.1", "5.2"]),
    ],
)
def test_round_ticks(values, log, labels):
    assert [text for _, text in make_axis(values, log).ticks] == labels


def test_ticks_at_the_values_where_they_are_few():
    assert [t for t, _ in make_axis([0.02, 0.05, 0.1], False, at_values=True).ticks] == [
        0.02, 0.05, 0.1,
    ]  # fmt: skip
    assert len(make_axis([0, 0.001, 1], False, at_values=True).ticks) > 3
    near = make_axis([100001, 100002], False, at_values=True).ticks
    assert len({text for _, text in near}) == len(near) > 1
