"""Settings of Sphinx for the documentation site: `make site` writes it to build/site.

The pages are the Markdown files of the repository, where they are; this folder has what only the site needs.
Nothing is fetched, neither as the site is built nor as it is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

import estero  # noqa: E402 (the sources beside this file, not an older installation)

project = "Estero"
author = "The Estero developers"
copyright = "the Estero developers, Apache-2.0"  # noqa: A001 (Sphinx's own name)
release = version = estero.__version__

extensions = ["sphinx.ext.autodoc", "myst_nb", "references", "grammar"]
root_doc = "docs/site/index"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/*.md",
    "docs/**.md",
    "examples/**.md",
    "tests/README.md",
]
exclude_patterns = [".*", "build", "dist", "kernels", "src"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 60
nb_merge_streams = True

default_role = "py:obj"
nitpicky = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"Estero {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_additional_pages = {"index": "entrance.html"}
html_copy_source = False
html_show_sphinx = False
pygments_style = "sphinx"
pygments_dark_style = "monokai"
