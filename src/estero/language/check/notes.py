"""Notes on parts of a correct query that readers often misread, one line each."""

from __future__ import annotations

from collections.abc import Iterator

from estero.language.tree.distances import EventWindow
from estero.language.tree.expressions import (
    Arithmetic,
    Attribute,
    Call,
    Case,
    Cast,
    Comparison,
    Negative,
    Node,
    When,
)
from estero.language.tree.pattern import (
    As,
    EventType,
    Filter,
    Iteration,
    Keep,
    Pattern,
    Rename,
    Strict,
    Unless,
    shortened,
)
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.selection import label_types

_OF_ONE_EVENT = Arithmetic | Call | Case | Cast | Negative | When
"""The nodes computed from values of one event, unlike aggregates."""


def notes(tree: QueryTree) -> Iterator[str]:
    """The notes on a checked query, in the order of its clauses."""
    if tree.strategy is Strategy.MAX:
        yield (
            "MAX compares only complex events with the same end: "
            "it keeps a short one beside a longer one that ends later"
        )
    yield from _comparisons_with_itself(tree.pattern)
    if tree.strategy is Strategy.ALL:
        for iteration, _ in _leaving_out(tree.pattern):
            yield (
                f"{shortened(iteration)} may leave out any event between its first and last: n events can "
                "give 2^n complex events; SELECT NEXT, LAST or MAX gives one or few at each end, "
                "LONGEST one for each start, and :+ takes only neighbours"
            )
    if tree.partition_by and isinstance(tree.window, EventWindow):
        yield (
            f"WITHIN {tree.window} counts all events of the stream, including those of other keys; "
            "a duration does not depend on other keys"
        )
    if tree.limit is not None and tree.per is None:
        yield (
            f"LIMIT {tree.limit} applies to each end, not to the whole answer: "
            "for that, use limit(n) of the answer, or --limit on the command line"
        )


def leaving_out(tree: QueryTree) -> Iteration | None:
    """The first repetition of a query that may skip any number of events; None if there is none."""
    return next((iteration for iteration, _ in _leaving_out(tree.pattern)), None)


def _comparisons_with_itself(pattern: Pattern) -> Iterator[str]:
    filters = [node.condition for node in pattern.walk() if isinstance(node, Filter)]
    for comparison in (node for condition in filters for node in condition.walk()):
        if not isinstance(comparison, Comparison):
            continue
        read = set(_values(comparison.right))
        shared = next((value for value in _values(comparison.left) if value in read), None)
        if shared is None:
            continue
        always = ""
        if comparison.left == comparison.right:
            true = comparison.operator in ("=", "<=", ">=")
            always = ", so it is true unless they are NULL" if true else ", so it is never true"
        yield (
            f"{comparison} compares two values of one event, "
            f"for each event marked {shared.variable}{always}; "
            "events that are compared with each other need a label each"
        )


def _values(node: Node) -> Iterator[Attribute]:
    """The attributes of marked events from which `node` is computed."""
    if isinstance(node, Attribute) and node.variable is not None:
        yield node
    elif isinstance(node, _OF_ONE_EVENT):
        for child in node.children():
            yield from _values(child)


def _leaving_out(pattern: Pattern) -> Iterator[tuple[Iteration, set[str]]]:
    """The unbounded iterations that may skip events, each with the labels of its events."""
    if isinstance(pattern, Strict):
        return
    if isinstance(pattern, Iteration) and not pattern.contiguous and pattern.maximum is None:
        if not _takes_all(pattern):
            yield pattern, set(label_types(pattern.pattern))
        return
    parts = [node for node in pattern.below() if isinstance(node, Pattern)]
    for part in parts[:1] if isinstance(pattern, Unless) else parts:
        for iteration, labels in _leaving_out(part):
            shown = _relabelled(pattern, labels)
            if shown:
                yield iteration, shown


def _relabelled(pattern: Pattern, labels: set[str]) -> set[str]:
    """The labels that events with these labels have in `pattern`, around the part that marks them."""
    match pattern:
        case As(variable=variable):
            return labels | {variable}
        case Rename(old=old, new=new):
            return {new if label == old else label for label in labels}
        case Keep(labels=kept):
            return labels.intersection(kept)
        case _:
            return labels


def _takes_all(iteration: Iteration) -> bool:
    """Whether each round takes the next event of its type, with none between two rounds."""
    absent = {event_type.name for event_type in iteration.step.absent if isinstance(event_type, EventType)}
    taken = {node.name for node in iteration.pattern.walk() if isinstance(node, EventType)}
    return taken <= absent
