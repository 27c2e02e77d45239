"""Fields with dots in their names, in columns and structs."""

from estero.language.tree.field_names import attribute_of
from estero.language.tree.paths import field_of
from estero.language.tree.schema import Kind, Nested, Schema


def nested(**fields: Nested) -> Nested:
    return Nested(Kind.OPAQUE, fields)


TEXT = Nested(Kind.STRING)
PARENT = nested(name=TEXT)
SCHEMA = Schema(
    shared={
        "a.b": Kind.INT,
        "a": Kind.OPAQUE,
        "process": Kind.OPAQUE,
        "x.y": Kind.OPAQUE,
        "Event": Kind.OPAQUE,
    },
    nested={
        "a": nested(b=TEXT, c=TEXT),
        "process": nested(parent=PARENT, **{"parent.id": TEXT}),
        "x.y": nested(z=TEXT),
        "Event": nested(EventData=nested(Image=TEXT, a=TEXT), System=nested(EventID=TEXT)),
    },
)


def test_a_column_of_that_name_comes_first() -> None:
    assert attribute_of("a.b", SCHEMA) == "a.b"
    assert attribute_of("a", SCHEMA) == "a"


def test_the_rest_of_a_name_leads_into_structs() -> None:
    assert attribute_of("a.c", SCHEMA) == field_of("a", "c")
    assert attribute_of("process.parent.name", SCHEMA) == field_of(field_of("process", "parent"), "name")
    assert attribute_of("process.parent.id", SCHEMA) == field_of("process", "parent.id")
    assert attribute_of("x.y.z", SCHEMA) == field_of("x.y", "z")


def test_what_is_missing_has_no_attribute() -> None:
    for name in ("b", "a.d", "process.parent.name.x", "process.", "", ".", "x.z"):
        assert attribute_of(name, SCHEMA) is None, name
