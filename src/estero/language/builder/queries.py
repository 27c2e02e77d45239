"""Patterns and queries written in Python: the same syntax trees as from text.

>>> from estero import var
>>> a, b = var("a"), var("b")
>>> pattern = event("SELL").named("a").then(event("BUY").named("b").repeated())
>>> print(select(pattern.where((a.name == "X") & (b.price < 10))).partition_by("k").within(hours=2))
SELECT * WHERE SELL AS a ; BUY AS b+ FILTER a[name = 'X'] AND b[price < 10] PARTITION BY [k] WITHIN 2 HOURS

Every object here is immutable, carries its tree as `tree`, and prints as its canonical text. Every
query can be built: chains grow from left to right, and `grouped` puts parentheses around what is there, so
that the next link starts a chain of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import Self, TypeAlias, TypeVar

from estero.arguments import checked
from estero.language.builder.conditions import Condition, Expression, Named, parameter_in
from estero.language.builder.durations import Length, distances_of, number_of, unit_named, window_of
from estero.language.tree import distances as d
from estero.language.tree import pattern as p
from estero.language.tree import query as q
from estero.language.tree.depth import depth_of, known_depth
from estero.language.tree.durations import TimeUnit
from estero.language.tree.names import suggestion

PatternLike: TypeAlias = "PatternBuilder | p.Pattern"


@checked
def event(type: str, *, stream: str | None = None) -> PatternBuilder:
    """One event of a type, of any stream or of one, labelled with the type unless `named`."""
    return PatternBuilder(p.EventType(type, stream))


@checked
def absent(what: str | PatternLike) -> AbsentEvent:
    """An event that must not happen `within` some time: a type, or one event with a name and conditions.

    It is a part of a sequence: ``NOT(R) FOR d``.

    >>> paid, shipped = event("paid"), event("shipped")
    >>> print(paid.then(absent("shipped").within("1 hour")))
    paid ; NOT(shipped) FOR 1 HOURS
    >>> from estero import var
    >>> large = shipped.named("s").where(var("s").weight > 5)
    >>> print(absent(large).within(days=1).then(paid).then(absent("refund").within("5 min"), event("fraud")))
    NOT(shipped AS s FILTER s[weight > 5]) FOR 1 DAYS ; paid ; NOT(refund) FOR 5 MINUTES ; fraud
    """
    return AbsentEvent(p.EventType(what) if isinstance(what, str) else _pattern(what))


@checked
def select(pattern: PatternLike) -> QueryBuilder:
    """The query for all complex events of a pattern."""
    return QueryBuilder(q.QueryTree(_pattern(pattern)))


def tree_of(query: Built) -> q.QueryTree:
    """The syntax tree of a built query, or of the query for all complex events of a pattern."""
    if isinstance(query, QueryBuilder):
        return query.tree
    return query if isinstance(query, q.QueryTree) else q.QueryTree(_pattern(query))


@checked
@dataclass(frozen=True, slots=True)
class PatternBuilder:
    """A pattern that is extended from left to right; `tree` is the pattern so far."""

    tree: p.Pattern
    is_group: bool = field(default=False, compare=False, repr=False)
    depth: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", self.depth or depth_of(self.tree))

    def __str__(self) -> str:
        return str(self.tree)

    def named(self, variable: str) -> PatternBuilder:
        """Marks the events of this pattern with `variable` too: ``φ AS x``.

        >>> print(event("SELL").then(event("BUY")).named("x"))
        (SELL ; BUY) AS x
        """
        return PatternBuilder(p.As(self.tree, variable))

    def then(
        self,
        *others: PatternLike | AbsenceBuilder,
        without: PatternLike | SequenceOf[PatternLike] = (),
        within: Length | Expression | None = None,
        after: Length | Expression | None = None,
        events: int | None = None,
        apart: SequenceOf[d.Distance] = (),
    ) -> PatternBuilder:
        """This pattern and later the others in turn: ``φ ; ψ``; some may be `absent` for some time.

        `without` are event types that must not happen between two of them: ``φ ; NOT(χ) ; ψ``. From the end
        of one to the start of the next it takes at most `within`, at least `after` (texts such as "5 min",
        timedeltas, pairs), and at most `events` events of the stream; `apart` are further distances.

        >>> print(event("SELL").then(event("BUY"), without=event("HALT").named("h")))
        SELL ; NOT(HALT AS h) ; BUY
        >>> print(event("SELL").then(event("BUY"), within="5 minutes", events=100, without=event("HALT")))
        SELL ;[<= 5 MINUTES, <= 100 EVENTS, NOT HALT] BUY
        """
        distances = distances_of(within, after, events, apart)
        return self._followed(others, p.Link(False, _patterns(without), distances))

    def followed_directly_by(
        self,
        *others: PatternLike,
        without: PatternLike | SequenceOf[PatternLike] = (),
        within: Length | Expression | None = None,
        after: Length | Expression | None = None,
        apart: SequenceOf[d.Distance] = (),
    ) -> PatternBuilder:
        """This pattern and each of the others at the very next position: ``φ : ψ``.

        Each of `without` is one event between two of them that does not match it: ``φ : NOT(χ) : ψ``.
        `within`, `after` and `apart` are as in `then`; raises ValueError if they are combined with `without`.

        >>> print(event("SELL").followed_directly_by(event("BUY")).then(event("SELL")))
        SELL : BUY ; SELL
        """
        link = p.Link(True, _patterns(without), distances_of(within, after, None, apart))
        if link.absent and link.distances:
            raise ValueError("followed_directly_by takes without=… or a distance, not both")
        return self._followed(others, link)

    def _followed(self, others: SequenceOf[PatternLike | AbsenceBuilder], link: p.Link) -> PatternBuilder:
        sequence = self.tree
        if not isinstance(sequence, p.Sequence) or self.is_group:
            sequence = p.Sequence((sequence,), ())
        if not others:
            raise ValueError("a sequence needs at least one more pattern")
        added = list(link.absent)
        for other in others:
            if isinstance(other, AbsenceBuilder):
                added += (absence.event for absence in other.absences)
                sequence = replace(sequence, after=(*sequence.after, *other.absences))
                continue
            if sequence.after and (link.contiguous or link.distances):
                raise ValueError("after absent(…) comes then(…) without within, after, events or apart")
            links = (*sequence.links, replace(link, lacking=sequence.after))
            added.append(_pattern(other))
            sequence = replace(sequence, parts=(*sequence.parts, added[-1]), links=links, after=())
        if sequence.parts[0] is self.tree:
            return PatternBuilder(sequence)
        return PatternBuilder(sequence, depth=known_depth(max(self.depth, depth_of(*added) + 1)))

    def or_(self, *others: PatternLike) -> PatternBuilder:
        """This pattern or any of the others: ``φ OR ψ``.

        >>> print(event("SELL").or_(event("BUY")).repeated())
        (SELL OR BUY)+
        """
        return self._chain(p.Disjunction, others)

    def and_(self, *others: PatternLike) -> PatternBuilder:
        """The complex events common to all the patterns: ``φ AND ψ``.

        >>> from estero import var
        >>> calm, wet = (event("Wind").repeated().where(var("Wind").v < most) for most in (2, 5))
        >>> print(calm.and_(wet))
        (Wind+ FILTER Wind[v < 2]) AND (Wind+ FILTER Wind[v < 5])
        """
        return self._chain(p.Conjunction, others)

    def all_with(self, *others: PatternLike) -> PatternBuilder:
        """Unions of one complex event of each pattern, in any order: ``φ ALL ψ``.

        >>> print(event("SELL").all_with(event("BUY"), event("HALT")))
        SELL ALL BUY ALL HALT
        """
        return self._chain(p.All, others)

    def _chain(
        self, kind: type[p.Disjunction | p.Conjunction | p.All], others: SequenceOf[PatternLike]
    ) -> PatternBuilder:
        if not others:
            raise ValueError("OR, AND and ALL need at least one more pattern")
        added = tuple(map(_pattern, others))
        if not isinstance(self.tree, kind) or self.is_group:
            return PatternBuilder(kind((self.tree, *added)))
        depth = known_depth(max(self.depth, depth_of(*added) + 1))
        return PatternBuilder(kind((*self.tree.parts, *added)), depth=depth)

    def grouped(self) -> PatternBuilder:
        """This pattern in parentheses, so that what comes next does not extend its chain.

        >>> a, b, c = event("a"), event("b"), event("c")
        >>> print(a.then(b).grouped().then(c), "/", a.then(b).then(c))
        (a ; b) ; c / a ; b ; c
        """
        return PatternBuilder(self.tree, is_group=True)

    def unless(self, forbidden: PatternLike) -> PatternBuilder:
        """This pattern unless the forbidden one happens inside: ``φ UNLESS ψ``.

        >>> print(event("SELL").then(event("BUY")).unless(event("HALT")))
        SELL ; BUY UNLESS HALT
        """
        return PatternBuilder(p.Unless(self.tree, _pattern(forbidden)))

    def where(self, *conditions: Condition | Expression) -> PatternBuilder:
        """The complex events that satisfy all the conditions: ``φ FILTER f``.

        >>> from estero import aggregate, increasing, var
        >>> a, b = var("a"), var("b")
        >>> both = event("SELL").named("a").then(event("BUY").repeated().named("b"))
        >>> print(both.where(a.price > b.price, increasing(b.price), aggregate("count", b) >= 3))
        SELL AS a ; BUY+ AS b FILTER a.price > b.price AND increasing(b.price) AND count(b) >= 3
        """
        if not conditions:
            raise ValueError("a filter needs a condition")
        first, *more = (condition.as_filter() for condition in conditions)
        for other in more:
            first = first & other
        return PatternBuilder(p.Filter(self.tree, first.tree))

    def repeated(
        self,
        least: int | Expression = 1,
        most: int | Expression | None = None,
        *,
        directly: bool = False,
        without: PatternLike | SequenceOf[PatternLike] = (),
        within: Length | Expression | None = None,
        after: Length | Expression | None = None,
        events: int | None = None,
        apart: SequenceOf[d.Distance] = (),
    ) -> PatternBuilder:
        """This pattern `least` to `most` times (None: unbounded), `directly` or not: ``φ{2,3}``.

        The other arguments are about the steps between, as in `then`: ``φ+[<= 30 SECONDS, NOT χ]``.

        >>> sell = event("SELL")
        >>> print(sell.repeated(), sell.repeated(directly=True), sell.repeated(2, 3), sell.repeated(0))
        SELL+ SELL :+ SELL{2,3} SELL*
        >>> print(sell.repeated(5, without=sell), sell.repeated(within="30 sec", without=event("BUY")))
        SELL{5,}[NOT SELL] SELL+[<= 30 SECONDS, NOT BUY]
        """
        absent = () if directly else _patterns(without)  # nothing lies between what follows directly
        step = p.Step(absent, distances_of(within, after, events, apart))
        times = number_of(least), None if most is None else number_of(most)
        return PatternBuilder(p.settled(p.Iteration(self.tree, directly, *times, step)))

    def optional(self) -> PatternBuilder:
        """This pattern or nothing, as a part of a sequence: ``φ?``.

        >>> print(event("SELL").then(event("HALT").optional(), event("BUY")))
        SELL ; HALT? ; BUY
        """
        return PatternBuilder(p.Optional(self.tree))

    def renamed(self, old: str, new: str) -> PatternBuilder:
        """Renames the label `old` to `new`: ``φ [old -> new]``.

        >>> print(event("SELL").repeated().renamed("SELL", "s"))
        SELL+ [SELL -> s]
        """
        return PatternBuilder(p.Rename(self.tree, old, new))

    def keep(self, *labels: str) -> PatternBuilder:
        """Keeps only these labels: ``φ KEEP [x, y]``.

        >>> print(event("SELL").then(event("BUY")).keep("BUY"))
        SELL ; BUY KEEP [BUY]
        """
        return PatternBuilder(p.Keep(self.tree, labels))

    def partitioned_by(self, *keys: str | Expression) -> PatternBuilder:
        """Requires that all marked events agree on the keys: ``"a"``, or ``var("x").a`` and ``var("y").b``.

        >>> print(event("SELL").repeated().partitioned_by("name").named("s").then(event("BUY")))
        (SELL+ PARTITION BY [name]) AS s ; BUY
        """
        return PatternBuilder(p.PartitionBy(self.tree, tuple(map(_partition_key, keys))))

    def at_start(self) -> PatternBuilder:
        """Keeps complex events from the first position of the stream: ``START(φ)``.

        >>> print(event("SELL").then(event("BUY")).at_start())
        START(SELL ; BUY)
        """
        return PatternBuilder(p.Start(self.tree))

    def strict(self) -> PatternBuilder:
        """Keeps complex events whose marked positions form an interval: ``STRICT(φ)``.

        >>> print(event("SELL").repeated().strict())
        STRICT(SELL+)
        """
        return PatternBuilder(p.Strict(self.tree))


@checked
@dataclass(frozen=True, slots=True)
class AbsentEvent:
    """An event that must not happen; `within` sets for how long."""

    event: p.Pattern

    def within(
        self,
        *durations: tuple[int, TimeUnit | str] | timedelta | str | Expression,
        ticks: int | Expression | None = None,
        attribute: str | None = None,
        **units: int,
    ) -> AbsenceBuilder:
        """Sets how long it must not happen: ``hours=2``, ``"1 hour"``, or ``ticks=5, attribute="ts"``.

        Durations are as in `QueryBuilder.within`. Raises ValueError for anything else.
        """
        length = _window(durations, None, ticks, attribute, units)
        return AbsenceBuilder((p.Absence(self.event, d.Apart(">", length)),))


@checked
@dataclass(frozen=True, slots=True)
class AbsenceBuilder:
    """Events that must not happen for some time, as a part of a sequence that needs a part that happens."""

    absences: tuple[p.Absence, ...]

    def __str__(self) -> str:
        return " ; ".join(map(str, self.absences))

    def then(
        self, first: PatternLike | AbsenceBuilder, *others: PatternLike | AbsenceBuilder
    ) -> PatternBuilder:
        """The others in turn after this absence: ``NOT(R) FOR d ; φ``; raises ValueError without a pattern.

        >>> print(absent("login").within("1 day").then(event("transfer")))
        NOT(login) FOR 1 DAYS ; transfer
        """
        absences, rest = self.absences, [first, *others]
        while rest and isinstance(rest[0], AbsenceBuilder):
            absences, rest = (*absences, *rest[0].absences), rest[1:]
        if not rest or isinstance(rest[0], AbsenceBuilder):
            raise ValueError("a sequence needs a part that happens, before or after NOT(…)")
        begun = PatternBuilder(p.Sequence((_pattern(rest[0]),), (), before=absences))
        return begun.then(*rest[1:]) if rest[1:] else begun


@checked
@dataclass(frozen=True, slots=True)
class QueryBuilder:
    """A query to which clauses are added in any order; a repeated clause replaces the earlier one."""

    tree: q.QueryTree

    def __str__(self) -> str:
        return str(self.tree)

    def show(
        self,
        *labels: str | tuple[str, SequenceOf[str | Expression]] | Named,
        **columns: SequenceOf[str | Expression] | Expression,
    ) -> Self:
        """Shows labels with all attributes or some: ``show("a", b=["price"])``; no labels mean ``NONE``.

        An expression is a column: ``show(total=var("a").price.sum())``. ``"*"`` are all labels.

        >>> sequence = event("a").then(event("b"), event("c"))
        >>> print(select(sequence).show(("a", ["price"]), "b", c=["price", "name"]))
        SELECT a[price], b, c[price, name] WHERE a ; b ; c
        >>> from estero import count, var
        >>> print(select(sequence).show("*", n=count(var("b")), price=var("a").price * 2))
        SELECT *, count(b) AS n, a.price * 2 AS price WHERE a ; b ; c
        """
        items = tuple(map(_shown, labels)) + tuple(
            _shown_as(name, expression) for name, expression in columns.items()
        )
        return replace(self, tree=replace(self.tree, select=None if items == (q.EveryLabel(),) else items))

    def select(
        self,
        *labels: str | tuple[str, SequenceOf[str | Expression]] | Named,
        **columns: SequenceOf[str | Expression] | Expression,
    ) -> Self:
        """Shows labels and columns, as `show` does: ``.select("x", n=count(x), total=x.price.sum())``."""
        return self.show(*labels, **columns)

    def strategy(self, strategy: q.Strategy | str) -> Self:
        """Keeps some of the complex events that end together: ``SELECT MAX …``.

        >>> print(select(event("a").repeated()).strategy("next"))
        SELECT NEXT * WHERE a+
        """
        chosen = strategy if isinstance(strategy, q.Strategy) else _member(q.Strategy, strategy)
        return replace(self, tree=replace(self.tree, strategy=chosen, disjoint=False))

    def longest(self, *, disjoint: bool = False) -> Self:
        """Keeps for each start the complex event with the last end: ``SELECT LONGEST …``.

        With `disjoint`, keeps only those that begin after the previous one has ended.

        >>> print(select(event("a").repeated().then(event("b"))).longest(disjoint=True))
        SELECT LONGEST DISJOINT * WHERE a+ ; b
        """
        return replace(self, tree=replace(self.tree, strategy=q.Strategy.LONGEST, disjoint=disjoint))

    def shortest(self, *, disjoint: bool = False) -> Self:
        """Keeps for each start the complex event with the first end: ``SELECT SHORTEST …``; see `longest`."""
        return replace(self, tree=replace(self.tree, strategy=q.Strategy.SHORTEST, disjoint=disjoint))

    def from_streams(self, *streams: str) -> Self:
        """Reads these streams: ``FROM s, t``."""
        return replace(self, tree=replace(self.tree, streams=streams))

    def partition_by(self, *keys: str | Expression | SequenceOf[str | Expression]) -> Self:
        """Separates the events by key; a tuple lists alternatives: ``PARTITION BY [a], [b, c]``.

        A field of a struct is ``attribute("process").name``.

        >>> print(select(event("a").then(event("b"))).partition_by("farm", ("ticker", "symbol")))
        SELECT * WHERE a ; b PARTITION BY [farm], [ticker, symbol]
        """
        several = ((key,) if isinstance(key, str | Expression) else tuple(key) for key in keys)
        brackets = (q.KeyBracket(tuple(map(_name_of, one))) for one in several)
        return replace(self, tree=replace(self.tree, partition_by=tuple(brackets)))

    def within(
        self,
        *durations: tuple[int, TimeUnit | str] | timedelta | str | Expression,
        events: int | Expression | None = None,
        ticks: int | Expression | None = None,
        attribute: str | None = None,
        **units: int,
    ) -> Self:
        """Limits the length: ``events=100``, ``hours=2, minutes=30`` or ``ticks=5, attribute="ts"``.

        Durations can be given as a text, ``"2 hours 30 min"``, as a timedelta of Python or pandas, and as
        pairs, ``(2, "hours"), (30, "minutes")``; several are added. Raises ValueError for anything else.

        >>> query = select(event("a"))
        >>> print(query.within(events=100), query.within(hours=2, minutes=30), sep="\\n")
        SELECT * WHERE a WITHIN 100 EVENTS
        SELECT * WHERE a WITHIN 2 HOURS 30 MINUTES
        >>> print(query.within("90 min"), query.within(timedelta(minutes=90)), sep="\\n")
        SELECT * WHERE a WITHIN 90 MINUTES
        SELECT * WHERE a WITHIN 1 HOURS 30 MINUTES
        """
        window = _window(durations, events, ticks, attribute, units)
        return replace(self, tree=replace(self.tree, window=window))

    def consume_by(self, policy: q.Consume | str) -> Self:
        """Sets which events are forgotten after an answer: ``CONSUME BY ANY``.

        >>> print(select(event("a").then(event("b"))).consume_by("any").limit(1))
        SELECT * WHERE a ; b CONSUME BY ANY LIMIT 1 PER END
        """
        chosen = policy if isinstance(policy, q.Consume) else _member(q.Consume, policy)
        return replace(self, tree=replace(self.tree, consume=chosen))

    def limit(
        self,
        most: int | Expression,
        *,
        per: tuple[int, TimeUnit | str] | timedelta | str | Expression | None = None,
        ticks: int | Expression | None = None,
        attribute: str | None = None,
    ) -> Self:
        """Limits the number of complex events at each end position, or in each interval of time.

        `per` is a duration as of `within`, and ``ticks=5, attribute="ts"`` one in the ticks of a time column.

        >>> query = select(event("a").then(event("b")))
        >>> print(query.limit(3))
        SELECT * WHERE a ; b LIMIT 3 PER END
        >>> print(query.limit(3, per="1 hour"))
        SELECT * WHERE a ; b LIMIT 3 PER 1 HOURS
        """
        length: d.Window | None = None
        if (ticks is None) != (attribute is None) or (per is not None and ticks is not None):
            raise ValueError("an interval is per=…, or ticks=… with attribute=…")
        if per is not None:
            length = window_of(per)
        elif ticks is not None and attribute is not None:
            length = d.AttributeWindow(number_of(ticks), attribute)
        return replace(self, tree=replace(self.tree, limit=number_of(most), per=length))

    def order_by(self, by: Expression, *, descending: bool = False) -> Self:
        """The best complex events of the whole answer, which `limit` says the number of.

        `by` is ``x.price.sum()``, ``count(x)`` or ``attribute("duration")``; least comes first, or most.

        >>> from estero.language.builder.conditions import Variable
        >>> query = select(event("a").then(event("b"))).order_by(Variable("a").price.sum(), descending=True)
        >>> print(query.limit(3))
        SELECT * WHERE a ; b ORDER BY sum(a.price) DESC LIMIT 3
        """
        return replace(self, tree=replace(self.tree, ranking=q.Ranking(by.tree, not descending)))


_Word = TypeVar("_Word", bound=Enum)


def _member(words: type[_Word], word: str) -> _Word:
    """The word of the language with this text in any case; raises ValueError with the words for any other."""
    known = {member.name: member for member in words}
    if word.upper() not in known:
        near = suggestion(word.upper(), list(known))
        raise ValueError(f"{word!r} is not one of {', '.join(known)}" + (f": {near}" if near else ""))
    return known[word.upper()]


def _window(
    durations: SequenceOf[Length | Expression],
    events: int | Expression | None,
    ticks: int | Expression | None,
    attribute: str | None,
    units: Mapping[str, int],
) -> d.Window:
    """The one length given by the arguments."""
    if len(durations) == 1 and parameter_in(durations[0]) and events is ticks is None and not units:
        return window_of(durations[0])
    pairs = [pair for duration in durations for pair in window_of(duration).parts]
    pairs += [(amount, unit_named(name)) for name, amount in units.items()]
    given = [events is not None, ticks is not None or attribute is not None, bool(pairs)]
    if sum(given) != 1 or (ticks is None) != (attribute is None):
        raise ValueError("a window is events=…, or a duration such as hours=2, or ticks=… with attribute=…")
    if events is not None:
        return d.EventWindow(number_of(events))
    if ticks is not None and attribute is not None:
        return d.AttributeWindow(number_of(ticks), attribute)
    return d.DurationWindow(tuple(pairs))


def _patterns(patterns: PatternLike | SequenceOf[PatternLike]) -> tuple[p.Pattern, ...]:
    several = (patterns,) if isinstance(patterns, PatternBuilder | p.Pattern) else patterns
    return tuple(map(_pattern, several))


def _pattern(pattern: PatternLike) -> p.Pattern:
    return pattern.tree if isinstance(pattern, PatternBuilder) else pattern


def _shown(item: str | tuple[str, SequenceOf[str | Expression]] | Named) -> q.Selected:
    """The item shown by a positional argument."""
    match item:
        case "*":
            return q.EveryLabel()
        case str():
            return q.SelectItem(item)
        case Named(value, name):
            return q.SelectExpression(value.tree, name)
        case (label, names):
            return _shown_as(label, names)


def _shown_as(name: str, of: SequenceOf[str | Expression] | Expression) -> q.Selected:
    """The item shown by a keyword argument: an expression, or a label with some attributes."""
    if isinstance(of, Expression):
        return q.SelectExpression(of.tree, name)
    if not isinstance(of, SequenceOf) or isinstance(of, str) or not of:
        raise ValueError(f"the attributes of {name} are a list of at least one name")
    return q.SelectItem(name, tuple(map(_name_of, of)))


def _name_of(attribute: str | Expression) -> str:
    """The name of an attribute of the event at hand, or of a field or element inside of one."""
    if isinstance(attribute, str):
        return attribute
    key = attribute.as_key()
    if key.variable is not None:
        raise TypeError(f'{attribute} speaks of one variable: write attribute("{key.attribute}")')
    return key.attribute


def _partition_key(key: str | Expression) -> p.PartitionKey:
    return p.PartitionKey(key) if isinstance(key, str) else key.as_key()


Built: TypeAlias = QueryBuilder | PatternBuilder | q.QueryTree | p.Pattern
"""A query from the builder, or its syntax tree."""
