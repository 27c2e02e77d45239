"""Events that are read in several roles, each with another attribute as their key (Sigma)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from estero.automata.cea import EventPredicate
from estero.language.tree.schema import Schema
from estero.language.tree.words import named
from estero.plan.plan import Classification, Plan


@dataclass(frozen=True, slots=True)
class Roles:
    """The rows that an event becomes: one for each key that it has.

    `attributes` are those of its key in each role. The predicates of the classification are evaluated `of` an
    event in one role each; a key counts if some predicate is true in its role. In the row of a key, attribute
    `flags[i]` says whether predicate i is true of the event with that very key, and the attributes `keys`
    have its values; those in `texts` are compared as texts. `rows` is what a plan classifies of rows.
    """

    attributes: tuple[tuple[str, ...], ...]
    of: tuple[int, ...]
    flags: tuple[str, ...]
    keys: tuple[str, ...]
    texts: tuple[bool, ...]
    rows: Classification

    def payload_of_events(self, payload: Sequence[str]) -> tuple[str, ...]:
        """The attributes of events that are needed to make rows with a payload."""
        made = {*self.flags, *self.keys}
        read = (name for attributes in self.attributes for name in attributes)
        return tuple(dict.fromkeys([*(name for name in payload if name not in made), *read]))

    def lines(self) -> Iterator[str]:
        """The rows that an event becomes, and the conditions on these, one bit each."""
        for place, name in enumerate(self.keys):
            named_in = (
                f"{named(attributes[place])} where {_bits(self.of, role)}"
                for role, attributes in enumerate(self.attributes)
            )
            yield f"an event has one row for each {named(name)}: {', '.join(named_in)}"
        for bit, flag in enumerate(self.flags):
            yield f"{named(flag)}  b{bit} with this key"
        for bit, predicate in enumerate(self.rows.predicates):
            yield f"b{bit} of rows  {predicate}"


def _bits(of: Sequence[int], role: int) -> str:
    return " or ".join(f"b{bit}" for bit, other in enumerate(of) if other == role)


def in_roles(
    plan: Plan,
    predicates: Sequence[EventPredicate],
    schema: Schema,
    *,
    attributes: Sequence[Sequence[str]],
    of: Sequence[int],
    flags: Sequence[str],
    keys: Sequence[str],
    texts: Sequence[bool],
) -> Plan:
    """The plan for events of a schema that becomes a plan for their rows; see `Roles`."""
    rows = plan.classification
    roles = Roles(tuple(map(tuple, attributes)), tuple(of), tuple(flags), tuple(keys), tuple(texts), rows)
    classification = replace(
        rows,
        predicates=tuple(predicates),
        schema=schema,
        keys=(),
        payload=roles.payload_of_events(rows.payload),
    )
    made = {*flags, *keys}
    shown = (
        replace(one, attributes=tuple(name for name in one.attributes if name not in made))
        for one in plan.shown
    )
    return replace(plan, classification=classification, shown=tuple(shown), roles=roles)
