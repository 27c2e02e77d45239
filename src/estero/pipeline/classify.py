"""A plan's predicates, keys and times → SQL text for an engine (algorithms.md, "Classify").

The statement gives each event its position, drops what no operator needs to see, and computes one bit
per predicate and two 64-bit hashes per partition. DuckDB runs it whole (`classify_sql`); Spark takes the
same expressions one by one, so that its filter can be pushed into the scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from estero.automata.cea import EventPredicate
from estero.language.expressions import (
    And,
    Arithmetic,
    Attribute,
    Call,
    Negative,
    Node,
    Or,
)
from estero.language.schema import Kind
from estero.pipeline.columns import ColumnType, Dialect, as_read, canonical, cast, micros
from estero.pipeline.equalities import split
from estero.pipeline.expression_sql import SQL, ExpressionWriter
from estero.plan import Classification

WORD = 63
"""Predicates per word: the sign bit stays free."""

POSITION, TIME = "__position", "__time"


def bits_name(word: int) -> str:
    """The name of the column that holds predicates ``63 * word …``."""
    return f"__bits{word}"


def screen_name(word: int) -> str:
    """The name of the column that holds the screened parts of predicates ``63 * word …``."""
    return f"__screen{word}"


KEYS = ("__key0", "__key1")


def classify_sql(
    classification: Classification,
    source: str,
    dialect: Dialect = "duckdb",
    *,
    columns: Mapping[str, ColumnType] | None = None,
    ordered: bool = True,
    positions: bool = True,
    screened: Sequence[Node | None] | None = None,
) -> str:
    """The statement that turns the relation `source` into the classified table of `plan.Classification`.

    `ordered`: `source` is in stream order already, else it is sorted by time, then `order`, then arrival.
    Without `positions` the column ``__position`` is left out. `columns` says how to read the attributes
    (columns.py); by default each is in its kind's own form. Rows come in stream order.

    With `screened`, `source` is screened (screening.py) and has its positions: predicate k is true where
    bit k of ``__screen…`` is set and `screened[k]` is true, and rows without any bit are left in.
    """
    known = columns_of(classification) if columns is None else columns
    number = positions and screened is None
    inner = _positioned(classification, source, known, ordered=ordered, positions=number)
    outputs: dict[str, str] = {}
    if positions:
        outputs[POSITION] = _name(POSITION, dialect)
    time = time_column(classification, dialect, columns=known)
    outputs[TIME] = _name(POSITION, dialect) if time is None and positions else time or "0"
    outputs.update(key_columns(classification, dialect, columns=known))
    writer = _Writer(classification, dialect, known)
    if screened is None:
        outputs.update(predicate_columns(classification, dialect, columns=known))
        relevant = writer.relevance()
    else:
        outputs.update(writer.screened_words(screened))
        relevant = exp.and_(exp.true(), *writer.known_keys())
    for name in classification.payload:
        outputs[name] = _name(name, dialect)
    selected = ", ".join(f"{sql} AS {_name(name, dialect)}" for name, sql in outputs.items())
    return f"SELECT {selected} FROM ({inner}) WHERE {relevant.sql(dialect=dialect)}"


def columns_of(classification: Classification) -> dict[str, ColumnType]:
    """The attributes of all types in the schema, each in its kind's own form."""
    schema = classification.schema
    found: dict[str, ColumnType] = {}
    for attributes in (*schema.types.values(), schema.shared or {}):
        found.update({name: canonical(kind) for name, kind in attributes.items()})
    if classification.type_column is not None:
        found.setdefault(classification.type_column, canonical(Kind.STRING))
    return found


def needed_columns(classification: Classification) -> tuple[str, ...]:
    """The columns of the source that the statement reads, in order of use."""
    names: list[str] = [classification.schema.time or "", classification.type_column or ""]
    names += [*classification.order, *(name for bracket in classification.keys for name in bracket)]
    for predicate in classification.predicates:
        names += attributes_read(predicate)
    return tuple(dict.fromkeys(name for name in (*names, *classification.payload) if name))


