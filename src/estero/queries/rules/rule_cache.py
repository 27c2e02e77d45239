"""Rules that were read before, as data in a directory that ``ESTERO_CACHE`` names.

An entry goes by the hash of the bytes of a file, so a file that changes is read anew. What another version of
Estero has written, or what is damaged, counts as nothing and is written anew. It is JSON: trees, no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from estero.errors import DataError
from estero.language.tree import as_data
from estero.language.tree.as_data import TreeData

VARIABLE: Final = "ESTERO_CACHE"
"""The variable of the environment with the directory; there is no cache unless it is set."""
_MOST: Final = 1 << 17
"""Entries that are kept; where there are more, only those that were just asked for are."""
_PACKAGES: Final = ("eql", "sigma", "syntax", "tree")
"""The packages of `estero.language` that say how a text is read."""


@cache
def eql_trees() -> TreeData:
    """Trees of rules in EQL as data."""
    from estero.language.eql import tree as t

    conditions = (t.Constant, t.Field, t.Minus, t.Computation, t.FunctionCall, t.Compared, t.Member, t.Alike)
    joined = (t.AllOf, t.AnyOf, t.Negated)
    return TreeData((*conditions, *joined, t.EventQuery, t.Item, t.Sequence, t.Sample, t.Pipe, t.EqlTree))


@cache
def sigma_trees() -> TreeData:
    """Trees of rules in Sigma as data."""
    from estero.language.sigma import tree as t

    tests = (t.Text, t.Number, t.Truth, t.Missing, t.Compared, t.Searched, t.Network, t.SameAs, t.PartOfTime)
    joined = (t.Keyword, t.Every, t.Some, t.Negated)
    return TreeData((*tests, *joined, t.LogSource, t.About, t.Detection, t.Refusal))


class RuleCache:
    """What was read of files, by the hash of their bytes; one of no file remembers nothing."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, Any] = {} if file is None else _loaded(file)
        self._asked: dict[str, Any] = {}
        self._changed = False

    @classmethod
    def opened(cls) -> RuleCache:
        """The cache that the environment names; `DataError` where it names no directory that can be made."""
        place = os.environ.get(VARIABLE, "")
        if not place:
            return cls(None)
        directory = Path(place)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{VARIABLE} names no directory: {error.strerror}", file=place, hint="set it to a directory"
            ) from error
        return cls(directory / "rules.json")

    @property
    def is_on(self) -> bool:
        """Whether anything is remembered."""
        return self._file is not None

    def get(self, key: str, trees: TreeData) -> tuple[dict[str, str], Any] | None:
        """The texts and the tree under a key; None where there is nothing, or nothing that can be read."""
        entry = self._known.get(key)
        if entry is None:
            return None
        try:
            said, data = entry
            tree = trees.read(data)
            texts = {str(name): str(text) for name, text in said.items()}
        except (TypeError, ValueError, IndexError, AttributeError, RecursionError):
            return None
        self._asked[key] = entry
        return texts, tree

    def put(self, key: str, said: dict[str, str], tree: object, trees: TreeData) -> None:
        """Remembers the texts and the tree of a file, if there is a cache."""
        if self._file is None:
            return
        with contextlib.suppress(TypeError, RecursionError):  # a tree that is not data is read each time
            self._asked[key] = [said, trees.written(tree)]
            self._changed = True

    def save(self) -> None:
        """Writes what is new; a cache that cannot be written is left as it is."""
        if self._file is None or not self._changed:
            return
        entries = {**self._known, **self._asked}
        body = json.dumps(entries if len(entries) <= _MOST else self._asked, separators=(",", ":")).encode()
        with contextlib.suppress(OSError):
            _replace(self._file, _head(body) + b"\n" + body)


def key_of(kind: str, content: bytes) -> str:
    """The key of a file of a kind."""
    return hashlib.blake2b(content, digest_size=16, person=kind.encode()).hexdigest()


def _loaded(file: Path) -> dict[str, Any]:
    """What is in the file; nothing where there is none, or where another Estero has written it."""
    try:
        head, _, body = file.read_bytes().partition(b"\n")
        entries = json.loads(body) if head == _head(body) else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _head(body: bytes) -> bytes:
    """The first line: who has written the others, and their digest."""
    return json.dumps(
        {"reader": _reader(), "digest": hashlib.blake2b(body, digest_size=16).hexdigest()}
    ).encode()


def _reader() -> str:
    """A digest of all that reads rules: the sources, and pySigma."""
    language = Path(as_data.__file__).parents[1]
    files = sorted(
        path for name in _PACKAGES for path in (language / name).iterdir() if path.suffix in (".py", ".lark")
    )
    digest = hashlib.blake2b(Path(__file__).read_bytes(), digest_size=16)
    for path in files:
        digest.update(path.read_bytes())
    with contextlib.suppress(ImportError):
        digest.update(version("pysigma").encode())
    return digest.hexdigest()


def _replace(file: Path, content: bytes) -> None:
    """Has the file be this at once: who reads it sees all of it, or what was there before."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".rules-")
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
