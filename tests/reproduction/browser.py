"""A page in headless Chromium: what a reader would click, and pictures of what they would see.

`check_page` is for any page that `reproduction.page` writes.
"""

import base64
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By

DESKTOP, PHONE = 1280, 375
HOW_TO_GET_IT = (
    "no Chromium with its driver found: on Debian, apt-get install chromium chromium-driver"
)


def _installed(*names):
    return next((path for path in map(shutil.which, names) if path), None)


@contextmanager
def chromium():
    """Start headless Chromium; without one, skip the test, or fail it where one is required."""
    binary = _installed("chromium", "chromium-browser", "google-chrome")
    driver_path = _installed("chromedriver")
    if not (binary and driver_path):
        if os.environ.get("POLYSPAN_REQUIRE_BROWSER"):
            pytest.fail(HOW_TO_GET_IT)
        pytest.skip(HOW_TO_GET_IT)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    # No sandbox: containers run as root, and the only page opened is our own file.
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    try:
        yield driver
    finally:
        driver.quit()


def resize(driver, width, height=900, dark=False):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    # Motion off: a click is then done when it returns.
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})


def screenshot(driver, path):
    """Save a picture of the whole page."""
    driver.execute_script("window.scrollTo(0, 0)")
    settings = {"captureBeyondViewport": True, "format": "png"}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", settings)
    Path(path).write_bytes(base64.b64decode(shot["data"]))


def complaints(driver):
    """Return what the console says so far: errors and warnings of any source."""
    return [e["message"] for e in driver.get_log("browser") if e["level"] in {"SEVERE", "WARNING"}]


def assert_silent(driver):
    """Fail where the console has said something since the last call."""
    said = complaints(driver)
    assert not said, f"the console says {said}"


def addresses(driver):
    """Return what the page has asked for since the last call."""
    messages = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def click(driver, element):
    """Click on an element, in the middle of the screen.

    Selenium brings it to the edge, where the bar that stays on top covers it on a phone.
    """
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})",
        element,
    )
    element.click()


def click_links(driver):
    """Click every link of the navigation and of the summary; each must bring its target up."""
    links = driver.find_elements(By.CSS_SELECTOR, "nav a, table.summary a")
    assert links
    for link in links:
        click(driver, link)
        name = link.get_attribute("href").rpartition("#")[2]
        top = driver.execute_script(
            "return document.getElementById(arguments[0])?.getBoundingClientRect().top", name
        )
        assert top is not None, f"#{name} leads nowhere"
        at_the_end = driver.execute_script(
            "return innerHeight + scrollY >= document.documentElement.scrollHeight - 2"
        )
        assert driver.current_url.endswith(f"#{name}")
        assert -1 <= top <= 160 or (at_the_end and 0 <= top < 900), f"#{name} is at {top}"
    return len(links)


def click_filters(driver):
    """Click every filter; exactly the rows and claims of that kind must be seen."""
    buttons = driver.find_elements(By.CSS_SELECTOR, "button[data-filter]")
    kinds = [button.get_attribute("data-filter") for button in buttons]
    assert {"all", "differs", "holds"} <= set(kinds), f"filters are {kinds}"
    for button, kind in [*zip(buttons, kinds, strict=True), (buttons[kinds.index("all")], "all")]:
        click(driver, button)
        assert button.get_attribute("aria-pressed") == "true"
        items = driver.execute_script(
            "return Array.from(document.querySelectorAll('[data-kind]'), item =>"
            " [item.dataset.kind, item.getClientRects().length > 0, item.textContent])"
        )
        assert items
        for own, seen, text in items:
            assert seen == (kind in {"all", own}), f"filter {kind}: {text}"
    return len(buttons)


def click_details(driver):
    """Open everything that folds; what is inside must appear. Leave it folded again."""
    found = driver.find_elements(By.TAG_NAME, "details")
    for details in found:
        summary = details.find_element(By.TAG_NAME, "summary")
        inside = details.find_element(By.CSS_SELECTOR, "summary ~ *")
        for shown in (True, False):
            click(driver, summary)
            assert inside.is_displayed() == shown, f"{summary.text} does not fold"
    return len(found)


def hover_points(driver, at_most=12):
    """Point at points of the curves; the label that appears must say a number."""
    found = driver.find_elements(By.CSS_SELECTOR, ".pt")
    tip = driver.find_element(By.ID, "page-tip")
    for point in found[:: max(1, len(found) // at_most)]:
        # Scrolling hides the label, and is told of one frame later: wait for it before pointing.
        x, y = driver.execute_async_script(
            "const [point, done] = arguments;"
            "const middle = () => { const box = point.getBoundingClientRect();"
            "  return [box.left + box.width / 2, box.top + box.height / 2]; };"
            "scrollBy({top: middle()[1] - innerHeight / 2, behavior: 'instant'});"
            "requestAnimationFrame(() => requestAnimationFrame(() => done(middle())))",
            point,
        )
        # By place, since pointing at an element scrolls once more.
        pointer = ActionBuilder(driver, duration=0)
        # From elsewhere: two points may come to lie at one place of the screen, and a pointer that
        # does not move tells nobody.
        pointer.pointer_action.move_to_location(1, 1)
        pointer.pointer_action.move_to_location(round(x), round(y))
        pointer.perform()
        assert tip.is_displayed(), "a point shows no number"
        assert any(letter.isdigit() for letter in tip.text), tip.text
    return len(found)


def sideways(driver):
    """Return by how many pixels the page is wider than the screen."""
    return driver.execute_script(
        "const e = document.documentElement;"
        "return Math.max(e.scrollWidth, document.body.scrollWidth) - e.clientWidth"
    )


def check_page(page, screenshots):
    """Open a page from its file, use it at both widths, and save how it looks.

    Returns the numbers of tables, drawings, images, links, filters, foldings and points, for the
    caller to compare with what should be there.
    """
    screenshots = Path(os.environ.get("POLYSPAN_SCREENSHOTS", screenshots))
    screenshots.mkdir(parents=True, exist_ok=True)
    with chromium() as driver:
        seen = {}
        for width in (DESKTOP, PHONE):
            resize(driver, width)
            driver.get(Path(page).resolve().as_uri())
            n_links = click_links(driver)
            assert_silent(driver)  # before the rest, which takes longest
            seen = {
                "links": n_links,
                "filters": click_filters(driver),
                "details": click_details(driver),
                "points": hover_points(driver),
            }
            assert sideways(driver) <= 0, f"the page scrolls sideways at {width} px"
            for dark in (False, True):
                resize(driver, width, dark=dark)
                name = f"{Path(page).parent.name}-{width}-{'dark' if dark else 'light'}.png"
                screenshot(driver, screenshots / name)
        counted = {
            "tables": "table",
            "charts": "svg.chart",
            "images": "img",
            "rows": "table.results tbody tr",
            "claims": ".claims li",
            "sections": "section[data-section]",
        }
        for name, selector in counted.items():
            seen[name] = len(driver.find_elements(By.CSS_SELECTOR, selector))
        broken = driver.execute_script(
            "return Array.from(document.images).filter(i => !i.naturalWidth).length"
        )
        assert broken == 0, f"{broken} images do not show"
        assert_silent(driver)
        elsewhere = [a for a in addresses(driver) if not a.startswith(("file:", "data:"))]
        assert not elsewhere, f"the page asked for {elsewhere}"
        pdf = base64.b64decode(driver.print_page())
        assert pdf.startswith(b"%PDF")
        (screenshots / f"{Path(page).parent.name}-print.pdf").write_bytes(pdf)
    return seen
