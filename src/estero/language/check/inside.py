"""Checks of fields and elements: what a column has inside, and similar names."""

from __future__ import annotations

from collections.abc import Container

from estero.errors import Span
from estero.language.check.problems import Problems
from estero.language.tree.names import SPELLING, some, suggestion
from estero.language.tree.paths import column_of, element_of, field_of, steps_of
from estero.language.tree.schema import Schema
from estero.language.tree.words import quoted


def note_inside(
    path: str, attributes: Container[str], schema: Schema | None, span: Span, problems: Problems
) -> bool:
    """Notes why a path into one of the `attributes` fails; returns whether the name is such a path."""
    flat = ".".join(map(str, (column_of(path), *steps_of(path))))
    if flat in attributes:
        problems.add(
            f"there is no {quoted(path)}, but an attribute with dots in its name",
            span,
            expected=quoted(flat),
            hint=f"a name with dots in it goes in quotes: {quoted(flat)}",
        )
    elif column_of(path) in attributes:
        _note_step(schema, path, span, problems)
    else:
        return False
    return True


def _note_step(schema: Schema | None, path: str, span: Span, problems: Problems) -> None:
    """Notes the step at which a path into an existing column fails."""
    here = column_of(path)
    itself = "use the attribute itself"
    for step in steps_of(path):
        outer = None if schema is None else schema.inside(here)
        further = element_of(here, step) if isinstance(step, int) else field_of(here, step)
        if schema is None or outer is None or schema.inside(further) is not None:
            here = further
            continue
        what, name = outer.described, quoted(here)
        if isinstance(step, int):
            message, expected = f"{name} is {what}, and has no elements", "an attribute that is a list"
            fields = some(tuple(outer.fields or ()), word="and")
            hint = f"its fields are {fields}" if outer.fields else itself
        elif outer.fields is None:
            message, expected = f"{name} is {what}, and has no fields", "an attribute that is a struct"
            hint = f"its elements may: {name}[1].{quoted(step)}" if outer.element else itself
        else:
            message, expected = f"{name} has no field {step}", some(tuple(outer.fields)) or "no field at all"
            hint = suggestion(step, tuple(outer.fields)) or SPELLING
        place = span if isinstance(step, int) else problems.inner_span(span, quoted(step))
        problems.add(message, place, expected=expected, hint=hint)
        return
