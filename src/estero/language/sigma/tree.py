"""A Sigma rule as a tree: what it asks of an event, its log source, and what it says of itself.

`Test`s name fields as the rule does; `lower.py` finds them in a schema. The logic has two values: a test of a
field that is missing is false, and its `Not` true.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from estero.errors import QueryError, Span


@dataclass(frozen=True, slots=True)
class Text:
    """The field is a text of this form: a pattern of LIKE; without case unless `cased`."""

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
    """The field is NULL or not there."""

    field: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The field is a number, or the text of one, that compares so with `value`."""

    field: str
    operator: Literal["<", "<=", ">", ">="]
    value: int | float


@dataclass(frozen=True, slots=True)
class Searched:
    """A regular expression of the house is somewhere in the text of the field."""

    field: str
    regex: str


@dataclass(frozen=True, slots=True)
class Network:
    """The field is the text of an address in this network."""

    field: str
    network: str


@dataclass(frozen=True, slots=True)
class SameAs:
    """The text of the field equals that of another, begins or ends with it, or (both) has it inside."""

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
    """Any text of the event has this form (a pattern of LIKE), or has the regular expression inside."""

    like: str = ""
    cased: bool = False
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Every:
    """All of the parts hold; of none, too."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """One of the parts holds at least; of none it does not."""

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
    """What kind of events a rule is for."""

    category: str | None = None
    product: str | None = None
    service: str | None = None

    def __str__(self) -> str:
        named = {"category": self.category, "product": self.product, "service": self.service}
        return ", ".join(f"{name}: {value}" for name, value in named.items() if value) or "none"


@dataclass(frozen=True, slots=True)
class About:
    """What a rule says of itself."""

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
        """The words by name, those that are said."""
        said = {
            "title": self.title,
            "id": self.id,
            "name": self.name,
            "level": self.level,
            "status": self.status,
            "tags": ", ".join(self.tags),
            "techniques": ", ".join(self.techniques),
        }
        return {name: text for name, text in said.items() if text}


@dataclass(frozen=True, slots=True)
class Detection:
    """A rule that asks one event: its condition, which does not know the log source."""

    about: About
    source: LogSource
    condition: Condition


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the text of a rule is none that can be run: a `QueryError` as data."""

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
        """The error in the text."""
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
    """A rule about several events of other rules within a time.

    `groups` are the names of ``group-by``, and `keys` the fields that they are in the events of each of
    `rules`, by its place: an alias may be another one in each. `counted` are the fields whose values are
    counted or summed up; the result (or the number of the events, or of the rules that match) is within all
    `bounds`.
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
        """Whether further events of a window can make it wrong."""
        computed = self.type in ("value_sum", "value_avg", "value_median")
        return computed or any(operator not in (">", ">=") for operator, _ in self.bounds)


Rule = Detection | Correlation
