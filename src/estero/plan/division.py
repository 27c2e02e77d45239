"""How tasks on Spark and threads of one process divide the work of a plan; explain says it in words.

Sharing an enumeration among tasks: distributed-cea.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from estero.language.tree.query import Consume, Strategy
from estero.language.tree.words import named

if TYPE_CHECKING:
    from estero.plan.levels import PartialsPlan
    from estero.plan.plan import Plan, Window


_NO_KEY = "not all events of an answer share a key, and without a"


@dataclass(frozen=True, slots=True)
class Division:
    """The ways in which tasks may divide the work, and what they must know of positions in the stream.

    `by_key`: all events of a partition key meet in one task; otherwise all events are in one order.
    `positions`: the positions of events in the whole stream matter. `ordinals`: their positions among the
    events of their key matter. `cut`: every complex event lies in a window and events have times, so that a
    stream can be cut into ranges of time, each preceded by a window.
    """

    by_key: bool
    positions: bool = False
    ordinals: bool = False
    cut: bool = False

    @property
    def counted(self) -> bool:
        """Whether irrelevant events count, too."""
        return self.positions or self.ordinals

    @property
    def one_order(self) -> bool:
        """Whether one task has to see all events if nothing is cut."""
        return self.positions or not self.by_key

    @property
    def cuts_hot_keys(self) -> bool:
        """Whether keys that have most of the events are cut into ranges of time.

        They are not if a task sorts all events for their positions: that takes longer than any key.
        """
        return self.cut and self.by_key and not self.positions

    @property
    def cuts_by_footers(self) -> bool:
        """Whether footers of files may decide where ranges of time begin; not if all events count."""
        return self.cut and not self.counted


def division_of(plan: Plan, *, positions: bool = False) -> Division:
    """The ways in which tasks may divide the work of `plan`; `positions` if its answer shows positions."""
    return Division(
        by_key=(plan.keyed or bool(plan.shared)) and not _across_keys(plan),
        positions=positions or plan.needs_positions,
        ordinals=plan.keyed and plan.classification.keep_all,
        cut=not _why_uncut(plan),
    )


def division_of_partials(plan: PartialsPlan, *, positions: bool = False) -> Division:
    """The ways in which tasks may divide the work if partial matches are recognized, too; see `division_of`.

    They divide by the partition keys that the query writes, or by values that the events of every level
    share: other events of an answer may share a value that those of a partial match need not. Time is not
    cut, because everything that comes after a start decides what becomes of it.
    """
    return replace(division_of(plan.whole, positions=positions), by_key=not _why_undivided(plan), cut=False)


def _why_undivided(plan: PartialsPlan) -> str:
    """The reason why keys do not divide partial matches; empty if they do, unless positions are needed."""
    if plan.whole.shown_keys or plan.shared:
        return _across_keys(plan.whole)
    return plan.why_unshared or "not all events of a partial match share a key"


def why_of_all_before(plan: Plan) -> str:
    """The reason why answers depend on all earlier events, beyond any window; empty if they do not."""
    if plan.consume is not Consume.NONE:
        return "the events that CONSUME BY drops depend on all earlier events"
    if plan.interval is not None:
        return "LIMIT … PER depends on earlier answers"
    if plan.tree.disjoint:
        return "DISJOINT depends on earlier answers"
    return ""


def _across_keys(plan: Plan) -> str:
    """The reason why keys, although distinguished, must be seen in one order; empty if they need not be."""
    if plan.consume is Consume.ANY:
        return "the events that CONSUME BY drops depend on all earlier events"
    if plan.deadlines and not plan.shown_keys:
        return "NOT(…) FOR concerns events of all keys"
    if plan.tree.disjoint and not plan.shown_keys:
        return "DISJOINT depends on earlier answers"
    if plan.interval is not None and not plan.shown_keys:
        return "LIMIT … PER depends on earlier answers"
    return ""


def _why_uncut(plan: Plan) -> str:
    """The reason why a stream cannot be cut into ranges of time, each after a window; empty if it can."""
    # The number of events that arrive in each partition of a DataFrame may change from one job to the next.
    if not (why := _why_no_ranges(plan)) and plan.classification.schema.time is None:
        return f"{_NO_KEY} time column the stream cannot be cut"
    return why


def _why_no_ranges(plan: Plan) -> str:
    """The reason why ranges of events, each preceded by a window, miss answers; empty if they do not."""
    if why := why_of_all_before(plan):
        return why
    if plan.deadlines:
        return "NOT(…) FOR concerns events outside of the window"
    if plan.decides_later:
        return "later events decide which complex event of a start is returned"
    if plan.window is None:  # any event can matter to any end
        return f"{_NO_KEY} window the stream cannot be cut"
    return ""


@dataclass(frozen=True, slots=True)
class ThreadDivision:
    """The ways in which threads of one process may divide the work.

    With a `window` they take ranges of events, each preceded by a window. With `by_keys` each takes the
    events of some partition keys; unless `in_order`, this serves only counts, because the answers of one key
    may be decided after later ones of another. `why_not` is the reason why a single thread does everything.
    """

    window: Window | None = None
    by_keys: bool = False
    in_order: bool = True
    why_not: str = ""

    @property
    def possible(self) -> bool:
        """Whether more than one thread can work."""
        return self.window is not None or self.by_keys


def thread_division_of(plan: Plan) -> ThreadDivision:
    """The ways in which threads may divide the work of `plan`."""
    if names := ", ".join(name for name, called in plan.predicates.items() if not called.parallel):
        why_not = f"{names} may only be called by one thread at a time, unless registered with parallel=True"
        return ThreadDivision(why_not=why_not)
    why_no_ranges, across = _why_no_ranges(plan), _across_keys(plan)
    by_keys = plan.keyed and not across
    why_not = "" if by_keys or not why_no_ranges else (across if plan.keyed else "") or why_no_ranges
    return ThreadDivision(
        window=None if why_no_ranges else plan.window,
        by_keys=by_keys,
        in_order=not plan.decides_later and plan.wait is None,
        why_not=why_not,
    )


def threads_in_words(plan: Plan) -> str:
    """The line of `explain` about the threads of one process."""
    division = thread_division_of(plan)
    if not division.possible:
        return f"one thread, because {division.why_not}"
    shares = ["a range of events and the window before it"] if division.window is not None else []
    if division.by_keys:
        keys = "the partition keys" if plan.shown_keys else "the keys that equalities define"
        shares.append(f"some of {keys}{' if windows are long' if shares else ''}")
    only = (
        "" if division.in_order else " (to count; only one thread lists, because answers are decided later)"
    )
    return f"each thread processes {', or '.join(shares)}{only}"


def why_one_order(plan: Plan) -> str:
    """The reason why keys do not divide a plan's events; empty if they do, unless positions are needed."""
    if plan.keyed or plan.shared:
        return _across_keys(plan)
    return _why_uncut(plan) or "not all events of an answer share a key"


