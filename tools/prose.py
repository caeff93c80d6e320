"""Count the words and the sentence lengths of pages: `python tools/prose.py docs/guide/*.md`.

Pages for users have at most 1 200 words, code and tables included, and sentences of fewer than 18
words on average. Code, tables, headings and directives count as words, not as sentences.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

MOST_WORDS = 1200
MEAN_SENTENCE = 18.0

_BLOCKS = re.compile(r"^(```|~~~)[^\n]*\n.*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
# A full stop that ends a sentence: the next one starts with a capital, a digit or markup.
_END = re.compile(r"(?<=[.!?])[)\"*_`]*\s+(?=[A-Z0-9`*_\[(\"“λσκρτ])")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|cf|Fig|Sec|Eq|Alg|vs|etc)\.")


class Prose(NamedTuple):
    """What was counted on one page."""

    words: int
    sentences: list[str]

    @property
    def mean_sentence(self) -> float:
        """Words per sentence, on average."""
        lengths = [len(sentence.split()) for sentence in self.sentences]
        return sum(lengths) / max(len(lengths), 1)


def read_prose(path: Path) -> Prose:
    """Count one page: Markdown, or an example whose text stands in comments."""
    text = path.read_text(encoding="utf-8")
    words = len(text.split())
    if path.suffix == ".py":
        text = _text_of_example(text)
    return Prose(words, sentences_of(text))


def sentences_of(text: str) -> list[str]:
    """Split Markdown into sentences; an item of a list is at least one."""
    text = _BLOCKS.sub("\n", _FRONT.sub("", text))
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)  # pictures
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)  # links: their words stay
    paragraphs: list[str] = [""]
    for line in text.splitlines():
        bare = line.strip()
        starts_item = re.match(r"([-*+]|\d+\.)\s", bare) is not None
        ends = not bare or bare.startswith(("#", "|", ":", "=", "    ")) or line.startswith("    ")
        if ends or starts_item:
            paragraphs.append("")
        if not ends:
            paragraphs[-1] += " " + re.sub(r"^([-*+]|\d+\.)\s", "", bare)
    found = []
    for paragraph in paragraphs:
        plain = _ABBREVIATIONS.sub(lambda part: part[1] + "·", paragraph)
        found += [part.strip() for part in _END.split(plain) if re.search(r"[A-Za-z]", part)]
    return found


def _text_of_example(source: str) -> str:
    docstring = ast.get_docstring(ast.parse(source)) or ""
    docstring = re.sub(r"^.*\n=+\n", "", docstring)
    cells = re.findall(r"^# %%[^\n]*\n((?:#[^\n]*\n)*)", source, re.MULTILINE)
    told = ["\n".join(line[1:].strip() for line in cell.splitlines()) for cell in cells]
    return "\n\n".join([docstring, *told])


def main(paths: list[Path]) -> int:
    """Print a line for each page, and the longest sentences of pages that are over a limit."""
    over = 0
    for path in paths:
        prose = read_prose(path)
        bad = prose.words > MOST_WORDS or prose.mean_sentence >= MEAN_SENTENCE
        over += bad
        print(
            f"{'OVER ' if bad else ''}{path}: {prose.words} words, {prose.mean_sentence:.1f} each"
        )
        if bad:
            for sentence in sorted(prose.sentences, key=lambda one: -len(one.split()))[:5]:
                print("    ", len(sentence.split()), sentence)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
