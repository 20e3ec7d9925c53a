"""Formulas as MathML, which browsers draw by themselves: no script and nothing fetched."""

from __future__ import annotations

import re
import unicodedata

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

# A name in \mathit, for which docutils writes one italic character per letter.
NAME = re.compile(r"<mrow>((?:\s*<m[io]>[\U0001d44e-\U0001d467\u210e_]</m[io]>){2,})\s*</mrow>")


def mathml(formula: str, as_block: bool = False) -> str:
    """Return LaTeX as MathML, with a name of several letters as one italic identifier."""
    return NAME.sub(_identifier, tex2mathml(formula, as_block=as_block))


def _identifier(match: re.Match[str]) -> str:
    letters = re.sub(r"</?m[io]>|\s", "", match[1])
    return f'<mi class="argument">{unicodedata.normalize("NFKC", letters)}</mi>'


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    formula = mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Make MathML the default of the HTML builder."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
