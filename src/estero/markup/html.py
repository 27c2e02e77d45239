"""HTML that is escaped as it is built: only `Html` is taken for markup, all other text for text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from estero.errors import legible

MOST_LETTERS: Final = 300
"""The most characters of a text that are shown, unless something else is said."""


class Html(str):
    """A piece of HTML in which all elements are closed; it is its own `_repr_html_`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def text(value: object, *, most: int = MOST_LETTERS, lines: bool = False) -> Html:
    """The text of a value: escaped, without control characters, cut off with a note where it is too long.

    >>> text("<b>"), text("x" * 1_000_000, most=3)
    ('&lt;b&gt;', 'xxx<span class="quiet">… 1,000,000 characters</span>')
    """
    said = str(value)
    plain = Html(escape(legible(said[:most], lines=lines)))
    return plain if len(said) <= most else Html(plain + cut_off(len(said)))


def cut_off(length: int) -> Html:
    """The note behind a text that is cut off: how long it is."""
    return Html(f'<span class="quiet">… {length:,} characters</span>')


def joined(parts: Iterable[object], between: str = "") -> Html:
    """The parts in a row; those that are no `Html` are texts."""
    return Html(between.join(part if isinstance(part, Html) else text(part) for part in parts))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element with its content; attributes that are None are left out, ``_`` stands for ``-`` in names.

    ``class_`` is the class.

    >>> element("td", 1, "<", class_="number", data_x='"', title=None)
    '<td class="number" data-x="&quot;">1&lt;</td>'
    """
    return Html(f"<{tag}{_written(attributes)}>{joined(content)}</{tag}>")


def empty_element(tag: str, **attributes: object) -> Html:
    """An element of SVG without content."""
    return Html(f"<{tag}{_written(attributes)}/>")


def _written(attributes: dict[str, object]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(legible(str(value)))}"'
        for name, value in attributes.items()
        if value is not None
    )
