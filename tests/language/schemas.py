"""What the tests of checks know of the events."""

from __future__ import annotations

from estero.language.tree.durations import TimeUnit
from estero.language.tree.schema import Kind, Nested, Schema

SELL = {
    "name": Kind.STRING,
    "price": Kind.FLOAT,
    "volume": Kind.INT,
    "ts": Kind.TIMESTAMP,
    "ok": Kind.BOOL,
    "tags": Kind.OPAQUE,
    "id": Kind.INT,
}
BUY = {
    "name": Kind.STRING,
    "price": Kind.INT,
    "volume": Kind.INT,
    "ts": Kind.TIMESTAMP,
    "broker": Kind.STRING,
}
PARENT = Nested(Kind.OPAQUE, {"pid": Nested(Kind.INT)})
PROCESS = Nested(Kind.OPAQUE, {"name": Nested(Kind.STRING), "pid": Nested(Kind.INT), "parent": PARENT})
TAGS = Nested(Kind.OPAQUE, element=Nested(Kind.STRING))
TICK = {"at": Kind.INT, "value": Kind.FLOAT}

SCHEMAS: dict[str, Schema | None] = {
    "none": None,
    "trades": Schema({"SELL": SELL, "BUY": BUY}, closed=True, time="ts"),
    "streams": Schema({"s>SELL": SELL, "t>BUY": BUY}, closed=True, time="ts"),
    "closed": Schema({"SELL": SELL, "BUY": SELL}, shared=SELL, closed=True, time="ts"),
    "untyped": Schema({"Event": SELL | {"kind": Kind.STRING}}, closed=True, time="ts", untyped=True),
    "untimed": Schema(shared=SELL),
    "ticks": Schema(shared=TICK, time="at"),
    "joined": Schema(
        types={
            "T": {"k": Kind.INT},
            "S": {"a": Kind.INT, "b": Kind.STRING},
            "R": {"a": Kind.FLOAT, "b": Kind.STRING, "l": Kind.OPAQUE},
        },
        closed=True,
    ),
    "nested": Schema(
        shared={"process": Kind.OPAQUE, "tags": Kind.OPAQUE, "pid": Kind.INT, "user.name": Kind.STRING},
        nested={"process": PROCESS, "tags": TAGS},
    ),
    "milliseconds": Schema(shared=TICK, time="at", time_unit=TimeUnit.MILLISECONDS),
}
