"""The tables of parsers on disk: to work them out takes 0.2 s of CPU, to read them 0.04 s.

They are JSON, so that whatever a file holds, it cannot run; and they are read only from where nobody else can
write.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from estero.language.syntax.cases import CaseWords
from estero.system.private_files import is_usable, make_folder, read, replaced

_HERE = Path(__file__).parent
_DIGEST_SIZE = 64
_NOT_KEPT: dict[str, Any] = {"postlex": None, "import_paths": [], "source_path": None}
"""Options of Lark that are no JSON; the last two say where a grammar is from, which parsing does not ask."""


def lark_of(grammar: str, starts: Sequence[str]) -> Lark:
    """The parser of the grammar in the file `grammar`: read from disk, or else worked out and put there.

    What is damaged or outdated is worked out anew, and where nothing can be kept, each process does so.
    """
    file = tables_file(grammar)
    kept = None if file is None else _read(file)
    if kept is not None:
        return kept
    made = Lark.open_from_package(
        __package__,
        grammar,
        parser="lalr",
        lexer="basic",
        start=list(starts),
        propagate_positions=True,
        postlex=CaseWords(),
    )
    if file is not None:
        with suppress(OSError):  # other folders may be for reading only
            _write(file, made)
    return made


@cache
def tables_file(grammar: str) -> Path | None:
    """The file for the tables of a grammar, beside compiled kernels; None where others could change it.

    It is in the folder that ``ESTERO_CACHE`` names, or in that of compiled Python files. Its name tells the
    version of the grammars, Lark and Python.
    """
    folder = Path(os.environ.get("ESTERO_CACHE") or _HERE / "__pycache__").absolute()
    version = hashlib.sha256(f"{lark.__version__} {platform.python_version()}".encode())
    with suppress(OSError):  # there are no files in a zip
        for file in sorted(_HERE.glob("*.lark")):
            version.update(file.read_bytes())
        make_folder(folder)
    if not is_usable(folder):
        return None
    return folder / f"{Path(grammar).stem}-{version.hexdigest()[:16]}.json"


def _write(file: Path, made: Lark) -> None:
    data, memo = made.memo_serialize([TerminalDef, Rule])
    for name in _NOT_KEPT:
        del data["options"][name]
    content = json.dumps({"data": data, "memo": memo}).encode()
    with replaced(file) as opened:
        opened.write(hashlib.sha256(content).hexdigest().encode() + content)


def _read(file: Path) -> Lark | None:
    """The parser of tables in a file; None where there are none that are as they were written."""
    try:
        content = read(file)
    except OSError:
        return None
    digest, body = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    tables = json.loads(body, object_hook=_numbered)
    tables["data"]["options"].update(_NOT_KEPT, postlex=CaseWords())
    return Lark.load(tables)


def _numbered(entries: dict[str, Any]) -> dict[str | int, Any]:
    """Entries of a table by states, which are numbers; JSON has names only."""
    return {int(name) if name.isdecimal() else name: each for name, each in entries.items()}
