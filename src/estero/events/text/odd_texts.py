"""Which row of a text file keeps a column from having the type that the rows above it promise."""

from __future__ import annotations

from dataclasses import dataclass

from estero.events.database import Connection
from estero.events.text.json_files import classes_of_json
from estero.events.text.text_kinds import Text, TextColumn, allowed_by, classes_of, quoted, type_of
from estero.events.text.text_layout import Part, TextLayout, number_text

_ALIKE = (
    Text.SMALL | Text.LARGE | Text.FLOAT | Text.NAMED,
    Text.BOOL | Text.SHORT,
    Text.DATE | Text.TIME | Text.NANO | Text.ZONED,
)
"""Classes that people take for one kind: a word among numbers is odder than a float among integers."""
_ALWAYS = Text.NULL | Text.SPACED


@dataclass(frozen=True, slots=True)
class OddText:
    """The first text of a column that is of another kind than the one above it; `row` counts from 1."""

    file: str
    row: int
    text: str


def odd_text(connection: Connection, layout: TextLayout, name: str) -> OddText | None:
    """What made a column one of strings or JSON; None where it begins with such texts, or has a type."""
    column = next((each for each in layout.columns if each.name == name), None)
    if column is None or column.given or column.type not in ("VARCHAR", "JSON"):
        return None
    parts = [part for part in layout.parts if name in part.names]
    classes = _classes(layout, column)
    first = _first(connection, classes, column, parts)
    promised = type_of(first)
    if promised in (None, "VARCHAR"):
        return None
    for allowed in (*(kind for kind in _ALIKE if first & kind), allowed_by(str(promised))):
        found = _other(connection, f"({classes}) & {~(allowed | _ALWAYS) & 0xFFFF:d} <> 0", column, parts)
        if found is not None:
            return found
    return None


def _classes(layout: TextLayout, column: TextColumn) -> str:
    text = quoted(column.name)
    return (
        classes_of_json(text, f"{text} ->> '$'") if layout.form == "json" else classes_of(number_text(column))
    )


def _first(connection: Connection, classes: str, column: TextColumn, parts: list[Part]) -> Text:
    """The class of the first text that there is."""
    for part in parts:
        asked = f"SELECT {classes} FROM {part.relation} WHERE {quoted(column.name)} IS NOT NULL LIMIT 1"
        if (found := connection.execute(asked).fetchone()) is not None:
            return Text(found[0])
    return Text(0)


def _other(connection: Connection, condition: str, column: TextColumn, parts: list[Part]) -> OddText | None:
    text = quoted(column.name)
    for part in parts:
        for file in part.files:
            numbered = f"SELECT {text}, row_number() OVER () AS __row FROM {part.relation_of(file)}"
            asked = f"SELECT CAST({text} AS VARCHAR), __row FROM ({numbered}) WHERE {condition} LIMIT 1"
            if (found := connection.execute(asked).fetchone()) is not None:
                return OddText(file, found[1], found[0])
    return None
