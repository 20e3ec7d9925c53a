"""How Sphinx builds the documentation: tools/docs.sh runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import dmlops

sys.path.insert(0, str(Path(__file__).parent))  # for extensions.* and for the figures

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
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]

# The operators' pages are written by autosummary, from the docstrings and the templates.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = ["svg"]
plot_rcparams = {"svg.fonttype": "none"}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"dmlops {release}"
html_static_path = ["_static"]
html_css_files = ["dmlops.css"]
html_copy_source = False
html_show_sphinx = False
