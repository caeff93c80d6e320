"""The built site as readers see it, in headless Chromium: desktop and phone, light and dark."""

import functools
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import assert_silent, chromium, resize
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(__file__).parents[2] / "build" / "site-quick"
DESKTOP, PHONE = 1280, 390
#: The first page, and one of each kind.
PAGES = [
    "index.html",
    "tutorials/plot_1_union_of_subspaces.html",
    "guide/index.html",
    "guide/choose.html",
    "guide/cluster.html",
    "guide/cli-tables.html",
    "gallery/index.html",
    "gallery/plot_planes.html",
    "how/micusal.html",
    "how/glossary.html",
    "api/index.html",
    "api/generated/polyspan.MiCUSaL.html",
    "reproduction/index.html",
    "evidence/tables.html",
    "project/faq.html",
    "project/changelog.html",
]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    if not (SITE / "index.html").exists():
        message = "no site here: make docs-quick"
        if os.environ.get("POLYSPAN_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    handler = functools.partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def driver():
    with chromium() as started:
        yield started


def width_of(driver):
    return driver.execute_script("return document.documentElement.scrollWidth")


#: What reaches beyond the screen and is in nothing that scrolls by itself: a reader cannot see it.
CUT_OFF = """
const scrolls = e => e && e.tagName != 'ARTICLE'
    && (['auto', 'scroll'].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
return [...document.querySelectorAll('article *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement))
    .map(e => e.outerHTML.slice(0, 80));
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_the_screen_and_the_console_is_silent(driver, address, page, width, dark):
    resize(driver, width, dark=dark)
    driver.get(f"{address}/{page}")
    assert driver.find_element(By.TAG_NAME, "h1").text
    theme = driver.execute_script("return document.documentElement.dataset.theme")
    assert theme == ("dark" if dark else "light")
    assert width_of(driver) <= width
    assert driver.execute_script(CUT_OFF) == []
    assert_silent(driver)


def found_by(driver, address, words):
    driver.get(f"{address}/search.html?q={words}")
    wait = WebDriverWait(driver, 30)
    wait.until(lambda d: d.find_elements(By.CSS_SELECTOR, "#search-results ul.search li a"))
    wait.until(lambda d: "found" in d.find_element(By.CSS_SELECTOR, "#search-results p").text)
    links = driver.find_elements(By.CSS_SELECTOR, "#search-results ul.search li > a")
    return [link.get_attribute("href").removeprefix(address + "/") for link in links]


def test_a_search_for_missing_finds_the_right_pages(driver, address):
    resize(driver, DESKTOP)
    found = [link.split("#")[0].split("?")[0] for link in found_by(driver, address, "missing")]
    assert "guide/missing.html" in found[:5]
    assert {"guide/impute.html", "how/missing.html", "evidence/missing.html"} <= set(found)
    assert_silent(driver)


def test_the_decision_map_leads_to_guides(driver, address):
    resize(driver, PHONE)
    driver.get(f"{address}/guide/choose.html")
    links = driver.execute_script(
        "return [...document.querySelectorAll('svg a')].map(a => a.getAttribute('href'))"
    )
    assert len(links) >= 8
    guides = {path.name for path in (SITE / "guide").glob("*.html")}
    assert {link.split("#")[0] for link in links} <= guides


def test_the_first_screen_of_the_reproduction_shows_a_result_on_a_phone(driver, address):
    resize(driver, PHONE, 844)
    driver.get(f"{address}/reproduction/index.html")
    words = driver.execute_script(
        "return [...document.querySelectorAll('article p, article li')]"
        ".filter(e => e.getBoundingClientRect().bottom <= 844).map(e => e.innerText).join(' ')"
    )
    assert "claims" in words
    assert any(word.isdigit() for word in words.split())


def test_no_page_is_cut_off_on_a_phone(driver, address):
    resize(driver, PHONE)
    pages = [path.relative_to(SITE) for path in sorted(SITE.rglob("*.html"))]
    pages = [page for page in pages if page.parts[0] not in {"_static", "_downloads"}]
    assert len(pages) > 150
    cut_off = {}
    for page in pages:
        driver.get(f"{address}/{page.as_posix()}")
        if width_of(driver) > PHONE or driver.execute_script(CUT_OFF):
            cut_off[page.as_posix()] = driver.execute_script(CUT_OFF)
    assert cut_off == {}
