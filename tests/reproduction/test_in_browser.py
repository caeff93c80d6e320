"""The page, opened in a browser."""

import pytest
from browser import check_page, chromium, resize, sideways

from reproduction.sections import NEW


def test_everything_is_there_and_works(report, sections, tmp_path):
    seen = check_page(report / "index.html", tmp_path)
    panels = [panel for section in sections for panel in section.panels]
    n_drawn = sum(bool(panel.curves) for panel in panels)
    assert seen["sections"] == len(sections)
    assert seen["charts"] == n_drawn
    n_lists = sum(len({row.verdict == NEW for row in section.rows}) for section in sections)
    assert seen["tables"] == 1 + n_drawn + n_lists
    assert seen["rows"] == sum(len(section.rows) for section in sections)
    assert seen["claims"] == sum(len(section.claims) for section in sections)
    assert seen["images"] == sum(len(panel.pictures) for panel in panels)
    assert seen["links"] == 2 + 2 * len(sections)
    assert seen["details"] == n_drawn + sum(bool(section.failures) for section in sections)
    assert seen["points"] > 0


@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_of_a_phone_shows_the_results(report, dark):
    with chromium() as driver:
        resize(driver, 390, 844, dark)
        driver.get((report / "index.html").as_uri())
        bottom = driver.execute_script(
            "return document.querySelector('.findings').getBoundingClientRect().bottom"
        )
        assert 0 < bottom <= 844
        assert sideways(driver) <= 0


@pytest.mark.parametrize(
    ("part", "instead", "notice"),
    [
        ("</main>", '<script>"text that came through"</script></main>', "the console says"),
        ("</main>", '<div style="width: 2000px">too wide</div></main>', "sideways at 1280 px"),
        ('data-filter="holds"', 'data-filter="broken"', "filters are"),
        (
            '<nav aria-label="Tables and figures">',
            '<nav><a href="#nowhere">lost</a>',
            "#nowhere leads nowhere",
        ),
    ],
    ids=["foreign script", "sideways", "filter", "link"],
)
def test_broken_pages_are_noticed(report, tmp_path, monkeypatch, part, instead, notice):
    monkeypatch.delenv("POLYSPAN_SCREENSHOTS", raising=False)
    text = (report / "index.html").read_text(encoding="utf-8")
    assert text.count(part) == 1
    (tmp_path / "index.html").write_text(text.replace(part, instead), encoding="utf-8")
    with pytest.raises(AssertionError, match=notice):
        check_page(tmp_path / "index.html", tmp_path)


@pytest.mark.parametrize("required", [True, False])
def test_without_chromium(monkeypatch, required):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("POLYSPAN_REQUIRE_BROWSER", "1" if required else "")
    outcome = pytest.fail.Exception if required else pytest.skip.Exception
    with pytest.raises(outcome, match="apt-get install chromium"), chromium():
        pass
