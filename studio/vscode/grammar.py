"""Writes the TextMate grammar of CEQL (.ceql), from the words that the studio's editor gets from Python.

PYTHONPATH=src python studio/vscode/grammar.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from estero.language.syntax.vocabulary import vocabulary

FILE = Path(__file__).with_name("ceql.tmLanguage.json")
_SCOPES = {
    "keyword": "keyword.control.ceql",
    "modifier": "storage.modifier.ceql",
    "constant": "constant.language.ceql",
}


def grammar() -> dict[str, Any]:
    """The grammar, as editors read it."""
    words = vocabulary()
    spoken = [_rule(scope, rf"(?i)(?<![.$\w])(?:{_any(words[kind])})\b") for kind, scope in _SCOPES.items()]
    units = _rule("constant.other.unit.ceql", rf"(?i)(?<=\d\s|\d)(?:{_any(words['unit'])})\b")
    functions = _rule("support.function.ceql", rf"(?i)\b(?:{_any(words['function'])})(?=\s*\()")
    return {
        "name": "CEQL",
        "scopeName": "source.ceql",
        "fileTypes": ["ceql"],
        "patterns": [
            _rule("comment.line.double-dash.ceql", "--.*$"),
            {"name": "comment.block.ceql", "begin": r"/\*", "end": r"\*/"},
            _rule("string.quoted.single.ceql", "'(?:[^']|'')*'"),
            _rule("entity.name.ceql", '"(?:[^"]|"")*"|`(?:[^`]|``)*`'),
            _rule("variable.parameter.ceql", r"\$[^\W\d]\w*"),
            units,
            functions,
            *spoken,
            _rule("constant.numeric.ceql", r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b"),
            _rule("keyword.operator.ceql", r":\+|->|\.\.|<=|>=|!=|<>|[;:=<>~+*/%?]"),
        ],
    }


def text() -> str:
    """The text of the file."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


def _rule(name: str, match: str) -> dict[str, str]:
    return {"name": name, "match": match}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
