"""Names of fields as rules in other languages write them, found among the columns of events.

Such a name has dots, ``process.parent.name``. Events may have a column of that very name, a struct
``process`` with a struct ``parent`` in it, or anything between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from estero.language.tree.paths import field_of
from estero.language.tree.schema import Nested, Schema


def attribute_of(field: str, schema: Schema) -> str | None:
    """The attribute that has the values of a field, a column or a path into one; None where there is none.

    Of several ways through names with dots, that with the longest name of a column counts. The schema
    remembers them: thousands of rules ask for the same fields.
    """
    if field not in schema.names:
        schema.names[field] = _looked_up(field, schema)
    return schema.names[field]


def _looked_up(field: str, schema: Schema) -> str | None:
    kinds = schema.column_kinds
    for written, steps in _divisions(field):
        column = schema.exact.get(written, written)
        if column not in kinds:
            continue
        nested = schema.nested.get(column) or Nested(kinds[column])
        for way in _ways(nested, steps):
            return reduce(field_of, way, column)
    return None


def _divisions(name: str) -> Iterator[tuple[str, str | None]]:
    """A name as it is, without a rest, and cut at each of its dots, the longest first part first."""
    yield name, None
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:cut]), ".".join(parts[cut:])


def _ways(nested: Nested, rest: str | None) -> Iterator[tuple[str, ...]]:
    """The steps into a struct that the rest of a name can mean; none where there is no rest."""
    if rest is None:
        yield ()
        return
    for first, others in _divisions(rest):
        inner = nested.step(first)
        if inner is not None:
            yield from ((first, *way) for way in _ways(inner, others))
