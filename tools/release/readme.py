"""The README: what its first lines of Python promise, and what becomes of it as a page."""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)


def first_snippet(readme: str) -> str:
    """Return the first block of Python of a page, or nothing."""
    found = re.search(r"^```python\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def promise_problems(snippet: str, printed: str) -> list[str]:
    """Return what a snippet promises in the comments behind its prints, and does not print.

    Parameters
    ----------
    snippet : str
        Python, with lines such as `print(...)  # 3`.
    printed : str
        What it printed. Each line ends as its comment says.
    """
    promised = re.findall(r"^print\(.*\)  # (.*)$", snippet, flags=re.MULTILINE)
    lines = printed.splitlines()
    if not promised:
        return ["the first snippet of the README promises nothing"]
    if len(lines) != len(promised):
        return [f"{len(promised)} lines are promised, {len(lines)} were printed"]
    # The whole value, not its end alone: 13 is not 3.
    return [
        f"{want!r} is promised, {line!r} was printed"
        for want, line in zip(promised, lines, strict=True)
        if line.rpartition(": ")[2] != want
    ]


def page_problems(readme: str, html: str, tree: Path) -> list[str]:
    """Return what is lost when the README becomes a page.

    Parameters
    ----------
    readme : str
        The README, in Markdown.
    html : str
        The same as a page.
    tree : Path
        The source tree, where its links must lead somewhere.
    """
    prose = FENCE.sub("", readme)
    found = [
        f"heading {title!r} is lost"
        for title in re.findall(r"^##? (.+)$", prose, flags=re.MULTILINE)
        if not re.search(rf"<h[12]>{re.escape(title)}</h[12]>", html)
    ]
    if prose.count("\n|---") != html.count("<table>"):
        found.append("a table is lost")
    if first_snippet(readme) and '<code class="language-python">' not in html:
        found.append("the Python blocks are lost")
    missing = [link for link in relative_links(readme) if not (tree / link).exists()]
    return found + [f"the link {link} leads nowhere" for link in missing]


def without_links(readme: str) -> str:
    """Return a README without the targets of its links, which the build makes absolute."""
    return re.sub(r"\]\([^)]*\)", "]()", readme).strip()


def relative_links(readme: str) -> list[str]:
    """Return the links and pictures of a page that lead to files beside it."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", FENCE.sub("", readme))
    return [link for link in links if "://" not in link and not link.startswith("mailto:")]
