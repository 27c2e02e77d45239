"""Text from data as people read it: what would steer a terminal, or cannot be printed, is spelled out."""

from __future__ import annotations

import re

_UNPRINTED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: ESC among them, and line ends
    "\u2028\u2029"  # line ends of Unicode
    "\u202a-\u202e\u2066-\u2069"  # the direction of what follows
    "\ud800-\udfff]"  # halves of characters, and bytes that are no UTF-8
)
_BYTES = range(0xDC80, 0xDD00)
"""What stands for bytes 0x80 to 0xFF that are no UTF-8 (PEP 383, surrogateescape)."""


def legible(text: str, *, lines: bool = False) -> str:
    r"""The text with escapes in place of what no terminal should get; with `lines` its line ends stay.

    >>> legible("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    if not _UNPRINTED.search(text):
        return text
    if lines:
        return "\n".join(map(legible, text.split("\n")))
    return _UNPRINTED.sub(lambda found: _escaped(found[0]), text)


def legible_in_place(text: str) -> str:
    """The same with one character for each, for text under which something points at its characters.

    Tabs stay; control characters become their pictures.
    """
    return _UNPRINTED.sub(lambda found: _picture(found[0]), text)


def _escaped(character: str) -> str:
    if ord(character) in _BYTES:
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def _picture(character: str) -> str:
    if character == "\t":
        return character
    return chr(0x2400 + ord(character)) if ord(character) < 0x20 else "\N{REPLACEMENT CHARACTER}"
