"""What a notebook shows, read as a browser would: elements that are all closed, and the texts in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Protocol

_MEANT = frozenset(
    {"div", "style", "p", "b", "pre", "code", "span", "small", "ul", "li", "details", "summary"}
    | {"table", "thead", "tbody", "tr", "th", "td"}
    | {"svg", "g", "rect", "circle", "ellipse", "polyline", "polygon", "text"}
)
"""The elements that may be there: none that loads or runs anything."""


class Shown(Protocol):
    """What a notebook can show."""

    def _repr_html_(self) -> str: ...


@dataclass
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def walk(self) -> Iterator[Element]:
        """The element and all below it, as they are written."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, tag: str, style: str | None = None) -> list[Element]:
        """The elements below it with this tag and class."""
        inside = (below for below in self.walk() if below is not self)
        return [below for below in inside if below.tag == tag and (style is None or style in below.classes)]

    def texts(self, tag: str, style: str | None = None) -> list[str]:
        """Their texts."""
        return [below.text for below in self.all(tag, style)]

    def rows(self) -> list[list[str]]:
        """The texts of the cells of the body of its first table."""
        body = self.all("tbody")[0]
        lines = [row for row in body.children if isinstance(row, Element)]
        return [[cell.text for cell in line.children if isinstance(cell, Element)] for line in lines]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len({*names}) == len(names), f"an attribute of {tag} is there twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"{tag} is closed where {self.open[-1].tag} is open"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")


def page_of(html: str) -> Element:
    """The one element of a page that is well-formed, and neither loads nor runs anything."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert [element.tag for element in reader.open] == [""], "an element is not closed"
    (page,) = reader.open[0].children
    assert isinstance(page, Element)
    assert page.classes == ["estero"]
    for element in page.walk():
        assert element.tag in _MEANT, element.tag
        for name in element.attributes:
            assert not name.startswith("on"), name
            assert name not in ("href", "src", "srcdoc", "action", "xlink:href"), name
    style = page.all("style")[0].text
    assert "url(" not in style
    assert "@import" not in style
    page.children = [
        child for child in page.children if not (isinstance(child, Element) and child.tag == "style")
    ]
    return page


def shown_by(value: Shown) -> Element:
    """What a notebook shows of a value, without the style sheet."""
    return page_of(value._repr_html_())
