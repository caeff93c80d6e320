"""A plugin of pytest for `mutants.py`: write how long every test took."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

TIMES: dict[str, float] = {}


def pytest_runtest_logreport(report: Any) -> None:
    """Note the seconds of one phase of one test."""
    TIMES[report.nodeid] = TIMES.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    """Write them all."""
    Path(os.environ["TIMES"]).write_text(json.dumps(TIMES), encoding="utf-8")
