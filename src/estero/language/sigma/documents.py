"""The documents of a YAML text, and the places of their keys and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from estero.errors import QueryError, Span

if TYPE_CHECKING:
    from yaml import YAMLError

MOST: Final = 1 << 20
"""The largest number of characters of a text with rules."""
_MOST_VALUES: Final = 1 << 18
"""The largest number of values of a document, with those of aliases counted at each use."""
_DEEPEST: Final = 40
_MOST_DOCUMENTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """One document: a mapping, the text that contains it, and its number in the text, from 0.

    `section` is the key under which the text has the tests and the condition.
    """

    content: Mapping[str, Any]
    text: str = field(repr=False)
    number: int
    section: str = "detection"

    def error(self, message: str, *path: str | int, expected: str = "", hint: str = "") -> QueryError:
        """The error at the end of a path of keys and indices, or of the part of the path that exists."""
        span = self.place(*path)
        piece = self.text[span.start : span.end]
        return QueryError(message, text=self.text, span=span, found=piece, expected=expected, hint=hint)

    def place(self, *path: str | int) -> Span:
        """The place of the key at the end of a path, or of the last one that exists."""
        if path[:1] == ("detection",):
            path = (self.section, *path[1:])
        elif len(path) == 1 and self.number == 0:  # hundreds of rules may be refused for their log source
            line = re.search(rf"^{re.escape(str(path[0]))}(?=\s*:)", self.text, re.MULTILINE)
            if line is not None:
                return Span(line.start(), line.end())
        from estero.language.sigma.yaml_texts import inside, nodes_of  # and PyYAML

        here: Any = nodes_of(self.text)[self.number]
        place = _first_line(here, self.text)
        for step in path:
            at, here = inside(here, step)
            if at is None:
                break
            place = Span(at.start_mark.index, at.end_mark.index)
        return place


def _first_line(node: Any, text: str) -> Span:
    start = node.start_mark.index
    end = text.find("\n", start)
    return Span(start, len(text) if end < 0 else end)


def documents_of(text: str) -> list[Document]:
    """The nonempty documents of a text; raises `QueryError` for invalid YAML and for other values."""
    if len(text) > MOST:
        raise QueryError(
            "a text with Sigma rules has at most a megabyte", hint="put the rules into files of their own"
        )
    from yaml import YAMLError

    from estero.language.sigma.yaml_texts import contents_of

    try:
        contents = contents_of(text)
    except YAMLError as error:
        raise _no_yaml(error, text) from error
    except AttributeError as error:  # raised by PyYAML for !!timestamp noon
        raise QueryError(
            "this is not the YAML of a rule: a value is not what its tag says",
            text=text,
            span=_beginning(text),
        ) from error
    except (
        ValueError,
        OverflowError,
        RecursionError,
        TypeError,
        KeyError,
    ) as error:  # raised for a date with month 13
        raise QueryError(
            f"this is not the YAML of a rule: {error}", text=text, span=_beginning(text)
        ) from error
    if len(contents) > _MOST_DOCUMENTS:
        raise QueryError(
            f"a text has at most {_MOST_DOCUMENTS} rules", hint="put the rules into files of their own"
        )
    read = [_checked(content, text, number) for number, content in enumerate(contents) if content is not None]
    if not read:
        raise QueryError(
            "there is no Sigma rule in this text", text=text, expected="title, logsource and detection"
        )
    return read


def _checked(content: object, text: str, number: int) -> Document:
    if not isinstance(content, dict):
        raise QueryError(
            f"a Sigma rule is a mapping, not {_kind(content)}",
            text=text,
            span=_beginning(text),
            expected="title, logsource and detection",
        )
    for count, (path, key) in enumerate(_keys(content, ())):
        if count > _MOST_VALUES or len(path) > _DEEPEST:
            raise QueryError(
                "this rule has too many values, or too many inside of one another",
                text=text,
                span=_beginning(text),
            )
        if not isinstance(key, str):
            raise Document(content, text, number).error(
                f"the key {key!r} is not a text", *path, expected="a name", hint=f"put it in quotes: '{key}'"
            )
    return Document(content, text, number)


def _keys(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """All keys, and all indices of lists, with the path to their mapping or list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path, key
            yield from _keys(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield path, ""
            yield from _keys(inner, (*path, index))


def _no_yaml(error: YAMLError, text: str) -> QueryError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    if mark is None:
        return QueryError(f"this is not YAML: {problem}", text=text, span=_beginning(text))
    lines = text.splitlines(keepends=True)
    start = min(sum(map(len, lines[: mark.line])) + mark.column, len(text))
    return QueryError(
        f"this is not YAML: {problem}",
        text=text,
        span=Span(start, start),
        found=text[start : start + 1],
        hint="indentation says what belongs together; a text with : or # in it goes in quotes",
    )


def _beginning(text: str) -> Span:
    start = len(text) - len(text.lstrip())
    return Span(start, len(text.split("\n", 1)[0]) if start == 0 else start)


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else f"the value {str(value)[:40]!r}"
