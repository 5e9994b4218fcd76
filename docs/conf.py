"""Sphinx's settings for the site that `make docs` builds."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent / "python")]
os.environ.pop("DMLC_ROLE", None)  # in whose presence an import of a front end serves a job

project = "HiPress"
author = "the HiPress authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated", "links"]
exclude_patterns = ["_extensions"]
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "HiPress"
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "article_header_end": [],
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": True,
}

myst_heading_anchors = 4
myst_links_external_new_tab = False
# Source files are named in the text, not linked: the site has no copy of them.
smartquotes = False  # options of commands begin with two hyphens
suppress_warnings = ["misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_mock_imports = ["tensorflow", "keras"]  # slow to load, and not everywhere
autodoc_default_options = {"members": True, "inherited-members": False}
python_maximum_signature_line_length = 88
default_role = "code"  # docstrings set names in single backticks, as Markdown does
napoleon_numpy_docstring = False