def attributes_read(predicate: EventPredicate) -> Iterator[str]:
    """The attributes in the condition of `predicate`."""
    if predicate.condition is not None:
        yield from (node.name for node in predicate.condition.walk() if isinstance(node, Attribute))


# ------------------------------------------------------------------------------------------- pieces


def predicate_columns(
    classification: Classification, dialect: Dialect, *, columns: Mapping[str, ColumnType] | None = None
) -> dict[str, str]:
    """The words of bits: name → SQL of a 64-bit integer, never NULL. There is at least one word."""
    writer = _Writer(classification, dialect, columns)
    words = range(max(1, -(-len(classification.predicates) // WORD)))
    return {bits_name(word): writer.word(word).sql(dialect=dialect) for word in words}


def key_columns(
    classification: Classification, dialect: Dialect, *, columns: Mapping[str, ColumnType] | None = None
) -> dict[str, str]:
    """The two halves of the partition key: name → SQL, none without PARTITION BY.

    A single key that is an integer, a truth value or an instant is itself, a signed integer, beside 0.
    Otherwise they are two independent hashes: unsigned in DuckDB, signed in Spark. Read both as the 64
    bits of an unsigned integer. Hashes of different engines differ.
    """
    if not classification.keys:
        return {}
    first, second = _Writer(classification, dialect, columns).keys()
    return {KEYS[0]: first.sql(dialect=dialect), KEYS[1]: second.sql(dialect=dialect)}


def time_column(
    classification: Classification, dialect: Dialect, *, columns: Mapping[str, ColumnType] | None = None
) -> str | None:
    """The time in ticks as SQL (microseconds, or nanoseconds for such a column), or None without a time."""
    name = classification.schema.time
    if name is None:
        return None
    known = columns_of(classification) if columns is None else columns
    return ticks(name, known[name], dialect).sql(dialect=dialect)


def relevance(
    classification: Classification, dialect: Dialect, *, columns: Mapping[str, ColumnType] | None = None
) -> str:
    """The condition that keeps relevant events: some bit is set (or `keep_all`), and the key is known.

    Its first part is a plain condition over columns, for pushdown into scans; it lets all relevant events
    pass, and where arithmetic may overflow the exact bits decide after it.
    """
    writer = _Writer(classification, dialect, columns)
    return writer.relevance().sql(dialect=dialect)


def ticks(name: str, column: ColumnType, dialect: Dialect) -> SQL:
    """A time column as 64-bit ticks."""
    value = as_read(name, column)
    if column.kind is not Kind.TIMESTAMP:
        return value
    return (
        exp.Anonymous(this="epoch_ns", expressions=[value]) if column.tick == "ns" else micros(value, dialect)
    )


def stream_order(classification: Classification, columns: Mapping[str, ColumnType]) -> list[SQL]:
    """What the stream is sorted by before arrival: the time, then the columns of `order`."""
    time = classification.schema.time
    names = ([] if time is None else [time]) + list(classification.order)
    return [as_read(name, columns[name]) for name in names if name in columns]


def _name(name: str, dialect: Dialect) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect)


def _positioned(
    classification: Classification,
    source: str,
    columns: Mapping[str, ColumnType],
    *,
    ordered: bool,
    positions: bool,
) -> str:
    """`source` with its positions, in stream order."""
    ordering = ", ".join(each.sql(dialect="duckdb") for each in stream_order(classification, columns))
    if not ordered and ordering:
        arrival = f"SELECT *, row_number() OVER () AS __arrival FROM {source}"
        source = f"(SELECT * EXCLUDE (__arrival) FROM ({arrival}) ORDER BY {ordering}, __arrival)"
    return (
        f"SELECT *, row_number() OVER () - 1 AS {POSITION} FROM {source}"
        if positions
        else f"SELECT * FROM {source}"
    )


class _Writer:
    """The pieces of one classification as SQL trees."""

    def __init__(
        self, classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType] | None
    ) -> None:
        self._classification = classification
        self._dialect = dialect
        self._columns = columns_of(classification) if columns is None else columns
        self._expressions = ExpressionWriter(self._columns, dialect)
        self._strings = {name for name, column in self._columns.items() if column.kind is Kind.STRING}

    # ------------------------------------------------------------------------------------- bits

    def word(self, word: int) -> SQL:
        """The bits of one word: a sum over groups of predicates with the same types."""
        groups: dict[tuple[str, ...], list[tuple[int, EventPredicate]]] = {}
        members = self._classification.predicates[word * WORD : (word + 1) * WORD]
        for bit, predicate in enumerate(members):
            groups.setdefault(tuple(sorted(predicate.types)), []).append((bit, predicate))
        terms = [self._guarded(types, self._bits(group)) for types, group in groups.items()]
        return self._as_integer(_sum(terms) if terms else exp.Literal.number(0))

    def screened_words(self, rests: Sequence[Node | None]) -> dict[str, str]:
        """The words of bits where the first part of each predicate is in ``__screen…``: name → SQL."""
        words: dict[str, str] = {}
        for word in range(max(1, -(-len(rests) // WORD))):
            masks: dict[Node | None, int] = {}
            for bit, rest in enumerate(rests[word * WORD : (word + 1) * WORD]):
                masks[rest] = masks.get(rest, 0) | 1 << bit
            terms = [self._screened(screen_name(word), mask, rest) for rest, mask in masks.items()]
            total = self._as_integer(_sum(terms) if terms else exp.Literal.number(0))
            words[bits_name(word)] = total.sql(dialect=self._dialect)
        return words

    def _screened(self, name: str, mask: int, rest: Node | None) -> SQL:
        """The bits of `mask` that are set and whose rest is true; it is not asked of other events."""
        screen = exp.column(name, quoted=True)
        bits = exp.paren(exp.BitwiseAnd(this=screen, expression=self._number(mask)))
        if rest is None:
            return bits
        asked = exp.NEQ(this=bits, expression=self._number(0))
        is_true = exp.Case().when(self._expressions.condition(rest), bits.copy()).else_(self._number(0))
        return exp.Case().when(asked, is_true).else_(self._number(0))

    def _bits(self, group: Sequence[tuple[int, EventPredicate]]) -> SQL:
        """The bits of predicates with the same types; equalities of one column are one look-up.

        Measured in DuckDB with 24 names and dictionaries: 31 million events/s, 15 with a CASE for each.
        """
        always = 0
        looked_up: dict[str, dict[str, int]] = {}
        terms: list[SQL] = []
        for bit, predicate in group:
            name, strings = self._single_equality(predicate)
            if predicate.condition is None:
                always |= 1 << bit
            elif name is not None:
                masks = looked_up.setdefault(name, {})
                masks.update({text: masks.get(text, 0) | 1 << bit for text in sorted(strings)})
            else:
                condition = self._expressions.condition(predicate.condition)
                terms.append(exp.Case().when(condition, self._number(1 << bit)).else_(self._number(0)))
        terms += [self._look_up(name, masks) for name, masks in looked_up.items()]
        return _sum([self._number(always), *terms] if always or not terms else terms)

    def _single_equality(self, predicate: EventPredicate) -> tuple[str | None, frozenset[str]]:
        """The column and its strings, where that is all that the condition asks for."""
        found = split(predicate, None, self._strings)
        if found.rest is None and len(found.one_of) == 1:
            return next(iter(found.one_of.items()))
        return None, frozenset()

    def _look_up(self, name: str, masks: Mapping[str, int]) -> SQL:
        if not masks:  # two different strings at once
            return self._number(0)
        cases = [
            exp.If(this=exp.Literal.string(text), true=self._number(mask)) for text, mask in masks.items()
        ]
        return exp.Case(this=as_read(name, self._columns[name]), ifs=cases, default=self._number(0))

    def _guarded(self, types: tuple[str, ...], bits: SQL) -> SQL:
        """The bits, where the type is one of these; a condition is never asked of other types."""
        test = self._has_type(types)
        if test == exp.true():
            return bits
        return exp.Case().when(test, bits).else_(self._number(0))

    def _has_type(self, types: Sequence[str]) -> SQL:
        column = self._classification.type_column
        if column is None:
            return exp.true() if self._classification.only_type in types else exp.false()
        return self._is_one_of(column, types)

    def _is_one_of(self, name: str, texts: Sequence[str]) -> SQL:
        value = as_read(name, self._columns[name])
        literals: list[SQL] = [exp.Literal.string(text) for text in texts]
        if len(literals) == 1:
            return exp.EQ(this=value, expression=literals[0])
        return exp.In(this=value, expressions=literals) if literals else exp.false()

    def _number(self, number: int) -> SQL:
        return exp.Literal.number(f"{number}L" if self._dialect == "spark" else number)

    def _as_integer(self, value: SQL) -> SQL:
        return cast(value, "BIGINT")

    # --------------------------------------------------------------------------------- relevance

    def relevance(self) -> SQL:
        """The prefilter, the exact test where the prefilter lets more pass, and the keys."""
        parts = self.known_keys()
        if not self._classification.keep_all:
            parts.append(self._prefilter())
            if not all(self._is_safe(each.condition) for each in self._classification.predicates):
                words = range(max(1, -(-len(self._classification.predicates) // WORD)))
                exact = [exp.NEQ(this=self.word(each), expression=self._number(0)) for each in words]
                parts.append(exp.paren(exp.or_(*exact)))
        return exp.and_(*parts) if parts else exp.true()

    def known_keys(self) -> list[SQL]:
        """For each bracket of the key, that it is not NULL."""
        return [self._key_is_known(bracket) for bracket in self._classification.keys]

    def _prefilter(self) -> SQL:
        """Implied by any bit, and safe to evaluate on every event: by type, then any of the conditions."""
        groups: dict[tuple[str, ...], list[EventPredicate]] = {}
        for predicate in self._classification.predicates:
            groups.setdefault(tuple(sorted(predicate.types)), []).append(predicate)
        alternatives = []
        for types, group in groups.items():
            test, some = self._has_type(types), self._some_weakened(group)
            alternatives.append(test if some is None else exp.and_(test, some))
        return exp.paren(exp.or_(*alternatives)) if alternatives else exp.false()

    def _some_weakened(self, group: Sequence[EventPredicate]) -> SQL | None:
        """What any of these predicates implies, or None for "always"; equalities of one column are one IN."""
        strings: dict[str, set[str]] = {}
        conditions: dict[SQL, None] = {}
        for predicate in group:
            name, texts = self._single_equality(predicate)
            weaker = None if predicate.condition is None else self._weakened(predicate.condition)
            if weaker is None:
                return None
            if name is not None:
                strings.setdefault(name, set()).update(texts)
            else:
                conditions[self._expressions.condition(weaker)] = None
        members = [self._is_one_of(name, sorted(texts)) for name, texts in strings.items()]
        return exp.or_(*members, *conditions)

    def _weakened(self, condition: Node) -> Node | None:
        """A condition that `condition` implies and that cannot fail, or None for "always"."""
        if self._is_safe(condition):
            return condition
        if isinstance(condition, And):
            parts = tuple(part for part in map(self._weakened, condition.parts) if part is not None)
            return And(parts) if len(parts) > 1 else parts[0] if parts else None
        if isinstance(condition, Or):
            weakened = [self._weakened(part) for part in condition.parts]
            safe = tuple(part for part in weakened if part is not None)
            return Or(safe) if len(safe) == len(weakened) else None
        return None

    def _is_safe(self, condition: Node | None) -> bool:
        """Whether evaluating it on any event, of any type, cannot be an error."""
        return condition is None or not any(map(self._may_overflow, condition.walk()))

    def _may_overflow(self, node: Node) -> bool:
        if isinstance(node, Attribute):
            column = self._columns.get(node.name)
            return column is not None and column.checked
        computes = isinstance(node, Negative) or (
            (isinstance(node, Arithmetic) and node.operator in {"+", "-", "*"})
            or (isinstance(node, Call) and node.name == "abs")
        )
        return computes and self._expressions.value(node).kind is Kind.INT

    # -------------------------------------------------------------------------------------- keys

    def keys(self) -> tuple[SQL, SQL]:
        """Both halves of the key."""
        parts = [self._key(bracket) for bracket in self._classification.keys]
        if len(parts) == 1 and parts[0][1] in {Kind.INT, Kind.BOOL, Kind.TIMESTAMP}:
            return parts[0][0], cast(exp.Literal.number(0), "BIGINT")
        values = [value for value, _ in parts]
        salted = [self._salted(value, kind) for value, kind in parts]
        if self._dialect == "spark":
            return _call("xxhash64", values), _call("xxhash64", [exp.Literal.string("estero"), *values])
        return _call("hash", values), _call("hash", salted)

    def _key(self, bracket: tuple[str, ...]) -> tuple[SQL, Kind]:
        """The value of one bracket in one form for all its alternatives."""
        present = [name for name in bracket if name in self._columns]
        kinds = {self._columns[name].kind for name in present}
        common = (
            kinds.pop() if len(kinds) == 1 else Kind.FLOAT if kinds == {Kind.INT, Kind.FLOAT} else Kind.STRING
        )
        choices = [(name, self._in_key_form(name, common)) for name in present]
        kind = Kind.INT if common in {Kind.BOOL, Kind.TIMESTAMP} else common
        return self._first_that_the_type_has(choices), kind

    def _in_key_form(self, name: str, common: Kind) -> SQL:
        column = self._columns[name]
        value = as_read(name, column)
        if column.kind is Kind.TIMESTAMP:
            return ticks(name, column, self._dialect)
        if column.kind is Kind.BOOL and common is Kind.BOOL:
            return cast(value, "BIGINT")
        if common is Kind.FLOAT:
            return self._one_float_of_equal_ones(cast(value, "DOUBLE"))
        if common is Kind.STRING and column.kind is not Kind.STRING:
            return cast(value, "VARCHAR" if self._dialect == "duckdb" else "STRING")
        return value

    def _one_float_of_equal_ones(self, value: SQL) -> SQL:
        """-0.0 as 0.0, and every NaN as the same one."""
        zero = exp.Literal.number("0e0" if self._dialect == "duckdb" else "0D")
        nan = cast(exp.Literal.string("NaN"), "DOUBLE")
        total = exp.Add(this=value, expression=zero)
        return exp.Case().when(_call("isnan", [value.copy()]), nan).else_(total)

    def _first_that_the_type_has(self, choices: list[tuple[str, SQL]]) -> SQL:
        """Chosen by the type of the event, not by NULL: a type whose attribute is NULL has no key."""
        schema, column = self._classification.schema, self._classification.type_column
        if len(choices) == 1:
            return choices[0][1]
        if not choices:
            return exp.Null()
        if column is None or not schema.types:
            return choices[0][1]
        by_choice: dict[int, list[str]] = {}
        for type_name, attributes in schema.types.items():
            index = next((i for i, (name, _) in enumerate(choices) if name in attributes), None)
            if index is not None:
                by_choice.setdefault(index, []).append(type_name)
        value = exp.Case()
        for index, type_names in by_choice.items():
            value = value.when(self._has_type(type_names), choices[index][1])
        return value.else_(choices[0][1] if schema.shared else exp.Null())

    def _key_is_known(self, bracket: tuple[str, ...]) -> SQL:
        value, _ = self._key(bracket)
        return exp.Not(this=exp.Is(this=exp.paren(value), expression=exp.Null()))

    def _salted(self, value: SQL, kind: Kind) -> SQL:
        """Another value for another value, so that its hash says nothing about the first one."""
        if kind is Kind.STRING:
            return _call("concat", [value.copy(), exp.Literal.string("\u2021estero")])
        if kind is Kind.FLOAT:
            text = cast(value.copy(), "VARCHAR")
            return _call("concat", [text, exp.Literal.string("\u2021estero")])
        return _call("xor", [value.copy(), exp.Literal.number(0x5851F42D4C957F2D)])


def _sum(terms: list[SQL]) -> SQL:
    total = terms[0]
    for term in terms[1:]:
        total = exp.Add(this=total, expression=term)
    return total


def _call(name: str, arguments: list[SQL]) -> SQL:
    return exp.Anonymous(this=name, expressions=arguments)
