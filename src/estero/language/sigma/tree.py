"""A Sigma rule as a tree: its condition on an event, its log source, and its description.

Tests have the rule's names of fields, which `lower.py` looks up in a schema. The logic has two values: a test
of a missing field is false, and its negation true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from estero.errors import QueryError, Span


@dataclass(frozen=True, slots=True)
class Text:
    """The field matches a pattern of LIKE, case-insensitively unless `cased`."""

    field: str
    like: str
    cased: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """The field is this number, or its text."""

    field: str
    value: int | float


@dataclass(frozen=True, slots=True)
class Truth:
    """The field is this truth value, or its text."""

    field: str
    value: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """The field is NULL or missing."""

    field: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The field is a number, or the text of one, for which the comparison with `value` holds."""

    field: str
    operator: Literal["<", "<=", ">", ">="]
    value: int | float


@dataclass(frozen=True, slots=True)
class Searched:
    """The text of the field contains a match of a regular expression of CEQL."""

    field: str
    regex: str


@dataclass(frozen=True, slots=True)
class Network:
    """The field is the text of an address in this network."""

    field: str
    network: str


@dataclass(frozen=True, slots=True)
class SameAs:
    """The text of the field equals that of another, begins or ends with it, or (both) contains it."""

    field: str
    other: str
    begins: bool = False
    ends: bool = False


TimePart = Literal["minute", "hour", "day", "week", "month", "year"]


@dataclass(frozen=True, slots=True)
class PartOfTime:
    """A part of the time in the field, in UTC, is this number."""

    field: str
    part: TimePart
    value: int


@dataclass(frozen=True, slots=True)
class Keyword:
    """Any text of the event matches a pattern of LIKE, or contains a match of a regular expression."""

    like: str = ""
    cased: bool = False
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Every:
    """All parts hold; true without parts."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of the parts holds; false without parts."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """The part does not hold."""

    part: Condition


TestOfField = Text | Number | Truth | Missing | Compared | Searched | Network | SameAs | PartOfTime
Test = TestOfField | Keyword
Condition = Test | Every | Some | Negated


@dataclass(frozen=True, slots=True)
class LogSource:
    """The kind of events to which a rule applies."""

    category: str | None = None
    product: str | None = None
    service: str | None = None

    def __str__(self) -> str:
        named = {"category": self.category, "product": self.product, "service": self.service}
        return ", ".join(f"{name}: {value}" for name, value in named.items() if value) or "none"


@dataclass(frozen=True, slots=True)
class About:
    """The description of a rule."""

    title: str = ""
    id: str = ""
    name: str = ""
    level: str = ""
    status: str = ""
    tags: tuple[str, ...] = ()

    @property
    def techniques(self) -> tuple[str, ...]:
        """The techniques of ATT&CK among the tags: ``T1059.001``."""
        named = (tag.partition(".")[2] for tag in self.tags if tag.lower().startswith("attack."))
        return tuple(name.upper() for name in named if name[:1] in "tT" and name[1:2].isdigit())

    def metadata(self) -> dict[str, str]:
        """The entries of the description that are not empty, by name."""
        entries = {
            "title": self.title,
            "id": self.id,
            "name": self.name,
            "level": self.level,
            "status": self.status,
            "tags": ", ".join(self.tags),
            "techniques": ", ".join(self.techniques),
        }
        return {name: text for name, text in entries.items() if text}


@dataclass(frozen=True, slots=True)
class Detection:
    """A rule about one event: its condition, without that of the log source."""

    about: About
    source: LogSource
    condition: Condition


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a rule cannot be run: a `QueryError` as data."""

    about: About
    message: str
    start: int
    end: int
    stands: str
    expected: str
    hint: str

    @classmethod
    def of(cls, about: About, error: QueryError) -> Refusal:
        """The data of an error."""
        place = error.span
        return cls(about, error.message, place.start, place.end, error.found, error.expected, error.hint)

    def error(self, text: str) -> QueryError:
        """The error, with its place in the text."""
        return QueryError(
            self.message,
            text=text,
            span=Span(self.start, self.end),
            found=self.stands,
            expected=self.expected,
            hint=self.hint,
        )


CorrelationType = Literal[
    "event_count", "value_count", "temporal", "temporal_ordered", "value_sum", "value_avg", "value_median"
]
CountOperator = Literal["<", "<=", ">", ">=", "=", "!="]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rule about several events of other rules within a timespan.

    - `groups`: the names of ``group-by``.
    - `keys`: the fields of these names in the events of each of `rules`, since aliases may differ.
    - `counted`: the fields whose values are counted or added up.
    - `bounds`: the bounds of the result, or of the number of events, or of matching rules.
    """

    about: About
    type: CorrelationType
    rules: tuple[Detection, ...]
    seconds: int
    groups: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    bounds: tuple[tuple[CountOperator, int | float], ...] = ((">=", 1),)
    counted: tuple[str, ...] = ()
    generate: bool = field(default=False, compare=False)

    @property
    def is_of_whole_windows(self) -> bool:
        """Whether further events in a window can make the condition false."""
        computed = self.type in ("value_sum", "value_avg", "value_median")
        return computed or any(operator not in (">", ">=") for operator, _ in self.bounds)


Rule = Detection | Correlation
