"""Stages of sequences and samples of EQL: conditions on single events, with keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from estero.automata.cea import CEA, EventPredicate, Guard, Transition
from estero.automata.pcea import JoinKey
from estero.errors import QueryError
from estero.language.tree.distances import DurationWindow
from estero.language.tree.durations import Duration
from estero.language.tree.expressions import Attribute, EventFilter
from estero.language.tree.paths import is_path
from estero.language.tree.pattern import All, As, Disjunction, EventType, Filter, Pattern
from estero.language.tree.query import QueryTree, SelectItem
from estero.language.tree.schema import Kind, Schema, fit
from estero.language.tree.selection import Shown, paths_read
from estero.language.tree.words import named
from estero.plan.key_values import Values
from estero.plan.keyed import KeyedPlan
from estero.plan.keys import KeyColumn, KeyPart
from estero.plan.plan import Layout
from estero.system.copies import copied


@dataclass(frozen=True, slots=True)
class KeyField:
    """An attribute that is part of a key; None for one that no event has.

    If it is `optional`, events that lack it have a key as well, and these keys are equal.
    """

    attribute: str | None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A condition on one event, which must be `missing` or present, and the fields of its key."""

    predicate: EventPredicate
    keys: tuple[KeyField, ...] = ()
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The checks on an event: the bit of a predicate, and the number of a key column."""

    bit: int
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPlan(KeyedPlan):
    """How a query of stages is evaluated: `stages` are those that must be present, labelled by `labels`."""

    evaluated: ClassVar[tuple[str, ...]] = ("columns", "stages", "labels")

    stages: tuple[Asked, ...]
    labels: tuple[str, ...]

    @property
    def takes_candidates(self) -> bool:
        """An event replaces candidates even if it is in no complex event."""
        return True

    @property
    def reads_lists(self) -> bool:
        """Whether a key is a list."""
        return bool(_listed(self.columns))

    @property
    def machine(self) -> CEA:
        """The stages in order as an automaton, without their keys."""
        count = len(self.stages)
        steps = tuple(
            Transition(number, Guard(frozenset({stage.bit})), frozenset({label}), number + 1)
            for number, (stage, label) in enumerate(zip(self.stages, self.labels, strict=True))
        )
        predicates = self.classification.predicates
        return CEA(count + 1, frozenset({0}), frozenset({count}), steps, predicates)

    @property
    def drawn(self) -> CEA:
        """The stages in order."""
        return self.machine

    def with_distinct_marks(self) -> Self:
        """The plan itself: every complex event starts with the first event that it marks."""
        return self

    def _showing(self, shown: tuple[Shown, ...]) -> Self:
        plan = super(StagedPlan, self)._showing(shown)  # keys that are lists are read
        payload = tuple(dict.fromkeys([*plan.classification.payload, *_listed(self.columns)]))
        return replace(plan, classification=replace(plan.classification, payload=payload))

    def refuse_levels(self) -> None:
        """Raises `QueryError`: there are no partial matches."""
        raise QueryError(
            "partial matches, funnels and reasons why not are available for queries in CEQL, not in EQL",
            text=self.text,
            hint="write the sequence in CEQL: SELECT * WHERE a ; b",
        )

    def filter_lines(self) -> Iterator[str]:
        """Empty: each condition is on one event."""
        return iter(())

    def described(self, check: Asked) -> str:
        """A predicate and its key."""
        return f"b{check.bit}  {self.classification.predicates[check.bit]!s}, key {check.key}"


class DraftedStages(NamedTuple):
    """The common part of all plans of stages, and the checks of each stage."""

    checks: tuple[Asked, ...]
    labels: tuple[str, ...]
    fields: dict[str, Any]


def drafted(
    stages: Sequence[Stage],
    further: Sequence[Stage],
    layout: Layout,
    *,
    span_ns: int | None,
    text: object,
) -> DraftedStages:
    """The draft of a plan of `stages`, and of `further` ones whose events are not shown.

    Raises `QueryError` if keys have values that cannot be equal, or if events have no time for the span.
    """
    labels = tuple(str(number) for number in range(1, len(stages) + 1))
    parts = [*stages, *further]
    if layout.schema.has_insides:
        layout = replace(layout, schema=layout.schema.reading(_paths(parts)))
    _check(parts, layout, span_ns, text)
    tree = stand_in(stages, labels, span_ns)
    from estero.plan.draft import Draft  # what made a plan does not cross to Spark's workers

    draft = Draft(tree, layout, text)
    predicates = tuple(dict.fromkeys(part.predicate for part in parts))
    keys = tuple(dict.fromkeys((part.predicate.types, part.keys) for part in parts))
    values = Values(layout.schema)
    columns = key_columns(keys, values, layout.schema)
    classification = draft.classification(predicates, values=tuple(values.numbered))
    payload = tuple(dict.fromkeys([*classification.payload, *_listed(columns)]))
    checks = tuple(
        Asked(predicates.index(part.predicate), keys.index((part.predicate.types, part.keys)))
        for part in parts
    )
    fields = {
        "tree": tree,
        "written": text,
        "classification": copied(classification, payload=payload),
        "shown": tuple(copied(shown, stage=True) for shown in draft.shown),
        "window": draft.window,
        "shared": _shared(parts, layout.schema),
        "columns": columns,
    }
    return DraftedStages(checks, labels, fields)


def stand_in(stages: Sequence[Stage], labels: Sequence[str], span_ns: int | None) -> QueryTree:
    """A stand-in for a sequence where the tree of a query is needed: its events in any order.

    It has the same types, labels and window, but does not represent conditions and keys.
    """
    window = None if span_ns is None else DurationWindow(Duration(span_ns).parts)
    parts = tuple(As(_any_of(stage.predicate), label) for stage, label in zip(stages, labels, strict=True))
    return QueryTree(
        All(parts) if len(parts) > 1 else parts[0], tuple(map(SelectItem, labels)), window=window
    )


def _paths(parts: Sequence[Stage]) -> list[str]:
    """The fields and elements that conditions and keys read."""
    paths = [field.attribute for part in parts for field in part.keys if field.attribute is not None]
    for part in parts:
        if part.predicate.condition is not None:
            event = As(_any_of(part.predicate), "1")
            paths += paths_read(QueryTree(Filter(event, EventFilter("1", part.predicate.condition))))
    return [path for path in paths if is_path(path)]


def _any_of(predicate: EventPredicate) -> Pattern:
    types = tuple(map(EventType, predicate.types))
    return Disjunction(types) if len(types) > 1 else types[0]


def _check(parts: Sequence[Stage], layout: Layout, span_ns: int | None, text: object) -> None:
    """Raises `QueryError` for keys of kinds that do not fit, and for a span without a time."""
    if span_ns is not None and layout.tick_ns is None:
        raise QueryError(
            "maxspan needs times, and these events have none, or times without a unit",
            text=str(text),
            hint="name the time column, and time_unit where it has integers",
        )
    kinds = layout.schema.column_kinds
    for place in range(len(parts[0].keys)):
        names = dict.fromkeys(
            field.attribute for part in parts for field in (part.keys[place],) if field.attribute
        )
        of_names = {name: _kind_of_key(name, kinds.get(name, Kind.NULL), layout.schema) for name in names}
        if not fit(of_names.values()):
            kinds_by_name = ", ".join(f"{named(name)} is {kind.value}" for name, kind in of_names.items())
            raise QueryError(
                f"events are joined by keys that are never equal: {kinds_by_name}",
                text=str(text),
                hint="join by attributes of one kind",
            )


def _kind_of_key(name: str, kind: Kind, schema: Schema) -> Kind:
    """The kind of an attribute, or of the elements of a list."""
    nested = schema.inside(name)
    return nested.element.kind if nested is not None and nested.element is not None else kind


def key_columns(
    keys: Sequence[tuple[tuple[str, ...], tuple[KeyField, ...]]], values: Values, schema: Schema
) -> tuple[KeyColumn, ...]:
    """The join keys of events, one for each pair of types and fields.

    If one of the fields that are compared is a list, the values of all of them are treated as lists.
    """
    lists = [
        any(field.attribute is not None and not _is_plain(field, schema) for field in place)
        for place in zip(*(fields for _, fields in keys), strict=True)
    ]
    plain = [
        [
            field
            for field, listed in zip(fields, lists, strict=True)
            if field.attribute is not None and not listed
        ]
        for _, fields in keys
    ]
    forms = [
        JoinKey({name: tuple(Attribute(str(field.attribute)) for field in chosen) for name in types})
        for (types, _), chosen in zip(keys, plain, strict=True)
    ]
    columns = []
    for (_, fields), column in zip(keys, values.columns(forms), strict=True):
        parts = iter(column.parts)
        merged = tuple(
            KeyPart((), null=field.optional, listed=field.attribute)
            if listed or field.attribute is None
            else replace(next(parts), null=field.optional)
            for field, listed in zip(fields, lists, strict=True)
        )
        columns.append(
            KeyColumn(merged, column.exact and all(part.values and not part.null for part in merged))
        )
    return tuple(columns)


def _listed(columns: Sequence[KeyColumn]) -> list[str]:
    """The attributes that are lists."""
    return [part.listed for column in columns for part in column.parts if part.listed is not None]


def _is_plain(field: KeyField, schema: Schema) -> bool:
    """Whether a field has one value in each event, computed by the classification."""
    if field.attribute is None:
        return False
    nested = schema.inside(field.attribute)
    return nested is None or nested.element is None


def _shared(parts: Sequence[Stage], schema: Schema) -> dict[str, str]:
    """For each type, an attribute whose value all events of an answer share; empty if there is none."""
    for place in range(len(parts[0].keys)):
        shared: dict[str, str] = {}
        for part in parts:
            field = part.keys[place]
            if field.optional or field.attribute is None or not _is_plain(field, schema):
                break
            names = [shared.setdefault(name, field.attribute) for name in part.predicate.types]
            if any(name != field.attribute for name in names):
                break
        else:
            return shared
    return {}
