"""Rules that were parsed before, as data in the directory that ``ESTERO_CACHE`` names.

The key of an entry is the hash of a file's bytes, so a changed file is parsed again. Damaged entries and
those of other versions of Estero are ignored and replaced. Entries are JSON: trees, and no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from estero.errors import DataError
from estero.language.tree import as_data
from estero.language.tree.as_data import TreeData, TreeWriter

VARIABLE: Final = "ESTERO_CACHE"
"""The environment variable with the directory; without it, there is no cache."""
Entry: TypeAlias = tuple[dict[str, str], Any]
"""The metadata of a rule, and its tree."""
_MOST: Final = 1 << 15
"""The largest number of entries of a language; beyond it, only those used in this process are kept."""
_MOST_LINES: Final = 8
"""The largest number of lines of a language: new entries are one more line, until all are merged into one."""
_PACKAGES: Final = ("eql", "sigma", "syntax", "tree")
"""The packages of `estero.language` on which parsing depends."""


@cache
def eql_trees() -> TreeData:
    """The conversion of trees of rules in EQL to data and back."""
    from estero.language.eql import tree as t

    conditions = (t.Constant, t.Field, t.Minus, t.Computation, t.FunctionCall, t.Compared, t.Member, t.Alike)
    joined = (t.AllOf, t.AnyOf, t.Negated)
    return TreeData(
        "eql", (*conditions, *joined, t.EventQuery, t.Item, t.Sequence, t.Sample, t.Pipe, t.EqlTree)
    )


@cache
def sigma_trees() -> TreeData:
    """The conversion of trees of rules in Sigma to data and back."""
    from estero.language.sigma import tree as t

    tests = (t.Text, t.Number, t.Truth, t.Missing, t.Compared, t.Searched, t.Network, t.SameAs, t.PartOfTime)
    joined = (t.Keyword, t.Every, t.Some, t.Negated)
    return TreeData("sigma", (*tests, *joined, t.LogSource, t.About, t.Detection, t.Correlation, t.Refusal))


class RuleCache:
    """A cache of parsed files by the hash of their bytes; without a file, it is always empty."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lines = [] if file is None else _lines_of(file)
        self._known: dict[str, _Known] = {}

    @classmethod
    def opened(cls) -> RuleCache:
        """The cache that the environment names; raises `DataError` if its directory cannot be created."""
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
        """Whether there is a cache."""
        return self._file is not None

    def get(self, key: str, trees: TreeData) -> Entry | None:
        """The metadata and the tree of a key; None if there is no entry."""
        return self._of(trees).get(key)

    def put(self, key: str, said: dict[str, str], tree: object, trees: TreeData) -> None:
        """Adds the metadata and the tree of a file, if there is a cache."""
        if self._file is not None:
            with contextlib.suppress(TypeError, RecursionError):  # parsed again each time
                self._of(trees).put(key, (said, tree))

    def save(self) -> None:
        """Writes new entries; a cache that cannot be written stays as it is."""
        changed = [known for known in self._known.values() if known.new]
        if self._file is None or not changed:
            return
        names = {known.trees.name for known in changed}
        others = [line for line in self._lines if _name_of(line) not in names]
        body = b"\n".join([*others, *(line for known in changed for line in known.written())])
        with contextlib.suppress(OSError):
            _replace(self._file, _head(body) + b"\n" + body)

    def _of(self, trees: TreeData) -> _Known:
        if trees.name not in self._known:
            lines = [line for line in self._lines if _name_of(line) == trees.name]
            self._known[trees.name] = _Known(trees, lines)
        return self._known[trees.name]


class _Known:
    """The entries of one language: the lines of the file that contain them, and new entries."""

    def __init__(self, trees: TreeData, lines: list[bytes]) -> None:
        self.trees = trees
        self.new: dict[str, Entry] = {}
        self._lines = lines
        self._asked: dict[str, Entry] = {}
        self._old: dict[str, Entry] = {}
        try:
            for line in lines:
                data = json.loads(line.partition(b" ")[2])
                texts = [{str(name): str(text) for name, text in said.items()} for said in data["said"]]
                read = zip(texts, trees.read(data), strict=True)
                self._old |= zip(data["keys"], read, strict=True)
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
            self._lines, self._old = [], {}
        self._writer = TreeWriter(trees)

    def get(self, key: str) -> Entry | None:
        """The entry of a key; None if there is none."""
        entry = self._old.get(key)
        if entry is not None:
            self._asked[key] = entry
        return entry

    def put(self, key: str, entry: Entry) -> None:
        """Adds an entry; raises TypeError or RecursionError for a tree that is not data."""
        self._writer.add(entry[1])
        self.new[key] = entry

    def written(self) -> list[bytes]:
        """The lines with all entries, or only with the used ones if there are too many."""
        entries, writer = self.new, self._writer
        if len(self._old) + len(self.new) > _MOST:
            self._lines, entries = [], self._asked | self.new
        elif len(self._lines) >= _MOST_LINES:
            self._lines, entries = [], self._old | self.new
        if entries is not self.new:
            writer = TreeWriter(self.trees)
            for _, tree in entries.values():
                writer.add(tree)
        said = [texts for texts, _ in entries.values()]
        data = {"keys": list(entries), "said": said, **writer.data()}
        line = f"{self.trees.name} {json.dumps(data, separators=(',', ':'))}"
        return [*self._lines, line.encode()]


def key_of(kind: str, content: bytes) -> str:
    """The key of a file of a kind."""
    return hashlib.blake2b(content, digest_size=16, person=kind.encode()).hexdigest()


def _lines_of(file: Path) -> list[bytes]:
    """The lines of the file; none if it does not exist or another version of Estero has written it."""
    try:
        head, _, body = file.read_bytes().partition(b"\n")
    except OSError:
        return []
    return body.split(b"\n") if head == _head(body) else []


def _name_of(line: bytes) -> str:
    """The name of the trees in a line."""
    return line.partition(b" ")[0].decode(errors="replace")


def _head(body: bytes) -> bytes:
    """The first line: the version that has written the others, and their digest."""
    return json.dumps(
        {"reader": _reader(), "digest": hashlib.blake2b(body, digest_size=16).hexdigest()}
    ).encode()


def _reader() -> str:
    """A digest of all code that reads rules: the sources, and the version of pySigma."""
    language = Path(as_data.__file__).parents[1]
    files = sorted(
        path for name in _PACKAGES for path in (language / name).iterdir() if path.suffix in (".py", ".lark")
    )
    digest = hashlib.blake2b(Path(__file__).read_bytes(), digest_size=16)
    for path in files:
        digest.update(path.read_bytes())
    digest.update(_version_of_pysigma().encode())
    return digest.hexdigest()


def _version_of_pysigma() -> str:
    """The names of the metadata directories of pySigma, which identify its version."""
    spec = find_spec("sigma")
    if spec is None or spec.origin is None:
        return ""
    beside = os.listdir(Path(spec.origin).parents[1])  # noqa: PTH208 (names are enough)
    named = sorted(name for name in beside if name.lower().startswith("pysigma-"))
    if named:
        return " ".join(named)
    from importlib.metadata import PackageNotFoundError, version  # importing importlib.metadata takes 20 ms

    try:
        return version("pysigma")
    except PackageNotFoundError:
        return ""


def _replace(file: Path, content: bytes) -> None:
    """Replaces a file atomically: readers see its new or its old content."""
    import tempfile  # takes 10 ms, and is needed only to write

    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".rules-")
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(content)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
