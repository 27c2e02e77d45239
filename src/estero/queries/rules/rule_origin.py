"""The origin of rules that may change while a stream runs: the texts in use, and refused ones."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from estero.errors import EsteroError, QueryError
from estero.queries.query import Query
from estero.queries.rules.rule_texts import query_of_text

if TYPE_CHECKING:
    from estero.recognize.rules.set_recognizer import RuleSetRecognizer

_log: Final = logging.getLogger("estero.live")


class RuleOrigin(ABC):
    """The rules of one place, which may change, with `values` for their parameters.

    Invalid rules are logged as errors with their names, once for each change; the previous version of such a
    rule stays in use.
    """

    called: str
    """The name of the kind of place, for checkpoints and errors."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values
        self._why = ""
        self._queries: dict[str, tuple[str, Query]] = {}
        self.texts: dict[str, str] = {}
        """The texts in use, by name; the caller sets them."""
        self.metadata: Mapping[str, Mapping[str, str]] = {}
        """The metadata of the rules read so far; a new mapping after each reading."""

    @abstractmethod
    def changed(self) -> dict[str, str] | None:
        """The texts of all rules, by name in order; None if they are the same as at the last call.

        Raises `DataError` if the place cannot be read.
        """

    def look(self, otherwise: dict[str, str] | None = None) -> dict[str, str] | None:
        """The result of `changed`, or `otherwise` if the place cannot be read, which is logged once."""
        try:
            texts = self.changed()
        except (EsteroError, OSError) as error:
            if (why := str(error)) != self._why:
                _log.error("%s cannot be read: %s", self.called, why, extra={"error": why})
            self._why = why
            return otherwise
        self._why = ""
        return texts

    def query(self, name: str, text: str) -> Query:
        """The query of a rule; raises `QueryError`, which names it, and ValueError for a parameter."""
        known = self._queries.get(name)
        if known is not None and known[0] == text:
            return known[1]
        return self.know(name, text, query_of_text(name, text))

    def know(self, name: str, text: str, query: Query) -> Query:
        """Caches the query of a text, and returns it with values for its parameters."""
        own = {key: value for key, value in self._values.items() if key in query.parameters}
        bound = query.bind(own) if own else query
        self._queries[name] = text, bound
        return bound

    def refuse(self, name: str, error: Exception) -> None:
        """Logs that a rule is refused."""
        _log.error("the rule %s is refused: %s", name, error, extra={"rule": name, "error": str(error)})


def put_rule(recognizer: RuleSetRecognizer, name: str, query: Query) -> None:
    """Adds or replaces a rule, which begins with a replay of the events kept.

    If these do not reach back far enough, it begins with the next event, which is logged. Raises `QueryError`
    for a rule that is wrong or does not fit the events.
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
        _log.warning(
            "the rule %s begins with the next event: %s", name, why, extra={"rule": name, "error": why}
        )
