"""Tables of the parsers in the wheel: computing them takes 0.2 s of CPU, reading them 0.04 s.

They are JSON, so that no file can run code. Tables of another grammar or another Lark are not
read but computed in memory.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from estero.language.syntax.cases import CaseWords

_HERE: Final = Path(__file__).parent
_NOT_KEPT: Final[dict[str, Any]] = {"postlex": None, "import_paths": [], "source_path": None}
"""Options of Lark that JSON cannot hold; the last two say where a grammar is from, which parsing does not
need.
"""

GRAMMARS: Final[dict[str, tuple[str, ...]]] = {
    "ceql": ("query", "pattern", "condition"),
    "conjunctive": ("conjunctive_query",),
    "row_pattern": ("row_pattern",),
    "eql": ("query",),
}
"""The start rules of each grammar."""


def lark_of(grammar: str) -> Lark:
    """The parser of a grammar, read from its file, or computed if that is of another version."""
    tables = _tables(grammar)
    if tables is None:
        return _made(grammar)
    tables["data"]["options"].update(_NOT_KEPT, postlex=_postlex(grammar))
    return Lark.load(tables)


def is_current(grammar: str) -> bool:
    """Whether the file has tables of this version."""
    return _tables(grammar) is not None


def _tables(grammar: str) -> dict[str, Any] | None:
    """The tables in the file of a grammar; None if there are none of this version."""
    try:
        tables: dict[str, Any] = json.loads(tables_file(grammar).read_bytes(), object_hook=_numbered)
    except (FileNotFoundError, NotADirectoryError):  # the latter inside a zip
        return None
    return tables if tables["version"] == _version(grammar) else None


def write_tables(grammar: str) -> None:
    """Writes the file of a grammar, which is part of the wheel."""
    data, memo = _made(grammar).memo_serialize([TerminalDef, Rule])
    for name in _NOT_KEPT:
        del data["options"][name]
    tables = {"version": _version(grammar), "data": data, "memo": memo}
    tables_file(grammar).write_text(json.dumps(tables, separators=(",", ":")) + "\n", "utf-8")


def tables_file(grammar: str) -> Path:
    """The file of a grammar."""
    return _HERE / f"{grammar}.json"


def _made(grammar: str) -> Lark:
    return Lark.open_from_package(
        __package__,
        f"{grammar}.lark",
        parser="lalr",
        lexer="basic",
        start=list(GRAMMARS[grammar]),
        propagate_positions=True,
        postlex=_postlex(grammar),
    )


def _postlex(grammar: str) -> CaseWords | None:
    """The step between lexer and parser; EQL has no words that are keywords in context only."""
    return None if grammar == "eql" else CaseWords()


def _version(grammar: str) -> str:
    """The version of Lark, and a digest of all grammars: they import one another."""
    files = sorted(_HERE.glob("*.lark"))
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    return f"{grammar} {lark.__version__} {digest}"


def _numbered(entries: dict[str, Any]) -> dict[str | int, Any]:
    """The entries of a table by numbers of states, which JSON has as strings."""
    return {int(name) if name.isdecimal() else name: entry for name, entry in entries.items()}
