"""A directory of rules that may change while a stream runs: texts that count, and those that are refused."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from estero.errors import DataError, EsteroError
from estero.queries.query import Query
from estero.queries.rules.rule_files import SUFFIX, rule_in_file
from estero.queries.rules.rule_set import RuleSet, read_rule

_log: Final = logging.getLogger("estero.live")


class RuleFiles:
    """The rules in the files below a directory, with `values` for their parameters.

    `changed` looks at names, times and sizes, and reads what is new. A file that is no rule is refused by its
    name in the log, once for each text; the text that it had before counts on.
    """

    def __init__(self, directory: Path, values: Mapping[str, object]) -> None:
        self._directory = directory
        self._values = values
        self._seen: dict[str, tuple[int, int]] = {}
        self._refused: dict[str, str] = {}
        self._queries: dict[str, tuple[str, Query]] = {}
        self.texts: dict[str, str] = {}

    def changed(self) -> dict[str, str] | None:
        """The texts of all rules, by name in order, if one is new, gone or another since the last look."""
        files = {path.stem: path for path in sorted(self._directory.rglob(f"*{SUFFIX}")) if path.is_file()}
        seen = {name: _stamp(path) for name, path in files.items()}
        if seen == self._seen:
            return None
        self._seen = seen
        texts: dict[str, str] = {}
        for name, path in files.items():
            text = self._text(name, path)
            if text is not None:
                texts[name] = text
        return texts if texts != self.texts else None

    def query(self, name: str, text: str) -> Query:
        """The query of a rule; raises `QueryError`, which names it, and ValueError for a parameter."""
        known = self._queries.get(name)
        if known is not None and known[0] == text:
            return known[1]
        query = read_rule(name, text)
        own = {key: value for key, value in self._values.items() if key in query.parameters}
        query = query.bind(own) if own else query
        self._queries[name] = text, query
        return query

    def refuse(self, name: str, error: Exception) -> None:
        """Says in the log that a rule does not count."""
        _log.error("the rule %s is refused: %s", name, error, extra={"rule": name, "error": str(error)})

    def _text(self, name: str, path: Path) -> str | None:
        """The text of a file that is a rule; the one that the rule had before, if the new one is none."""
        text = ""
        try:
            text = rule_in_file(path).text
            self.query(name, text)
        except (EsteroError, OSError, ValueError) as error:
            if self._refused.get(name) != text:
                self.refuse(name, error)
            self._refused[name] = text
            return self.texts.get(name)
        return text


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
