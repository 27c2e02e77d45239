"""The key that divides partial matches, if equalities give one to the events of every level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from estero.automata.correlated.equality_classes import common_key
from estero.language.tree.levels import levels_of, prefix_query, unchosen
from estero.language.tree.query import Consume, Strategy
from estero.language.tree.schema import Kind
from estero.plan.draft import Draft
from estero.plan.levels import PartialsPlan, of_single_events
from estero.plan.plan import Layout

_COMPARED_AS_ONE = frozenset({Kind.INT, Kind.FLOAT})
"""The kinds whose equal values become one float."""


def with_shared_key(plan: PartialsPlan, layout: Layout) -> PartialsPlan:
    """The plan with the values that all events of each of its levels share, or the reason why there are none.

    A level of single events needs none: any task that has such an event finds it. Keys that the query writes
    in PARTITION BY come first.
    """
    if plan.whole.tree.partition_by:
        return plan
    key = _shared(plan, layout)
    return replace(plan, why_unshared=key) if isinstance(key, str) else replace(plan, shared=key)


def _shared(plan: PartialsPlan, layout: Layout) -> Mapping[str, str] | str:
    tree = plan.levels.tree
    if tree.consume is not Consume.NONE:
        return "the events that CONSUME BY drops depend on all earlier events"
    if tree.strategy is Strategy.STRICT:
        return "the strategy STRICT depends on the events in between"
    if any(of_level.deadlines for of_level in plan.plans):
        return "NOT(…) FOR concerns events of all keys"
    parts = levels_of(tree.pattern)
    compared = [number for number, level in enumerate(plan.by_level) if not of_single_events(level)]
    queries = [*(prefix_query(tree, parts[number]) for number in compared), unchosen(tree)]
    schema = plan.whole.classification.schema
    drafts = [Draft(query, replace(layout, schema=schema)) for query in queries]

    def alike(key: Mapping[str, str]) -> bool:
        """Whether values of these attributes are compared in one form."""
        kinds = {schema.column_kinds.get(value) for value in key.values()}
        return len(kinds) == 1 or kinds <= _COMPARED_AS_ONE

    common = common_key([draft.compiled for draft in drafts], schema, alike)
    if isinstance(common, Mapping):
        return common
    number, why = common
    steps = [*(number + 1 for number in compared), len(parts)][number]
    return f"the events of the first {f'{steps} steps' if steps > 1 else 'step'} share no key: {why}"
