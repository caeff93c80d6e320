"""Formulas as MathML, which browsers draw themselves: no script, no font from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def _mathml(formula: str, display: str) -> str:
    # A norm with an exponent: latex2mathml puts the exponent of \\rVert below the line.
    plain = formula.replace(r"\lVert", r"\|").replace(r"\rVert", r"\|")
    return str(convert(plain, display=display))


def _inline(writer: Any, node: nodes.Node) -> None:
    writer.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Node) -> None:
    writer.body.append(f'<div class="formula">{_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx how formulas become HTML."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
