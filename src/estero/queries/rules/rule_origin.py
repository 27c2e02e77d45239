"""Where rules come from that may change while a stream runs: texts that count, and those that are refused."""

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
    """The rules of one place as they are at moments, with `values` for their parameters.

    What is no rule is refused by its name in the log, once for each state of it; the rule that it was before
    counts on.
    """

    called: str
    """What it is, as checkpoints and errors say it."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values
        self._why = ""
        self._queries: dict[str, tuple[str, Query]] = {}
        self.texts: dict[str, str] = {}
        """The texts that count, by name, as whoever looks sets them."""
        self.metadata: Mapping[str, Mapping[str, str]] = {}
        """What is said of the rules, as far as they were read; another mapping after each reading."""

    @abstractmethod
    def changed(self) -> dict[str, str] | None:
        """The texts of all rules, by name in order, if one is new, gone or another since the last look.

        Raises `DataError` where nothing can be read now.
        """

    def look(self, otherwise: dict[str, str] | None = None) -> dict[str, str] | None:
        """As `changed`; where nothing can be read, the log says so once, and all stays `otherwise`."""
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
        """Notes the query of a text, which it returns with values for its parameters."""
        own = {key: value for key, value in self._values.items() if key in query.parameters}
        bound = query.bind(own) if own else query
        self._queries[name] = text, bound
        return bound

    def refuse(self, name: str, error: Exception) -> None:
        """Says in the log that a rule does not count."""
        _log.error("the rule %s is refused: %s", name, error, extra={"rule": name, "error": str(error)})


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
        _log.warning(
            "the rule %s begins with the next event: %s", name, why, extra={"rule": name, "error": why}
        )
