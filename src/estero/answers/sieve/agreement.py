"""``PARTITION BY [X.a, …]`` in a pattern: whether all values of an instance are the same one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.sieve.asking import Asker
from estero.answers.sieve.marked import EventsAtHand, Instances, Integers, Mask
from estero.answers.sieve.truth import FALSE, TRUE, Truths, fold
from estero.automata.residual import ALL_MARKED, Agreement, key_choices
from estero.classify.columns import ColumnType
from estero.language.tree.schema import Kind, Schema

_GROUPS = {Kind.BOOL: 0, Kind.INT: 1, Kind.FLOAT: 1, Kind.STRING: 2, Kind.TIMESTAMP: 3}
"""Values of kinds with different numbers are never equal."""
_NONE = np.iinfo(np.int64).max


class _Values(NamedTuple):
    """The values of `attribute` of events, and the instances that they belong to, ascending."""

    attribute: str
    rows: Integers
    owners: Integers


class AgreementCheck:
    """True where all values are equal and none is NULL, else false.

    Keys without a variable are alternatives of one key: of each event, the first that its type has.
    """

    def __init__(self, agreement: Agreement, asker: Asker, schema: Schema, type_column: str | None) -> None:
        self._asker = asker
        self._keys = [(key.variable, key.attribute) for key in agreement.keys if key.variable is not None]
        names = [key.attribute for key in agreement.keys if key.variable is None]
        self._choices = key_choices(names, schema, type_column)
        self._open = bool(names)
        self._type_column = type_column

    def truths(self, at: Instances) -> Truths:
        """int8 [instances]."""
        result = np.full(len(at), TRUE)
        lowest, highest = np.full(len(at), _NONE), np.full(len(at), _NONE)
        found = []
        for values in self._values(at, result):
            known = _known(at.events, values, self._asker)
            result[values.owners[~known]] = FALSE
            if known.any():
                found.append(values._replace(rows=values.rows[known], owners=values.owners[known]))
        for codes, values in zip(self._codes(at.events, found), found, strict=True):
            fold(codes, values.owners, lowest)
            fold(-codes, values.owners, highest)
        result[(lowest != _NONE) & (lowest != -highest)] = FALSE
        return result

    def _values(self, at: Instances, result: Truths) -> Iterator[_Values]:
        for variable, attribute in self._keys:
            marked = at.of(variable)
            yield _Values(attribute, marked.rows, marked.owners)
        if self._open:
            marked = at.of(ALL_MARKED)
            owners = marked.owners
            without: Mask = np.ones(len(owners), np.bool_)
            for attribute, types in self._choices:
                chosen = without if types is None else without & self._has_type(at.events, marked.rows, types)
                yield _Values(attribute, marked.rows[chosen], owners[chosen])
                without = without & ~chosen
            result[owners[without]] = FALSE

    def _has_type(self, events: EventsAtHand, rows: Integers, types: frozenset[str]) -> Mask:
        if self._type_column is None:
            return np.ones(len(rows), np.bool_)
        found = events.values(self._type_column, rows)
        wanted = pa.array(sorted(types), found.type)
        has: Mask = pc.is_in(found, wanted).to_numpy(zero_copy_only=False)
        return has

    def _codes(self, events: EventsAtHand, found: Sequence[_Values]) -> list[Integers]:
        """A number for each value, the same just when ``=`` says so."""
        codes: list[Integers] = [np.empty(0, np.int64)] * len(found)
        before = 0
        for group in sorted(set(_GROUPS.values())):
            members = [
                place
                for place, values in enumerate(found)
                if _GROUPS[self._asker.type_of(values.attribute).kind] == group
            ]
            forms = [
                _form(events.values(found[place].attribute, found[place].rows), column, self._asker)
                for place in members
                for column in [self._asker.type_of(found[place].attribute)]
            ]
            if forms:
                together = before + _numbered(*map(list, zip(*forms, strict=True)))
                before = int(together.max()) + 1
                cuts = np.cumsum([len(found[place].rows) for place in members])[:-1]
                for place, part in zip(members, np.split(together, cuts), strict=True):
                    codes[place] = part
        return codes


def _known(events: EventsAtHand, values: _Values, asker: Asker) -> Mask:
    if asker.type_of(values.attribute).kind not in _GROUPS:
        return np.zeros(len(values.rows), np.bool_)
    found = pc.is_valid(events.values(values.attribute, values.rows))
    known: Mask = found.to_numpy(zero_copy_only=False)
    return known


def _form(values: pa.Array, column: ColumnType, asker: Asker) -> tuple[pa.Array, Integers]:
    """Two halves of each value that are equal just when ``=`` says so, in one form for a group of kinds."""
    plain = asker.read(values, column)
    nothing = np.zeros(len(plain), np.int64)
    match column.kind:
        case Kind.INT:
            whole = plain.to_numpy(zero_copy_only=False)
            rounded = whole.astype(np.float64)
            beyond = rounded >= 2.0**63  # the one float that is no 64-bit integer
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


def _numbered(firsts: list[pa.Array], seconds: list[Integers]) -> Integers:
    """A number from 0 for each pair of halves."""
    encoded: Integers = pa.concat_arrays(firsts).dictionary_encode().indices.to_numpy().astype(np.int64)
    rest = np.concatenate(seconds)
    if not rest.any():
        return encoded
    _, numbers = np.unique(np.stack([encoded, rest]), axis=1, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)
