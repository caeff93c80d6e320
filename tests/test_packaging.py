"""The recipe for conda-forge says what pyproject.toml says."""

import re
import runpy
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
RECIPE = yaml.safe_load(TEXT)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGE = PROJECT["project"]
FLOORS = runpy.run_path(str(ROOT / "tools" / "floor_constraints.py"))["floors"](
    ROOT / "pyproject.toml"
)
#: Packages that have another name there, as those with all their own extras are larger.
RENAMED = {"dask": "dask-core", "matplotlib": "matplotlib-base"}
#: Extras of people who work on polyspan.
OURS = {"dev", "docs", "peers", "release", "reproduction"}


def spec(requirement):
    """Return a requirement of pyproject.toml as conda writes it."""
    name = re.match(r"[\w.-]+", requirement)[0]
    return f"{RENAMED.get(name, name)} >={FLOORS[name]}"


def test_version_and_licences():
    assert RECIPE["context"]["version"] == PACKAGE["version"]
    assert RECIPE["package"] == {"name": PACKAGE["name"], "version": "${{ version }}"}
    assert RECIPE["about"]["license"] == PACKAGE["license"]
    assert RECIPE["about"]["license_file"] == PACKAGE["license-files"]
    assert RECIPE["about"]["summary"] == PACKAGE["description"]
    assert RECIPE["about"]["repository"] == PACKAGE["urls"]["Source"]
    assert RECIPE["source"]["url"].startswith(PACKAGE["urls"]["Source"] + "/releases/")


def test_what_it_needs():
    needs = RECIPE["requirements"]
    assert f">={RECIPE['context']['python_min']}" == PACKAGE["requires-python"]
    python, *others = needs["run"]
    assert python == "python >=${{ python_min }}"
    assert others == [spec(line) for line in PACKAGE["dependencies"]]
    backends = [line.replace(">=", " >=") for line in PROJECT["build-system"]["requires"]]
    assert needs["host"] == ["python ${{ python_min }}.*", "pip", *backends]


def test_extras_are_constraints():
    extras = PACKAGE["optional-dependencies"]
    lines = {spec(line) for name in set(extras) - OURS for line in extras[name]}
    assert RECIPE["requirements"]["run_constraints"] == sorted(lines)


def test_it_is_for_all_systems_and_has_the_command():
    build = RECIPE["build"]
    assert build["noarch"] == "python"
    commands = [f"{name} = {target}" for name, target in PACKAGE["scripts"].items()]
    assert build["python"]["entry_points"] == commands
    assert "if:" not in TEXT, "a package for all systems has no conditions"


def test_it_runs_the_ten_lines_of_the_readme():
    python, script = RECIPE["tests"]
    assert python["python"]["pip_check"] is True
    assert "polyspan" in python["python"]["imports"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"```python\n(.*?)```", readme, flags=re.DOTALL)[1]
    content = script["script"]["content"]
    assert content.startswith(lines)
    checks = content.removeprefix(lines)
    assert len(re.findall(r"^assert ", checks, flags=re.MULTILINE)) == 2


def test_what_people_fill_in_is_marked():
    assert set(RECIPE["source"]["sha256"]) == {"0"}
    assert RECIPE["extra"]["recipe-maintainers"] == ["FILL-IN"]
    assert TEXT.count("# To fill at the") == 2
