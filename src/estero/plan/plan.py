"""The common part of all plans, however they are evaluated: what is classified, shown, measured and checked.

The kinds of plan are in automaton.py, chains.py and joins.py; rules.py chooses among them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from estero.automata.cea import CEA, EventPredicate
from estero.automata.registers import Value
from estero.automata.residual import Agreement, Apartness, Residual, columns_read, given_tables
from estero.errors import NOWHERE, QueryError
from estero.language.check.set_predicates import RegisteredPredicate
from estero.language.tree.distances import AttributeWindow, DurationWindow, EventWindow
from estero.language.tree.pattern import PartitionKey
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.schema import Schema
from estero.language.tree.selection import Measure, Shown
from estero.language.tree.whole import condition_as_written
from estero.language.tree.words import quoted
from estero.plan.deadlines import Deadline
from estero.plan.identity import APART, Columns, digest
from estero.plan.passes import AtEnd, Compared, Listed, Pass, PerStart
from estero.system.copies import copied

if TYPE_CHECKING:
    from estero.automata.ages import AgedAutomaton
    from estero.automata.cea import LabelSet
    from estero.automata.chain import Chain
    from estero.automata.determinize import LazyAutomaton
    from estero.automata.joins.q_tree import QTreeOfAtoms
    from estero.automata.pcea import PCEA
    from estero.automata.residual import HiddenSet
    from estero.automata.strategies import MaxAutomaton
    from estero.engine.runs.runs import Runs
    from estero.plan.keys import KeyColumn
    from estero.plan.roles import Roles

Section = tuple[str, Iterable[str]]
"""A title and the lines below it."""


@dataclass(frozen=True, slots=True)
class Classification:
    """What the classify stage computes for each event (docs/architecture.md).

    Bit k says whether `predicates[k]` is true of the event. `keys` holds, for each bracket of PARTITION BY,
    the alternatives in order. `keep_all` keeps events with no bit set as well, because an operator has to see
    them. `order` breaks ties of time; `payload` names the attributes that the report shows. Without
    `type_column` every event is of type `only_type`. `values` are what registers and join keys compare. If
    `encoded`, strings of the payload that have a dictionary may keep it.
    """

    predicates: tuple[EventPredicate, ...]
    schema: Schema
    type_column: str | None = None
    only_type: str = "Event"
    keys: tuple[tuple[str, ...], ...] = ()
    keep_all: bool = False
    order: tuple[str, ...] = ()
    payload: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    encoded: bool = field(default=False, metadata=APART)


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the table of events, which a user names when a query runs.

    `tick_ns` is the length of a tick of the time column in nanoseconds, None if there is no time or no unit.
    """

    schema: Schema
    type_column: str | None = None
    only_type: str = "Event"
    order: tuple[str, ...] = ()
    tick_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """How far back a complex event reaches from its end: `length`, in positions or in ticks of time."""

    length: int
    in_positions: bool = False

    @classmethod
    def of(cls, tree: QueryTree, layout: Layout) -> Window | None:
        """The window of a query; None if it has none."""
        match tree.window:
            case None:
                return None
            case EventWindow(events=events):
                return cls(events, in_positions=True)
            case AttributeWindow(ticks=ticks):
                return cls(ticks, in_positions=False)
            case DurationWindow(nanoseconds=nanoseconds):
                if layout.tick_ns is None:
                    raise ValueError("a duration needs the length of a tick: check the query first")
                return cls(nanoseconds // layout.tick_ns, in_positions=False)


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest number of complex events given: at most `most` of those that end at one position.

    With an `interval`, in ticks of time, it is the number for a partition in each interval, which one of its
    complex events opens.
    """

    most: int
    interval: int | None = None

    @property
    def per_end(self) -> int | None:
        """The largest number given at one position; None if that is not what limits them."""
        return self.most if self.interval is None else None


class Opened(NamedTuple):
    """A plan, ready to recognize. Mark `id` stands for `label_sets[id]` and `hidden_sets[id]`.

    `automaton` works out states on demand; it is None if they are all known. Batches have `words` bit words,
    partition keys if `partitioned`, values if `compared` and a key column for each of `keys`. After the
    values they have a column for each of `clocks`: their positions if it is true, else their times.
    """

    runs: Runs
    label_sets: Sequence[LabelSet]
    hidden_sets: Sequence[HiddenSet]
    words: int
    partitioned: bool
    compared: bool
    keys: Sequence[KeyColumn] = ()
    automaton: LazyAutomaton | MaxAutomaton | AgedAutomaton | None = None
    clocks: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(ABC):
    """How a query is evaluated; `written` is what the query prints as, if that is not its tree.

    `pushed` are the comparisons of several events that are checked while runs go on, and `residuals` those
    that are checked on enumerated complex events, with the user's `predicates` by name; `reasons` explains
    each residual. `interval` is the length of the one in LIMIT … PER, in ticks of time. `deadlines` are the
    absences required before or after some events; complex events are decided when their end is more than
    `wait` ticks ago, or at once if it is None. `shared` names for each type an attribute whose value all
    events of an answer share, if the query has no partition key; it is empty if there is none. With
    `distinct`, complex events with the same end that differ in their starts alone are one. `by_place` are the
    atoms of a conjunctive query whose attributes are known by position only. With `roles`, rows of events are
    recognized (`of_rows`). `refused` gives for each rule tried before, by its title, the reason why it did
    not serve.
    """

    evaluated: ClassVar[tuple[str, ...]]
    """The fields that evaluation depends on, in addition to those that all plans have."""

    tree: QueryTree
    written: object = ""
    classification: Classification
    shown: tuple[Shown, ...]
    measures: tuple[Measure, ...] = ()
    window: Window | None = None
    interval: int | None = None
    pushed: tuple[Residual, ...] = ()
    deadlines: tuple[Deadline, ...] = ()
    wait: int | None = None
    residuals: tuple[Residual, ...] = ()
    reasons: tuple[str, ...] = ()
    predicates: Mapping[str, RegisteredPredicate] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    distinct: bool = False
    by_place: tuple[str, ...] = ()
    roles: Roles | None = None
    refused: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    served_by: Pass = field(init=False, compare=False)
    """The pass that follows from the fields above; `dataclasses.replace` decides it anew."""
    _fingerprints: dict[tuple[str, ...], str] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The fingerprints by columns; a bucket of a stream needs its own twice in each micro-batch."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "served_by", self._pass())

    # ------------------------------------------------------------------------------- what all plans say

    @property
    def text(self) -> str:
        """The text of the query, printed on demand: of thousands of rules hardly any is needed."""
        return str(self.written or self.tree)

    @property
    def consume(self) -> Consume:
        """The CONSUME code: which runs are forgotten after an answer."""
        return self.tree.consume

    @property
    def limit(self) -> Limit | None:
        """The largest number of complex events given."""
        return None if self.tree.limit is None else Limit(self.tree.limit, self.interval)

    @property
    def strategy(self) -> Strategy:
        """The selection strategy."""
        return self.tree.strategy

    @property
    def keyed(self) -> bool:
        """Whether events carry a partition key."""
        return bool(self.classification.keys)

    @property
    def shown_keys(self) -> tuple[tuple[str, ...], ...]:
        """The alternatives of each bracket that the query writes: answers show them.

        If equalities of the pattern make the partitions, `classification.keys` has keys and this is empty.
        """
        return tuple(bracket.alternatives for bracket in self.tree.partition_by)

    @property
    def by_position(self) -> bool:
        """Whether events are stamped with positions, not times: the window is in positions, or missing."""
        return self.window is None or self.window.in_positions

    @property
    def needs_positions(self) -> bool:
        """Whether evaluation itself (not only the report) depends on positions in the whole stream."""
        return bool(self.why_positions)

    @property
    def why_positions(self) -> str:
        """The part that depends on positions in the whole stream; empty if there is none.

        A user's own predicate does if it is given tables of events, which show their positions.
        """
        if self.window is not None and self.window.in_positions:
            return f"WITHIN {self.tree.window!s} counts them"
        if self.counts_places:
            return "contiguity or START depends on positions in the whole stream"
        if self.measures_places:
            return "a distance in EVENTS counts them"
        calls = given_tables(self.residuals)
        if calls:
            return (
                f"{calls[0]} receives events with their positions; of attributes it would receive only values"
            )
        return ""

    @property
    def selects_in_kernel(self) -> bool:
        """Whether recognition itself keeps only what the strategy keeps, or NEXT's choice for each start."""
        return isinstance(self.served_by, Compared) or self._lists(Listed.BEST)

    @property
    def sieved(self) -> bool:
        """Whether complex events are checked, or compared with each other, after they are enumerated."""
        return self.served_by.sieved

    @property
    def merges_starts(self) -> bool:
        """Whether complex events may differ in their starts alone and then count as one."""
        return False

    @property
    def best_per_start(self) -> bool:
        """Whether each start keeps NEXT's choice among all its complex events, wherever they end."""
        return False

    @property
    def cut_by(self) -> Consume:
        """The CONSUME code of the query whose partial matches this plan finds."""
        return Consume.NONE

    @property
    def lists_for_starts(self) -> bool:
        """Whether complex events are listed for each start, and one is chosen (LONGEST, SHORTEST)."""
        return self._lists(Listed.BEST, Listed.ALL)

    @property
    def needs_enumeration(self) -> bool:
        """Whether only an enumeration tells which complex events are answers."""
        return self.sieved or self.interval is not None or self.lists_for_starts

    @property
    def decides_later(self) -> bool:
        """Whether complex events are given when the window of their start has passed, not at their end."""
        return isinstance(self.served_by, PerStart)

    @property
    def takes_candidates(self) -> bool:
        """Whether an event takes the place of others' candidates even if it is in no complex event."""
        return False

    @property
    def opening_bits(self) -> frozenset[int] | None:
        """The bits of openings: only events at most a window after an event with such a bit matter.

        None if other events may matter, too.
        """
        return None

    def refuse_levels(self) -> None:
        """Raises `QueryError` if the query has no partial matches and funnels."""
        if self.roles is not None:
            raise QueryError(
                "partial matches, funnels and reasons why not are not available for a correlation whose "
                "aliases are other fields in each rule",
                text=self.text,
                hint="make one column of these fields, and group by it",
            )

    def _lists(self, *listed: Listed) -> bool:
        return isinstance(self.served_by, PerStart) and self.served_by.listed in listed

    def _pass(self) -> Pass:
        """Decides which pass serves the query; all other code reads it from `served_by`."""
        return AtEnd(sieved=bool(self.residuals) or self.has_hidden)

    def refuse_endless(self) -> None:
        """Raises `QueryError` if the query has no answer before the stream has ended."""
        if self.decides_later and self.window is None:
            raise QueryError(
                f"SELECT {self.strategy.value} needs a window on a stream: without it nothing is decided",
                text=self.tree.text,
                span=self.tree.places.get("STRATEGY", NOWHERE),
                expected="a WITHIN clause",
                hint="for example WITHIN 10 MINUTES, after the pattern",
            )

    def refuse_distinct(self) -> None:
        """Raises ValueError if complex events have lost their starts, which partial matches show."""
        if self.distinct:
            raise ValueError(
                'partials and distinct="marks" do not go together: partial matches are of starts'
            )

    def with_distinct_marks(self) -> Self:
        """The plan in which complex events that differ in their starts alone are one.

        Raises `QueryError` if the query gives one complex event for each start.
        """
        if self.decides_later:
            raise QueryError(
                f"SELECT {self.strategy.value} gives one complex event for each start, and "
                'distinct="marks" makes one of several starts',
                text=self.tree.text,
                span=self.tree.places.get("STRATEGY", NOWHERE),
                hint="leave out one of the two",
            )
        return replace(self, distinct=True)

    def count_line(self) -> str:
        """The cost of counting an answer and of dividing it into shares, in words."""
        return f"cost of count() and share(): {self._time_to_count()}"

    def _time_to_count(self) -> str:
        match self.served_by:
            case _ if self.sieved:
                return f"that of listing all complex events, because each is checked; {self._shares()}"
            case PerStart(listed=Listed.BEST | Listed.ALL):
                return "that of listing the candidates of each start"
            case _ if self.interval is not None:
                return "that of counting at each end and listing the answers"
            case PerStart():
                return "linear in the events between the starts and the ends of answers"
            case AtEnd(tallied=True):
                return "about that of recognition, however many complex events there are"
            case _ if self.window is None:
                return "about that of recognition, however many complex events there are"
            case _:
                return "at each end, linear in the partial matches within the window"

    def _shares(self) -> str:
        """How even the shares are if complex events are checked as they are listed."""
        among = self.strategy in (Strategy.MAX, Strategy.NEXT, Strategy.LAST) or self.limit is not None
        if among or self.has_hidden or self.merges_starts:
            return "each share consists of whole ends, the same number in all shares"
        return "shares have equally many candidates, but not equally many answers"

    def showing_nothing(self) -> Self:
        """The same evaluation for counts only: attributes that are only shown are left out."""
        return self._showing(())

    def showing_only(self, attributes: tuple[str, ...]) -> Self:
        """The same evaluation with these attributes shown for all labels, and no computed values."""
        return self._showing(tuple(replace(label, attributes=attributes) for label in self.shown))

    def _showing(self, shown: tuple[Shown, ...]) -> Self:
        known, roles = self.classification, self.roles
        rows = known if roles is None else roles.rows
        checked = columns_read(self.residuals, rows.schema, rows.type_column)
        payload = payload_of(shown, self.shown_keys, checked)
        if roles is not None:
            roles = replace(roles, rows=replace(rows, payload=payload))
            payload = roles.payload_of_events(payload)
        classification = copied(known, payload=payload)
        return copied(
            self, shown=shown, measures=(), classification=classification, roles=roles, _fingerprints={}
        )

    def of_rows(self) -> Self:
        """The plan for the rows that events become in their roles; without roles it is this one."""
        if self.roles is None:
            return self
        return replace(self, classification=self.roles.rows, roles=None)

    def fingerprint(self, events: Columns) -> str:
        """A fingerprint of 32 hexadecimal digits; plans with the same one can use each other's states.

        `events` are the columns of the classified events. It depends on what the plan says, and neither on
        the process nor on the order of sets there.
        """
        columns = tuple(f"{name} {kind}" for name, kind in zip(events.names, events.types, strict=True))
        if columns not in self._fingerprints:
            common = ("text", "classification", "window", "residuals", "predicates", "deadlines", "wait")
            parts = [getattr(self, name) for name in (*common, *self.evaluated)]
            parts += ["distinct"] if self.merges_starts else []
            parts += [] if self.roles is None else [self.roles]
            self._fingerprints[columns] = digest([type(self).__name__, *parts, columns])
        return self._fingerprints[columns]

    def said(self, residual: Residual) -> str:
        """A residual as it is written in a query, and how often it is evaluated."""
        return residual_text(residual, self.classification.schema.time, self.shown_keys)

    def residual_lines(self) -> Iterator[str]:
        """The checks of complex events, and the reasons why they are not made earlier."""
        yield "after enumeration, on each complex event found by the automaton:"
        texts = map(self.said, self.residuals)
        checks = zip(texts, self.reasons, strict=True)
        for residual, reason in dict.fromkeys(checks):
            yield f"  {residual}"
            yield f"    because {reason}"

    # --------------------------------------------------------------------------- where the kinds differ

    @abstractmethod
    def opened(self, words: int, *, ordinals: bool, counting: bool, total: bool) -> Opened:
        """The runs of the automaton.

        Classified events have this many bit `words`, and their positions in their partition's stream if
        `ordinals`; `counting` says that counts will be requested, `total` that only the number of all complex
        events will be.
        """

    @property
    def from_first(self) -> bool:
        """Whether some transition checks for the first event of the stream (START)."""
        return False

    @property
    def totals_by_states(self) -> bool:
        """Whether a total, of all complex events or of the ends that have one, may need no compact set."""
        return False

    @property
    def counts_places(self) -> bool:
        """Whether runs depend on the positions of events in the whole stream (contiguity, START)."""
        return False

    @property
    def windows_back(self) -> int:
        """How many windows the events of a future answer may lie behind the stream."""
        return 1

    @property
    def bits_for_deadlines(self) -> tuple[int, ...]:
        """The bits that only deadlines need."""
        return ()

    @property
    def forgets_by_age(self) -> bool:
        """Whether runs are forgotten when they are too old for their next step."""
        return False

    @property
    def measures_places(self) -> bool:
        """Whether some distance is a number of positions of the whole stream."""
        return measured_in_places(self.residuals)

    @property
    def has_hidden(self) -> bool:
        """Whether runs carry labels that answers do not show: the same answer may then be found twice."""
        return False

    @property
    @abstractmethod
    def kernels(self) -> str:
        """The name of the kernels; plans with the same name run the same kernels."""

    @property
    @abstractmethod
    def machine(self) -> CEA | Chain | PCEA:
        """The automaton that runs."""

    @property
    @abstractmethod
    def drawn(self) -> CEA | QTreeOfAtoms:
        """The content of a picture of the plan."""

    @property
    def estimated_by(self) -> CEA | None:
        """The automaton that estimates how many complex events come from the number of events in each class.

        None if each end has few, and if the compared values are not known before the events are read.
        """
        return None

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """The algorithm that runs, the reason for it, and its guarantees."""

    @abstractmethod
    def key_lines(self) -> Iterator[str]:
        """The keys by which events are separated."""

    @abstractmethod
    def filter_lines(self) -> Iterator[str]:
        """Each filter, and the strategy, with the stage that applies it."""

    @abstractmethod
    def automaton_sections(self) -> Iterator[Section]:
        """The automaton, with all that is needed to read it."""


def payload_of(
    shown: Sequence[Shown], keys: Sequence[Sequence[str]], checked: Sequence[str]
) -> tuple[str, ...]:
    """The attributes of events that are kept: those of labels, of partition keys, and of residual checks."""
    names = [name for label in shown for name in label.attributes]
    names += [name for bracket in keys for name in bracket]
    return tuple(dict.fromkeys([*names, *checked]))


def measured_in_places(residuals: Sequence[Residual]) -> bool:
    """Whether some of them is a distance in positions of the whole stream."""
    return any(
        distance.bounds(None).in_positions
        for residual in residuals
        if isinstance(residual.condition, Apartness)
        for distance in residual.condition.distances
    )


def residual_text(residual: Residual, time: str | None, keys: Iterable[tuple[str, ...]]) -> str:
    """The condition as it is written in a query, and how often it is evaluated.

    `time` is the time column, and `keys` are the alternatives of each partition key.
    """
    condition = residual.condition
    if isinstance(condition, Agreement):
        text = f"PARTITION BY [{', '.join(map(_key, condition.keys))}]"
    else:
        text = str(
            condition if isinstance(condition, Apartness) else condition_as_written(condition, time, keys)
        )
    text = f"not: {text}" if residual.refuted else text
    if residual.nearby is not None:
        where = "after" if residual.nearby.ahead else "before"
        return f"{text}, for any event of {residual.nearby.said} {where} it"
    if residual.soon is not None:
        return f"{text}, for any event in between that is less than {residual.soon} away"
    if isinstance(condition, Apartness):
        return f"{text}, from the end of the part before to the start of the part after"
    return text if residual.place is None else f"{text}, in each instance of its part of the pattern"


def _key(key: PartitionKey) -> str:
    attribute = quoted(key.attribute)
    return attribute if key.variable is None else f"{quoted(key.variable)}.{attribute}"
