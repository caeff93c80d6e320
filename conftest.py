"""Where the tests find real data, and which tests another run has skipped."""

import functools
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


def pytest_addoption(parser):
    """Let one run list the tests that it skips, and another run those alone."""
    group = parser.getgroup("polyspan")
    group.addoption("--list-skipped", metavar="FILE", help="write the names of skipped tests")
    group.addoption("--only-listed", metavar="FILE", help="run the tests of such a file alone")


class ListOfSkipped:
    """Write the names of all tests that a run has skipped, at its end."""

    def __init__(self, path):
        self.path = Path(path)
        self.skipped = set()

    def pytest_runtest_logreport(self, report):
        """Note a skipped test; pytest calls one that fails as expected skipped too."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.add(report.nodeid)

    def pytest_sessionfinish(self):
        """Write the file."""
        self.path.write_text("".join(f"{name}\n" for name in sorted(self.skipped)), "utf-8")


def pytest_configure(config):
    """Listen to the reports of all workers, where a list is asked for."""
    path = config.getoption("--list-skipped")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ListOfSkipped(path))


@functools.cache
def listed_tests(path):
    """Return the names of tests in a file, and those of their files."""
    tests = frozenset(Path(path).read_text("utf-8").splitlines())
    return tests, {name.partition("::")[0] for name in tests}


def pytest_ignore_collect(collection_path, config):
    """Do not even import files of which no test is in the list, where there is one."""
    path = config.getoption("--only-listed")
    if not path or not collection_path.is_file():
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    return None if name in listed_tests(path)[1] else True


def pytest_collection_modifyitems(config, items):
    """Keep the tests of a list alone, where there is one."""
    path = config.getoption("--only-listed")
    if not path:
        return
    listed, _ = listed_tests(path)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in listed])
    items[:] = [item for item in items if item.nodeid in listed]
