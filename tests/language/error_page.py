"""The table of errors as pages: ``python tests/language/error_page.py`` writes them anew.

errors.txt is the table. A block is a heading, or the name of what is known of the events (schemas.py), a
query, and all that is said of it. The texts are tested. docs/errors.md is the index of the messages, by kind;
build/docs/errors.md has each with its query, its place and its hint.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "errors.txt"
INDEX = HERE.parent / "hostile" / "words.txt"
REPOSITORY = HERE.parent.parent
PAGE = REPOSITORY / "docs" / "errors.md"
FULL_PAGE = REPOSITORY / "build" / "docs" / "errors.md"

_OPENING = """# Errors

<!-- Written by tests/language/error_page.py from tests/language/errors.txt, where each text is tested. -->

Everything that can be wrong with a query is a `QueryError`: a message, the line with the place, what could
stand there, and how to correct it. It has the attributes `message`, `span` (an offset range in the `text`),
`found`, `expected` and `hint`; `str(error)` shows them all. All mistakes in a text are reported
together: by `estero check` and `estero.check` as a list, by the exception of `estero.query` as its `others`.

```python
import estero

errors = estero.check("SELECT b WHERE SELL AS a FILTER a[price == 5] WITHIN 0 EVENTS")
assert [error.message for error in errors] == [
    "no event is marked b",
    "== is not an operator",
    "a window must be longer than 0 events",
]
assert errors[0].expected == "SELL or a" and errors[0].hint == "bind it in the pattern with AS b"
```

If part of a CEQL text cannot be read, it is left out, and the rest is checked. `estero.check` and
`estero check` also check conjunctive queries. How much can be checked depends on what is known of the
events: with them, also types, attributes, kinds of values and the time.
"""
_INDEX = """The messages by kind follow; `make pages` writes `build/docs/errors.md`, which shows with each its
query, its place and its hint.
"""
_TYPED = """## What people type

Habits from SQL and other pattern languages, and slips: what was typed, the message, and the hint.
"""
_EVENTS = {
    "none": "",
    "trades": "The events are `SELL` and `BUY`, with the time `ts`.",
    "streams": "The events are `SELL` of the stream `s` and `BUY` of `t`.",
    "closed": 'The events are `SELL` and `BUY` in one table, and `types=["SELL", "BUY"]` closes the list.',
    "untyped": "No type column is named, but there is a column `kind`.",
    "untimed": "No time column is named.",
    "joined": "The events are `T`, with an integer `k`, `S`, with an integer `a` and a string `b`, "
    "and `R`, with a float `a`, a string `b` and a list `l`.",
    "nested": "`process` is a struct of `name`, `pid` and a struct `parent`, `tags` a list of strings; "
    "there are `pid` and `user.name`, too.",
    "ticks": "The time column `at` holds integers.",
    "milliseconds": "The time column `at` counts milliseconds.",
}


@dataclass(frozen=True)
class Case:
    """One query, what is known of the events, and the full text of its errors."""

    schema: str
    text: str
    said: str


def blocks() -> list[Case | str]:
    """The table: cases, and the headings of groups as text."""
    found: list[Case | str] = []
    for block in TABLE.read_text(encoding="utf-8").split("=====\n"):
        if block.startswith("## "):
            found.append(block.strip())
            continue
        first, _, rest = block.partition("\n")
        text, said = rest.split("\n-----\n")
        found.append(Case(first.removeprefix("schema: "), text, said.removesuffix("\n")))
    return found


def cases() -> list[Case]:
    """The table without its headings."""
    return [block for block in blocks() if isinstance(block, Case)]


def page() -> str:
    """The text of docs/errors.md: the messages of each kind."""
    lines = [_OPENING, _INDEX]
    for block in blocks():
        if isinstance(block, str):
            lines += ["", block, ""]
        else:
            message = f"- {_escaped(block.said.partition(chr(10))[0])}"
            lines += [message] if message not in lines else []
    return "\n".join([*lines, ""])


def full_page() -> str:
    """The text of build/docs/errors.md: each query with all that is said of it."""
    return "\n".join(
        [_OPENING, *map(_shown, blocks()), _TYPED, "```text", INDEX.read_text(encoding="utf-8") + "```", ""]
    )


def _shown(block: Case | str) -> str:
    if isinstance(block, str):
        return f"{block}\n"
    message = block.said.partition("\n")[0]
    lines = [f"### {_escaped(message)}", ""]
    if _EVENTS[block.schema]:
        lines += [_EVENTS[block.schema], ""]
    if f"| {block.text}\n" not in block.said:
        lines += ["```text", *(block.text or "(nothing)").splitlines(), "```", ""]
    return "\n".join([*lines, "```text", block.said, "```", ""])


def _escaped(message: str) -> str:
    return "".join(f"\\{each}" if each in "\\*_[]<>|`#" else each for each in message)


def renewed() -> str:
    """The table with what is said now; read the difference before it is committed."""
    from language.test_errors import errors_of

    parts = [
        f"{block}\n"
        if isinstance(block, str)
        else f"schema: {block.schema}\n{block.text}\n-----\n"
        + "\n\n".join(map(str, errors_of(block.schema, block.text)))
        + "\n"
        for block in blocks()
    ]
    return "=====\n".join(parts)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    if "--renew" in sys.argv:
        TABLE.write_text(renewed(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    FULL_PAGE.parent.mkdir(parents=True, exist_ok=True)
    FULL_PAGE.write_text(full_page(), encoding="utf-8")
