"""Charts: positions of points, style of our methods, colours of the page, texts of labels."""

import math
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproduction.page.chart import MAX_HOVER, WIDTH, chart, curve_styles, standalone
from reproduction.page.points import panel_table, remarks
from reproduction.sections import Curve, Panel


def svg(*curves, name="a", labels=("x", "y"), **scales):
    panel = Panel("title", *labels, curves, **scales)
    return chart(panel, curve_styles([panel]), name)


def draw(*curves, **choices):
    return ElementTree.fromstring(svg(*curves, **choices))


def places(drawing):
    points = drawing.findall(".//use[@class='pt']")
    return np.array([[float(point.get(axis)) for axis in "xy"] for point in points])


def tips(drawing):
    return [title.text for title in drawing.iter("title")]


def texts(drawing):
    return [text.text for text in drawing.iter("text")]


def line(drawing):
    """The path of the only curve, not its bars: those are a group of their own, and earlier."""
    return drawing.findall(".//g[@class='curve c0']")[-1].find("path").get("d")


def test_points_lie_as_their_values_do():
    x, y = np.array([0.0, 1, 3]), np.array([2.0, 8, 4])
    found = places(draw(Curve("a", x, y)))
    dx, dy = np.diff(found[:, 0]), np.diff(found[:, 1])
    assert dx[1] == pytest.approx(2 * dx[0], abs=0.2)
    assert dy[0] == pytest.approx(-1.5 * dy[1], abs=0.2)
    assert dy[0] < 0  # up


def test_logarithmic_axes_space_by_ratio_and_have_plain_labels():
    drawing = draw(Curve("a", [1, 10, 1000], [1e-6, 1e-5, 1e-3]), x_log=True, y_log=True)
    found = places(drawing)
    dx, dy = np.diff(found[:, 0]), np.diff(found[:, 1])
    assert dx[1] == pytest.approx(2 * dx[0], abs=0.2)
    assert dy[1] == pytest.approx(2 * dy[0], abs=0.2)
    assert {"1", "10", "100", "1000", "0.001", "1e−05"} <= set(texts(drawing))


@pytest.mark.parametrize("x", [[2, 8], [3, 3.5], [1e-9, 1e9], [5]])
def test_a_logarithmic_axis_of_any_length_has_labels(x):
    drawing = draw(Curve("a", x, x), x_log=True, y_log=True, labels=("", ""))
    labels = [text for text in texts(drawing) if text != "a"]
    found = [float(text.replace("−", "-")) for text in labels if text]
    assert sum(0.1 * min(x) <= number <= 10 * max(x) for number in found) >= 4


def test_every_point_tells_its_number():
    drawing = draw(Curve("a", [1, 2], [0.25, 0.5], [0.01, math.nan]), Curve("b", [1], [7]))
    assert tips(drawing) == ["a: 0.25 ± 0.01 at 1", "a: 0.5 at 2", "b: 7 at 1"]


@pytest.mark.parametrize("n", [1, 2])
def test_what_answers_to_the_pointer_is_not_seen(n):
    found = draw(Curve("a", range(n), range(n))).findall(".//use[@class='pt']")
    assert len(found) == n
    assert all(point.get("style") is None for point in found)  # the style sheet hides it


def test_ours_is_drawn_last_and_in_the_accent_colour():
    drawing = draw(Curve("ours", [1, 2], [1, 2], ours=True), Curve("theirs", [1, 2], [1, 2]))
    lines = [g for g in drawing.iter("g") if g.get("class", "").startswith("curve")]
    strokes = [p.get("style") for g in lines for p in g.findall("path")]
    assert [re.search(r"stroke: ([^;]+)", stroke)[1] for stroke in strokes[-2:]] == [
        "var(--c0)",
        "var(--accent)",
    ]


def test_a_point_without_a_place_leaves_a_gap():
    panel = Panel("t", "x", "y", [Curve("a", [1, 2, 3, 4], [1, math.nan, 3, 4])])
    drawing = draw(*panel.curves)
    assert line(drawing).count("M") == 2
    assert line(drawing).count("L") == 1
    assert len(places(drawing)) == 3
    assert "1 point" in remarks(panel)


def test_a_bar_reaches_one_error_up_and_down():
    drawing = draw(Curve("a", [1, 2], [1.0, 2.0], [0.25, math.nan]))
    (x, low), (_, high) = places(drawing)
    bars = [p.get("d") for p in drawing.find(".//g[@class='curve c0']") if p.get("d")]
    (ends,) = [np.array(re.findall(r"[\d.]+", bar), float).reshape(2, 2) for bar in bars]
    assert ends[:, 0] == pytest.approx(x, abs=0.1)
    assert sorted(ends[:, 1] - low) == pytest.approx([(high - low) / 4, (low - high) / 4], abs=0.1)


