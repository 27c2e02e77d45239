"""The values that join keys consist of, collected while a query is planned: each has a number and a kind."""

from __future__ import annotations

from collections.abc import Sequence

from estero.automata.pcea import JoinKey
from estero.automata.registers import Value
from estero.errors import QueryError
from estero.language.check.kinds import kind_of
from estero.language.tree.expressions import Attribute, Cast, Node
from estero.language.tree.schema import HASHED, Kind, Schema
from estero.plan.keys import KeyColumn, KeyPart

_EXACT = frozenset({Kind.INT, Kind.BOOL, Kind.TIMESTAMP})
"""The kinds whose values fit into 64 bits as they are."""


class Values:
    """Collects the values that join keys consist of and those compared by order, each once."""

    def __init__(self, schema: Schema) -> None:
        self._kinds = schema.column_kinds
        self.numbered: dict[Value, int] = {}
        self._by_texts = False

    def columns(self, keys: Sequence[JoinKey]) -> tuple[KeyColumn, ...]:
        """The columns of the keys. If one of two columns that are compared is exact, so is the other."""
        pairs = {
            expression for key in keys if key.width == 2 for form in key.forms.values() for expression in form
        }
        inexact = {key.width for key in keys if key.width > 2}
        inexact |= {2} if any(self._kind(expression) not in _EXACT for expression in pairs) else set()
        self._by_texts = self._has_decimals(keys)
        inexact |= {2} if self._by_texts else set()
        merged = self._types_of_plain_values(keys)
        return tuple(
            KeyColumn(
                tuple(self._part(key, place, merged) for place in range(key.width)),
                key.width not in inexact,
                key.null,
            )
            for key in keys
        )

    def _has_decimals(self, keys: Sequence[JoinKey]) -> bool:
        """Whether integers are joined as texts, which equal decimals share; next to floats they cannot be."""
        kinds = {self._kind(expression) for key in keys for form in key.forms.values() for expression in form}
        if {Kind.DECIMAL, Kind.INT, Kind.FLOAT} <= kinds:
            raise QueryError(
                "integers, floats and decimals are not joined in one query",
                expected="CAST(d AS FLOAT), or values of two of the kinds",
            )
        return Kind.DECIMAL in kinds

    def _types_of_plain_values(self, keys: Sequence[JoinKey]) -> dict[Node, tuple[str, ...]]:
        """For each expression that is part of a key for all the types of that key, all those types."""
        types: dict[Node, dict[str, None]] = {}
        for key in keys:
            for place in range(key.width):
                expressions = {form[place] for form in key.forms.values()}
                if len(expressions) == 1:
                    types.setdefault(expressions.pop(), {}).update(dict.fromkeys(key.forms))
        return {expression: tuple(names) for expression, names in types.items()}

    def _part(self, key: JoinKey, place: int, merged: dict[Node, tuple[str, ...]]) -> KeyPart:
        types: dict[Node, list[str]] = {}
        for name, form in key.forms.items():
            types.setdefault(form[place], []).append(name)
        if len(types) == 1:
            (expression,) = types
            return KeyPart((self._numbers(expression, merged[expression]),))
        return KeyPart(tuple(self._numbers(expression, tuple(names)) for expression, names in types.items()))

    def _numbers(self, expression: Node, types: tuple[str, ...]) -> tuple[int, ...]:
        if self._by_texts and self._kind(expression) is Kind.INT:
            expression = Cast(expression, "STRING")
        hashes: tuple[int | None, ...] = (0, 1) if self._kind(expression) in HASHED else (None,)
        values = [Value(expression, types, hashed) for hashed in hashes]
        return tuple(self.numbered.setdefault(value, len(self.numbered)) for value in values)

    def in_order(self, expression: Node, types: tuple[str, ...]) -> int:
        """The number of a value compared by order; for a string, its first hash, which has to differ."""
        value = Value(expression, types, 0 if self._kind(expression) in HASHED else None)
        return self.numbered.setdefault(value, len(self.numbered))

    def _kind(self, expression: Node) -> Kind | None:
        """The kind of the column; integers if nothing is known of it."""
        if isinstance(expression, Attribute) and expression.name not in self._kinds:
            return Kind.INT
        return kind_of(expression, self._kinds)
