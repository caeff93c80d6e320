"""Where the tests find real data, and which examples in docstrings need them."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parent.parent / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("POLYSPAN_DATA", str(BESIDE))

# scikit-learn has callbacks since 1.9, and before that their example does not run.
collect_ignore = [] if find_spec("sklearn.callback") else ["src/polyspan/callbacks.py"]


def find_or_skip(*names):
    """Skip a test whose data files are on no folder here; nothing is ever downloaded."""
    # Imported late: tests/conftest.py has to set a variable before SciPy is imported.
    from polyspan.datasets.files import find_file
    from polyspan.datasets.scenes import SCENES
    from polyspan.datasets.usps import USPS
    from polyspan.datasets.yale import YALE_B

    files = {"usps": USPS, "yale": YALE_B, **SCENES}
    for name in names:
        try:
            find_file(files[name], download=False)
        except FileNotFoundError as error:
            pytest.skip(str(error))


@pytest.fixture
def needs_data():
    """Return a function that skips the test where one of the named data files is missing."""
    return find_or_skip


EXAMPLES = {
    "polyspan.datasets.usps.load_usps": "usps",
    "polyspan.datasets.yale.load_extended_yale_b": "yale",
    "polyspan.datasets.scenes.load_city_scene": "city_hall",
}


def pytest_runtest_setup(item):
    """Skip the examples of loaders where their data are missing."""
    if isinstance(item, pytest.DoctestItem) and item.name in EXAMPLES:
        find_or_skip(EXAMPLES[item.name])
