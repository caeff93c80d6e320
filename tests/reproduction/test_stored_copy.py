"""The result that the site shows, `docs/reproduction`: its files agree with one another."""

import csv
import re
import shlex
from collections import Counter
from pathlib import Path

from reproduction.registry import SCALES, all_experiments
from reproduction.sections import CANNOT_TELL, DOES_NOT_HOLD, HOLDS

STORED = Path(__file__).parents[2] / "docs" / "reproduction"


def lines(name):
    with (STORED / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_site_starts_with_the_sentences_of_the_report():
    sentences = (STORED / "summary.md").read_text(encoding="utf-8")
    assert sentences.count("\n- ") == 4
    assert sentences in (STORED / "report.md").read_text(encoding="utf-8").split("\n## ")[0]
    start = (STORED / "index.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert "```{include} summary.md\n```" in start


def test_the_sentences_count_what_the_csv_holds():
    found = Counter(line["verdict"] for line in lines("claims.csv"))
    first = (STORED / "summary.md").read_text(encoding="utf-8").splitlines()[0]
    numbers = [int(number) for number in re.findall(r"\d+", first)]
    assert numbers == [found.total(), found[HOLDS], found[DOES_NOT_HOLD], found[CANNOT_TELL]]


def test_the_commands_exist():
    ids = {experiment.id for experiment in all_experiments()}
    for line in lines("results.csv"):
        words = shlex.split(line["command"])
        assert words[:3] == ["python", "-m", "reproduction"]
        assert words[3] in ids
        assert words[3] == line["section"]
        assert words[4] == "--scale"
        assert words[5] in SCALES
    assert "polyspan reproduce" not in (STORED / "report.md").read_text(encoding="utf-8")
