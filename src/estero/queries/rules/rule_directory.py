"""A directory of rules that may change while a stream runs: texts that count, and those that are refused."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from estero.errors import DataError, EsteroError, QueryError
from estero.queries.query import Query
from estero.queries.rules.eql_files import is_eql
from estero.queries.rules.rule_files import is_of_rules
from estero.queries.rules.rule_set import RuleSet, read_files, read_rule
from estero.queries.rules.sigma_files import is_sigma
from estero.queries.statement import raise_first
from estero.queries.texts import eql

if TYPE_CHECKING:
    from estero.recognize.rules.set_recognizer import RuleSetRecognizer

_log: Final = logging.getLogger("estero.live")


class RuleFiles:
    """The rules in the files below a directory, with `values` for their parameters.

    `changed` looks at names, times and sizes, and reads what is new. A file that has no rule is refused by
    its name in the log, once for each state of it; the rules that it had before count on.
    """

    def __init__(self, directory: Path, values: Mapping[str, object]) -> None:
        self._directory = directory
        self._values = values
        self._seen: dict[Path, tuple[int, int]] = {}
        self._of_files: dict[Path, dict[str, str]] = {}
        self._queries: dict[str, tuple[str, Query]] = {}
        self.texts: dict[str, str] = {}
        self.metadata: Mapping[str, Mapping[str, str]] = {}
        """What the files say of their rules, as far as they were read; another mapping after each reading."""

    def changed(self) -> dict[str, str] | None:
        """The texts of all rules, by name in order, if one is new, gone or another since the last look."""
        files = sorted(filter(is_of_rules, self._directory.rglob("*")))
        seen = {path: _stamp(path) for path in files}
        if seen == self._seen:
            return None
        new = [path for path in files if self._seen.get(path) != seen[path]]
        self._of_files = {path: self._of_files.get(path) or self._kept(path) for path in files}
        self._seen = seen
        for path in new:
            self._read(path)
        texts = {name: text for own in self._of_files.values() for name, text in own.items()}
        return texts if texts != self.texts else None

    def query(self, name: str, text: str) -> Query:
        """The query of a rule; raises `QueryError`, which names it, and ValueError for a parameter."""
        known = self._queries.get(name)
        if known is not None and known[0] == text:
            return known[1]
        query = self._bound(query_of_text(name, text))
        self._queries[name] = text, query
        return query

    def refuse(self, name: str, error: Exception) -> None:
        """Says in the log that a rule does not count."""
        _log.error("the rule %s is refused: %s", name, error, extra={"rule": name, "error": str(error)})

    def _read(self, path: Path) -> None:
        """Reads the rules of one file; what it had before stays where it has none now."""
        texts: dict[str, str] = {}
        try:
            read, errors = read_files(path)
            raise_first(errors)
            for name, error in read.refused.items():
                self.refuse(name, error)
            for name in read:
                texts[name] = _kind_of(path) + read.text_of(name)
                self._queries[name] = texts[name], self._bound(read[name])
            self.metadata = {**self.metadata, **read.metadata}
        except (EsteroError, OSError, ValueError) as error:
            self.refuse(path.stem, error)
        if texts:
            self._of_files[path] = texts

    def _kept(self, path: Path) -> dict[str, str]:
        """The rule of a file that was not looked at before, as the checkpoint has it."""
        name = path.stem
        return {name: self.texts[name]} if name in self.texts else {}

    def _bound(self, query: Query) -> Query:
        own = {key: value for key, value in self._values.items() if key in query.parameters}
        return query.bind(own) if own else query


_EQL, _SIGMA = "eql\n", "sigma\n"
"""What the texts of rules begin with that are not in CEQL."""


def _kind_of(path: Path) -> str:
    return _EQL if is_eql(path) else _SIGMA if is_sigma(path) else ""


def query_of_text(name: str, text: str) -> Query:
    """The query of a text that was kept."""
    if text.startswith(_EQL):
        return eql(text.removeprefix(_EQL))
    if text.startswith(_SIGMA):
        from estero.queries.sigma import sigma_named

        return sigma_named(name, text.removeprefix(_SIGMA))
    return read_rule(name, text)


def put_rule(recognizer: RuleSetRecognizer, name: str, query: Query) -> None:
    """Puts a rule in, in the place of one that has its name; it begins with a replay of what is kept.

    Where that is not enough for it, it begins with the next event, as the log says. Raises `QueryError` for
    a rule that is wrong or does not fit the events.
    """
    put = recognizer.replace if name in recognizer.names else recognizer.add
    if not recognizer.keeps_events:
        put(name, query)
        return
    try:
        put(name, query, replay=True)
    except QueryError as error:
        put(name, query)
        why = error.message
        _log.warning("the rule %s begins with the next event: %s", name, why, extra={"rule": name, "error": why})


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def version_of(texts: Mapping[str, str]) -> str:
    """A short digest of a set of rules: of the names and the texts.

    >>> version_of({"a": "SELECT * WHERE A"}) == version_of({"b": "SELECT * WHERE A"})
    False
    """
    said = repr(sorted(texts.items())).encode()
    return hashlib.blake2b(said, digest_size=4).hexdigest()


def texts_of(rules: RuleSet | Query) -> dict[str, str]:
    """The texts by which the version of rules is told that are no files."""
    if isinstance(rules, Query):
        return {"": str(rules)}
    return {name: str(rules[name]) for name in rules}


def directory_of(path: Path) -> Path:
    """The directory, if it is one; raises `DataError` for anything else."""
    if not path.is_dir():
        raise DataError("there is no directory with rules", file=str(path))
    return path
