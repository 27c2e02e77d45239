"""Warnings of names: of columns that are called otherwise than in the query, and of types without events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from estero.errors import warn
from estero.language.tree.names import some, suggestion
from estero.language.tree.words import named
from estero.plan.plan import Plan


def warn_of_other_names(plan: Plan, *, timed: bool) -> None:
    """Warns of keys and labels whose columns have other names, because theirs are taken."""
    keys = tuple([named(alternatives[0]) for alternatives in plan.shown_keys])
    labels = tuple([selected.label for selected in plan.shown])
    for said in _other_names(keys, labels, timed, plan.interval is not None, plan.wait is not None):
        warn(said)


@lru_cache(maxsize=256)
def _other_names(
    keys: tuple[str, ...], labels: tuple[str, ...], timed: bool, suppressed: bool, waits: bool
) -> tuple[str, ...]:
    """What there is to say of the names of columns; thousands of rules have the same ones."""
    from estero.answers.answer_schema import column_names

    columns = column_names(keys, labels, timed=timed, suppressed=suppressed, waits=waits)
    said = []
    for place, (name, column) in enumerate(zip((*keys, *labels), columns, strict=True)):
        if name != column:
            what, advice = ("key", "") if place < len(keys) else ("label", "; AS gives it another name")
            said.append(f"the {what} {name} is shown as {column}: another column is called {name}{advice}")
    return tuple(said)


def without_events(name: str, known: Sequence[str], column: str | None) -> str:
    """The warning of a type without events; `column` is that of types, if no type of the query has any."""
    message = f"there are no events of type {name}, only of {some(known, word='and')}"
    near = suggestion(name, known)
    if near:
        return f"{message}: {near}"
    return (
        message if column is None else f"{message}: does {column} say the types, as type={column!r} has it?"
    )
