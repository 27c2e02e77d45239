"""What a name in single backticks of a docstring leads to, and which of them must lead somewhere.

`Query.run` and `estero.scan` must be there, as seen from any module of the package; a name without a dot may
be a parameter or a column as well, and what other packages have is theirs.
"""

from __future__ import annotations

import sys
from typing import Final, cast

from docutils import nodes
from pygments.lexers.sql import SqlLexer
from pygments.token import Punctuation
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

OTHERS: Final = frozenset(sys.stdlib_module_names) | {"duckdb", "pandas", "polars", "pyarrow", "pyspark"}
"""Packages whose pages are elsewhere."""


class Ceql(SqlLexer):
    """CEQL in blocks of SQL: the same words, and signs of its own."""

    tokens = {**SqlLexer.tokens, "root": [(r"[\[\]{}~$]", Punctuation), *SqlLexer.tokens["root"]]}  # noqa: RUF012


def resolved(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Where a name that Sphinx does not know leads: to ``estero.`` and it; None where Sphinx has to warn."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py":
        return None
    python = cast("PythonDomain", env.get_domain("py"))
    wanted = target.removeprefix("estero.")
    for name in (f"estero.{wanted}", *(full for full in python.objects if full.endswith(f".{wanted}"))):
        if "." in target and name in python.objects:
            entry = python.objects[name]
            return make_refnode(app.builder, str(node["refdoc"]), entry.docname, entry.node_id, content, name)
    must = node.get("reftype") == "obj" and "." in target and target.split(".", maxsplit=1)[0] not in OTHERS
    return None if must else content


def setup(app: Sphinx) -> ExtensionMetadata:
    """Asks for names that Sphinx itself does not know."""
    app.connect("missing-reference", resolved)
    app.add_lexer("sql", Ceql)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
