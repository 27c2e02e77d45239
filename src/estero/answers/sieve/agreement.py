"""``PARTITION BY [X.a, …]`` in a pattern: the check that all values of an instance are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.measures.evaluator import FALSE, TRUE, Evaluator, Truths
from estero.answers.measures.marked import EventsAtHand, Integers, Mask, fold
from estero.answers.sieve.instances import Instances
from estero.automata.residual import ALL_MARKED, Agreement, key_choices
from estero.classify.columns import ColumnType
from estero.language.tree.schema import Kind, Schema

_GROUPS = {Kind.BOOL: 0, Kind.INT: 1, Kind.FLOAT: 1, Kind.DECIMAL: 1, Kind.STRING: 2, Kind.TIMESTAMP: 3}
"""Values of kinds with different numbers are never equal."""
_NONE = np.iinfo(np.int64).max


class _Values(NamedTuple):
    """The values of `attribute` of events, none of them NULL, and their instances, ascending."""

    attribute: str
    rows: Integers
    owners: Integers


def agreement(
    condition: Agreement, evaluator: Evaluator, schema: Schema, type_column: str | None
) -> Callable[[Instances], Truths]:
    """The check of a condition: true if all values are equal and none is NULL, else false.

    Keys without a variable are alternatives of one key: for each event, the first that its type has counts.
    """
    keys = [(key.variable, key.attribute) for key in condition.keys if key.variable is not None]
    alternatives = [key.attribute for key in condition.keys if key.variable is None]
    choices = key_choices(alternatives, schema, type_column)

    def check(at: Instances) -> Truths:
        result = np.full(len(at), TRUE)
        asked = [
            _Values(attribute, at.of(variable).rows, at.of(variable).owners) for variable, attribute in keys
        ]
        if alternatives:
            marked = at.of(ALL_MARKED)
            owners, without = marked.owners, np.ones(len(marked.rows), np.bool_)
            for attribute, types in choices:
                chosen = without & _has_type(at.events, type_column, types, marked.rows)
                asked.append(_Values(attribute, marked.rows[chosen], owners[chosen]))
                without &= ~chosen
            result[owners[without]] = FALSE
        lowest, highest = np.full(len(at), _NONE), np.full(len(at), _NONE)
        for codes, owners in _numbered_values(at.events, asked, evaluator, result):
            fold(codes, owners, lowest)
            fold(-codes, owners, highest)
        result[(lowest != _NONE) & (lowest != -highest)] = FALSE
        return result

    return check


def _has_type(
    events: EventsAtHand, type_column: str | None, types: frozenset[str] | None, rows: Integers
) -> Mask:
    if types is None or type_column is None:
        return np.ones(len(rows), np.bool_)
    event_types = events.values(type_column, rows)
    has: Mask = pc.is_in(event_types, pa.array(sorted(types), event_types.type)).to_numpy(
        zero_copy_only=False
    )
    return has


def _numbered_values(
    events: EventsAtHand, asked: Sequence[_Values], evaluator: Evaluator, result: Truths
) -> Iterator[tuple[Integers, Integers]]:
    """(a number for each value, their instances): numbers are equal exactly if the values are equal by ``=``.

    `result` becomes false where a value is NULL.
    """
    groups: dict[int, list[tuple[pa.Array, Integers, Integers]]] = {}
    exact = any(evaluator.type_of(values.attribute).kind is Kind.DECIMAL for values in asked)
    for values in asked:
        column = evaluator.type_of(values.attribute)
        column_values = events.values(values.attribute, values.rows) if column.kind in _GROUPS else None
        known = np.zeros(len(values.rows), np.bool_) if column_values is None else _is_valid(column_values)
        result[values.owners[~known]] = FALSE
        if column_values is not None and known.any():
            form = _text if exact and _GROUPS[column.kind] == 1 else _form
            halves = form(column_values.filter(pa.array(known)), column, evaluator)
            groups.setdefault(_GROUPS[column.kind], []).append((*halves, values.owners[known]))
    before = 0
    for members in groups.values():
        firsts, seconds, owners = map(list, zip(*members, strict=True))
        numbers = before + _numbered(firsts, seconds)
        before = int(numbers.max()) + 1
        cuts = np.cumsum([len(owner) for owner in owners])[:-1]
        yield from zip(np.split(numbers, cuts), owners, strict=True)


def _is_valid(values: pa.Array) -> Mask:
    valid: Mask = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return valid


def _form(values: pa.Array, column: ColumnType, evaluator: Evaluator) -> tuple[pa.Array, Integers]:
    """Two halves of each value, equal exactly if the values are by ``=``, in one form per group of kinds."""
    plain = evaluator.read(values, column)
    nothing = np.zeros(len(plain), np.int64)
    match column.kind:
        case Kind.INT:
            whole = plain.to_numpy(zero_copy_only=False)
            rounded = whole.astype(np.float64)
            beyond = rounded >= 2.0**63  # 2**63 is no 64-bit integer
            back = np.where(beyond, 0.0, rounded).astype(np.int64)
            return pa.array(rounded + 0.0), np.where(beyond, whole - (2**63 - 1) - 1, whole - back)
        case Kind.FLOAT:
            floats = plain.to_numpy(zero_copy_only=False)
            return pa.array(np.where(np.isnan(floats), np.nan, floats + 0.0)), nothing
        case Kind.TIMESTAMP:
            ticks = plain.cast(pa.timestamp(column.tick)).view(pa.int64()).to_numpy()
            micros, rest = np.divmod(ticks, 1000) if column.tick == "ns" else (ticks, nothing)
            return pa.array(micros), rest
        case Kind.STRING:
            return plain.cast(pa.large_string()), nothing
        case _:
            return plain, nothing


def _text(values: pa.Array, column: ColumnType, evaluator: Evaluator) -> tuple[pa.Array, Integers]:
    """Texts of numbers next to decimals, which are equal exactly if the keys of partitions are."""
    return evaluator.number_texts(values, column), np.zeros(len(values), np.int64)


def _numbered(firsts: list[pa.Array], seconds: list[Integers]) -> Integers:
    """A number from 0 for each pair of halves."""
    encoded: Integers = pa.concat_arrays(firsts).dictionary_encode().indices.to_numpy().astype(np.int64)
    rest = np.concatenate(seconds)
    if not rest.any():
        return encoded
    _, numbers = np.unique(np.stack([encoded, rest]), axis=1, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)
