"""The configuration of Sphinx for tools/docs.sh."""

from __future__ import annotations

import inspect
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from docutils import nodes

import dmlops
from dmlops import _activations, _operators

sys.path.insert(0, str(Path(__file__).parent))  # for the extensions and the figures

import figures
from extensions import formulas, support

project = "dmlops"
author = "the dmlops contributors"
project_copyright = author
version = release = dmlops.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
    "extensions.mathml",
    "extensions.speed",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

# The operators' pages are written by autosummary, from the docstrings and the templates.
autosummary_generate = True
autosummary_imported_members = True
autosummary_filename_map = {f"dmlops.{name}": name for name in dmlops.__all__}
autosummary_context = {
    "operators": {*_operators.__all__, *_activations.__all__},
    "formula": formulas.formula,
    "data_types": support.data_types,
    "descriptors": support.descriptors,
    "levels": support.levels,
    "enumerations": support.enumerations(),
}
suppress_warnings = ["config.cache"]  # the functions above need not be pickled
autodoc_typehints = "none"
numpydoc_show_class_members = False
# Every rule but extended summaries and "see also" where there is nothing to say. Enumerations have
# the parameters of Python's own class; the errors say all in a line.
numpydoc_validation_checks = {"all", "ES01", "SA01"}
numpydoc_validation_exclude = {
    rf"\.{name}$"
    for name in dmlops.__all__
    if inspect.isclass(getattr(dmlops, name))
    and issubclass(getattr(dmlops, name), (Enum, Exception))
}

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = ["svg"]
plot_rcparams = figures.STYLE
plot_apply_rcparams = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"dmlops {release}"
html_static_path = ["_static"]
html_css_files = ["dmlops.css"]
html_copy_source = False
html_show_sphinx = False


def strip_code(_: Any, tree: nodes.document) -> None:
    """Remove the empty last line of examples, which ends the output for doctest.

    Sphinx highlights blocks whose raw source equals the text.
    """
    for block in tree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block.children = [nodes.Text(block.rawsource)]


def setup(app: Any) -> None:
    """Register the transformation."""
    app.connect("doctree-read", strip_code)
