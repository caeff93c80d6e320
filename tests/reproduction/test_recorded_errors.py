"""HTML in the error of a trial, on its whole way: raised, recorded, read again, on the page."""

from dataclasses import replace

import pytest
from test_page import Page

from reproduction.experiments.source import Source
from reproduction.page import About, report_files
from reproduction.registry import find
from reproduction.run.runner import run_experiments, stored_records
from reproduction.sections import Section

HOSTILE = [
    '</pre></details><script>throw new Error("ran")</script>',
    "<img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "{{ 7 * 7 }} {% raw %} {# x #} ${7*7}",
    "a\n\n<iframe srcdoc='<script>x</script>'></iframe>\n\n# heading\n\n[x](javascript:alert(1))",
    "<!-- ]]> --> &lt;script&gt; \x00\x1b[31m\u202e",
]


def fails(message):
    def run(params, source):
        raise ValueError(message)

    return run


@pytest.mark.parametrize("message", HOSTILE)
def test_the_error_of_a_trial_stays_text(message, tmp_path):
    (experiment,) = find(["fig3"])
    experiment = replace(experiment, run=fails(message))
    run_experiments([experiment], "smoke", tmp_path, jobs=1, source=Source())
    records = stored_records([experiment], "smoke", tmp_path)["fig3"]
    assert records
    assert all(record.error.startswith("ValueError: ") for record in records)
    section = experiment.summarise(records, Source())
    assert section.failures
    made = report_files([section], about=About(scale="smoke"))
    page = Page(made["index.html"].decode())  # refuses attributes that begin with "on"
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 1
    assert not {"img", "iframe", "svg"} & {
        tag for tag, attributes in page.tags if not attributes.get("class")
    }
    assert tags.count("pre") == len(section.failures)
    markdown = made["report.md"].decode()
    for word in ("<script", "<img", "<iframe", "<svg", "\n# heading", "[x](javascript"):
        assert word not in markdown
    assert not any(b"\0" in content for content in made.values())


def test_code_in_the_markdown_stays_on_its_line():
    evil = "a\n\n<script>x</script>\n\n# b"
    about = About(scale=evil, command=evil, commit=evil)
    made = report_files([Section("fig3", "", "", "")], about=about)
    lines = made["report.md"].decode().splitlines()
    found = [line for line in lines if "<script" in line]
    assert found
    for line in found:
        assert line[: line.index("<script")].count("`") % 2 == 1  # within a span of code
    assert "# b" not in lines
