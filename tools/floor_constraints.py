"""Print the lowest version that pyproject.toml allows of every run-time dependency.

The output is a constraints file for pip. `make test-floor` installs with it, so that the declared
versions are the tested ones.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<floor>[\w.]+)")
# Users do not need the test tools and the packages of the benchmark: any version is fine.
NOT_RUN_TIME = ("dev", "peers", "release")
# Users install these packages themselves. They are listed with the test tools, but have a floor.
BROUGHT_BY_USERS = ("polars",)


def floors(project: Path) -> dict[str, str]:
    """Return the lowest version of every dependency, by its name.

    Parameters
    ----------
    project : Path
        A pyproject.toml file.
    """
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = table["optional-dependencies"]
    wanted = list(table["dependencies"])
    for name, requirements in extras.items():
        if name not in NOT_RUN_TIME:
            wanted += requirements
    wanted += [line for line in extras["dev"] if line.startswith(BROUGHT_BY_USERS)]
    found: dict[str, str] = {}
    for requirement in wanted:
        if requirement.startswith(f"{table.get('name')}["):  # other extras of the project itself
            continue
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no floor: write it as name>=version")
        name, floor = match["name"], match["floor"]
        if found.setdefault(name, floor) != floor:
            raise ValueError(
                f"{name} has the floors {found[name]} and {floor}: write the same one in all extras"
            )
    return found


if __name__ == "__main__":
    for name, floor in floors(Path(__file__).parents[1] / "pyproject.toml").items():
        print(f"{name}=={floor}")