@pytest.mark.parametrize("error", [math.inf, -1.0, 5.0])
def test_an_error_that_cannot_be_drawn_keeps_its_point(error):
    drawing = draw(Curve("a", [1, 2], [1, 2], [error, 0.1]), y_log=True)
    assert len(places(drawing)) == 2
    assert "nan" not in line(drawing)


def test_a_long_curve_stays_light():
    drawing = draw(Curve("a", np.arange(5000), np.sin(np.arange(5000))))
    assert 50 < len(tips(drawing)) < 2 * MAX_HOVER
    assert len(drawing.findall(".//g[@class='curve c0']//use")) < 20


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


def test_twenty_curves_all_look_different():
    names = [f"m{k}" for k in range(20)]
    drawing = draw(*(Curve(f"m{k}", [1, 2], [k, k], ours=k > 13) for k in range(20)))
    looks = []
    for group in drawing.iter("g"):
        if group.get("class", "").startswith("curve") and group.find("g") is not None:
            marker = group.find("g/use").get("href")
            looks.append((group.find("path").get("style"), marker))
    assert len(looks) == len(set(looks)) == len(names)
    assert [text for text in texts(drawing) if text in names] == names


def test_every_colour_is_one_of_the_style_sheet():
    curves = [Curve(f"m{k}", [1, 2], [k, k], [0.1, 0.1], k == 9) for k in range(10)]
    text = standalone(svg(*curves))
    drawing, sheet = text.split("<style>")
    used = set(re.findall(r"var\((--\w+)\)", drawing))
    assert used == {"--ink", "--soft", "--line", "--panel", "--accent"} | {
        f"--c{k}" for k in range(8)
    }
    light, dark, paper = re.findall(r":root \{([^}]*)\}", sheet)
    for block in (light, dark, paper):
        assert used == set(re.findall(r"(--\w+):", block))
    assert "prefers-color-scheme: dark" in sheet
    assert not re.findall(r"(?:fill|stroke): (?!none|var)", drawing)
    assert not re.search("font-(size|family)|metadata|matplotlib", drawing)
    assert text.count("<style") == 1
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_labels_are_text_and_nothing_else():
    hostile = "$\\pi$ <script>&amp; #000001"
    drawing = draw(Curve(hostile, [1], [1]), Curve("_b", [1], [1]), labels=(hostile, hostile))
    assert texts(drawing).count(hostile) == 3
    assert "_b" in texts(drawing)
    assert not list(drawing.iter("script"))
    assert drawing.get("aria-label") == f"title: {hostile} over {hostile} for {hostile}, _b"
    assert tips(drawing)[0] == f"{hostile}: 1 at 1"


def test_what_no_file_can_hold_is_replaced():
    drawing = draw(Curve("a\x00\x1b\ud800\n日本", [1], [1]))
    assert "a��� 日本" in texts(drawing)


def test_long_labels_are_cut_and_stay_inside():
    drawing = draw(Curve("long " * 50, [1], [1]), labels=("wide " * 50, "high " * 50))
    cut = [text for text in texts(drawing) if text.endswith("…")]
    assert [text[:4] for text in cut] == ["wide", "high", "long"]
    # Letters of the usual fonts are at most this wide in the mean.
    assert all(7 * len(text) < WIDTH for text in cut)


def test_two_drawings_share_no_ids_and_one_is_always_the_same():
    curve = Curve("a", [1, 2], [1, 2])
    first, second = (set(re.findall(r' id="([^"]+)"', svg(curve, name=n))) for n in "ab")
    assert first
    assert not first & second
    assert set(re.findall(r'(?:href="|url\()#([\w-]+)', svg(curve))) <= first
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        changed = svg(curve)
    assert changed == svg(curve)


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


numbers = st.floats(-1e12, 1e12) | st.sampled_from([math.nan, math.inf])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(numbers, numbers), max_size=9), st.booleans(), st.booleans())
def test_every_point_that_fits_is_inside_and_in_order(values, x_log, y_log):
    x, y = [v[0] for v in values], [v[1] for v in values]
    drawing = draw(Curve("a", x, y), x_log=x_log, y_log=y_log)
    kept = [
        (a, b)
        for a, b in values
        if math.isfinite(a) and math.isfinite(b) and (a > 0 or not x_log) and (b > 0 or not y_log)
    ]
    found = places(drawing)
    assert len(found) == len(kept)
    for (a, b), (column, row) in zip(kept, found, strict=True):
        assert 0 < column < WIDTH
        assert row > 0
        for (c, d), (other_column, other_row) in zip(kept, found, strict=True):
            assert a < c or column >= other_column
            assert b < d or row <= other_row
