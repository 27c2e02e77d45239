"""Registered predicates over sets of events: what they are called with, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from estero.answers.sieve.marked import EventsAtHand, Instances, Marked
from estero.answers.sieve.truth import Truths, as_number
from estero.automata.residual import all_attributes
from estero.errors import DataError
from estero.language.check.set_predicates import RegisteredPredicate
from estero.language.tree.expressions import Attribute, Literal, SetPredicate, VariableReference
from estero.language.tree.literals import Value
from estero.language.tree.schema import Schema

Argument = Callable[[int], object]
"""What a predicate is called with for an instance."""


class PredicateCheck:
    """A predicate that Python evaluates, once for each instance."""

    def __init__(self, node: SetPredicate, predicate: RegisteredPredicate, schema: Schema) -> None:
        self._node = node
        self._predicate = predicate
        self._attributes = all_attributes(schema)

    def truths(self, at: Instances) -> Truths:
        """int8 [instances]; an exception in the predicate is a `DataError`."""
        arguments = [self._argument(each, at) for each in self._node.arguments]
        result = np.empty(len(at), np.int8)
        for instance in range(len(at)):
            given = [argument(instance) for argument in arguments]
            try:
                found = self._predicate.function(*given)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                raise self._failure(at, instance, f"raised {reason}") from error
            truth = found.as_py() if isinstance(found, pa.BooleanScalar) else found
            if truth is not None and not isinstance(truth, bool | np.bool_):
                raise self._failure(at, instance, f"returned {found!r}, and not True, False or None")
            result[instance] = as_number(None if truth is None else bool(truth))
        return result

    def _argument(self, node: VariableReference | Attribute | Literal, at: Instances) -> Argument:
        match node:
            case VariableReference(variable):
                marked = at.of(variable)
                return _slices(_table(at.events, marked, self._attributes), marked)
            case Attribute(name, str() as variable):
                marked = at.of(variable)
                values = (
                    at.events.values(name, marked.rows)
                    if name in self._attributes
                    else pa.nulls(len(marked.rows))
                )
                return _slices(values, marked)
            case Literal(value):
                return _constant(value)
            case _:
                raise TypeError(f"{node!r} is no argument of a predicate")

    def _failure(self, at: Instances, instance: int, what: str) -> DataError:
        positions = at.positions(instance)
        where = ", ".join(map(str, positions))
        return DataError(
            f"the predicate {self._predicate.name} {what}; "
            f"the complex event marks {'position' if len(positions) == 1 else 'positions'} {where}"
        )


def _table(events: EventsAtHand, marked: Marked, attributes: Iterable[str]) -> pa.Table:
    columns = {name: events.values(name, marked.rows) for name in attributes}
    position = "position"
    while position in columns:
        position += "_"
    return pa.table({**columns, position: events.positions(marked.rows)})


def _slices(whole: pa.Table | pa.Array, marked: Marked) -> Argument:
    offsets = marked.offsets.tolist()

    def part(instance: int) -> object:
        low, high = offsets[instance], offsets[instance + 1]
        return whole.slice(low, high - low)

    return part


def _constant(value: Value) -> Argument:
    return lambda _: value
