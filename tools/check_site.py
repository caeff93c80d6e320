"""Check a built site: `python tools/check_site.py build/site`.

Every link and every anchor inside the site must lead somewhere, and no page may load anything from
elsewhere. Sphinx itself checks links between its pages, but not those in HTML that pages bring.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that make a browser load something at once.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
#: Links to the page itself, for search engines and for editors; they load nothing.
NAMED = {"canonical", "search", "index", "next", "prev", "edit"}


class Page(HTMLParser):
    """What one page links to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[tuple[str, bool]] = []
        self.anchors = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect anchors, links, and what is loaded."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "link" and values.get("rel") in NAMED:
            return
        for name in ("href", "src"):
            if name in values:
                self.links.append((values[name], (tag, name) in LOADED))


def check(site: Path) -> list[str]:
    """Return one line for each link that leads nowhere, or loads something from elsewhere."""
    # The theme's own files hold templates, which are no pages.
    found_pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in found_pages}
    found = [] if pages else [f"{site}: no page"]
    for path, page in pages.items():
        for link, loaded in page.links:
            problem = _problem(path, link, loaded, pages)
            if problem:
                found.append(f"{path.relative_to(site.resolve())}: {link}: {problem}")
    return found


def _problem(path: Path, link: str, loaded: bool, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return "loaded from elsewhere" if loaded else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return "no such file"
    anchor = unquote(parts.fragment)
    return "no such anchor" if target in pages and anchor not in pages[target].anchors else ""


def main(site: Path) -> int:
    """Print what is wrong, and how much was checked."""
    found = check(site)
    print(*sorted(set(found)), sep="\n", end="\n" if found else "")
    print(
        f"{site}: {len(found)} links lead nowhere" if found else f"{site}: all links lead somewhere"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