def division_in_words(plan: Plan, *, positions: bool = False, partials: PartialsPlan | None = None) -> str:
    """The line of `explain` about the tasks on Spark; `positions` says whether the answer shows positions.

    With `partials` it covers partial matches, too.

    It contains "one ordered task" if one task has to see all events in stream order.
    """
    division = _division(plan, partials, positions=positions)
    first = "before that, one ordered task numbers all events"
    if division.by_key:
        shared = plan.shared if partials is None else partials.shared
        keys = _values_in_words(shared, partials) if shared else "the partition keys"
        how = f"each task processes some of {keys}"
        if division.cuts_hot_keys:
            how += "; a key with too many events for one task is split into ranges of time"
            how += ", and so are all keys if the footers of files have the times" * division.cuts_by_footers
    elif division.cut:
        how = "each task processes a range of time and the window before it"
        first = "before that, all events are counted"
    else:
        how, first = f"one ordered task, because {_why_one_order(plan, partials)}", "it numbers all events"
        if may_be_shared(plan) and partials is None:
            how += "; if many complex events are expected, several tasks share the enumeration"
    if not division.positions:
        return how
    return f"{how}; {first}, because {plan.why_positions or 'the answer shows positions'}"


def buckets_in_words(plan: Plan, *, positions: bool = False, partials: PartialsPlan | None = None) -> str:
    """The line of `explain` about the tasks on Spark that recognize a stream."""
    division = _division(plan, partials, positions=positions)
    if not division.one_order:
        shared = {} if partials is None else partials.shared
        keys = _values_in_words(shared, partials) if shared else "the partition keys"
        return f"each bucket has some of {keys}, and one task processes a bucket"
    shown = "the answer shows positions" if positions else ""
    why = plan.why_positions or shown or _why_one_order(plan, partials)
    return f"one ordered task, with one bucket for all events, because {why}"


def _division(plan: Plan, partials: PartialsPlan | None, *, positions: bool) -> Division:
    if partials is None:
        return division_of(plan, positions=positions)
    return division_of_partials(partials, positions=positions)


def _values_in_words(shared: Mapping[str, str], partials: PartialsPlan | None) -> str:
    names = " or ".join(map(named, dict.fromkeys(shared.values())))
    of = "an answer" if partials is None else "a partial match"
    return f"the values of {names}, which all events of {of} share"


def _why_one_order(plan: Plan, partials: PartialsPlan | None) -> str:
    return why_one_order(plan) if partials is None else _why_undivided(partials)


def may_be_shared(plan: Plan) -> bool:
    """Whether tasks share the enumeration by default if the events promise many complex events.

    Work that can be divided by keys or by time is divided that way, and recognition with it. Otherwise one
    task has to see all events in one order; another task that sees them as well costs a copy of the relevant
    events and saves half of the enumeration. That is not much if each end has one complex event, or as few as
    LIMIT or the strategy leaves. An automaton must also be able to estimate their number: the values that
    registers and joins compare are not known before the events are read.
    """
    division = division_of(plan)
    return (
        not (division.by_key or division.cut)
        and plan.consume is Consume.NONE
        and plan.limit is None
        and plan.strategy in {Strategy.ALL, Strategy.STRICT}
        and plan.estimated_by is not None
    )


def why_not_shared(plan: Plan) -> str:
    """The reason why sharing would save nothing even on request; empty if it would."""
    if plan.sieved and plan.consume is not Consume.NONE:
        return "filters after enumeration decide what CONSUME BY drops, so each task would enumerate all"
    return ""
